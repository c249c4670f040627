"""Transfers by Telnyx: over once somebody has taken the call; a caller whom nobody takes is not left in silence."""

import asyncio
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop
from tests.ingress.telephony.telnyx_provider import Api, call, post, streaming, telnyx
from tests.support.waiting import until
from voicepipe.base.errors import TransferFailed


async def transferring(pop: FakePop, api: Api, target: str = "+4940") -> tuple[asyncio.Task[None], dict[str, Any]]:
    """A transfer of the call that streams, not over yet, and the command by which Telnyx was asked for it."""
    await until(lambda: pop.calls)
    transfer = asyncio.create_task(pop.calls[0].line.transfer(target))
    before = len(api.did("transfer"))
    await until(lambda: len(api.did("transfer")) > before)
    return transfer, api.did("transfer")[-1]


async def nobody_takes(address: str, asked: dict[str, Any], cause: str) -> None:
    """Nobody takes the transfer: the call to its target ends."""
    state = asked["target_leg_client_state"]
    await post(address, "call.hangup", call_control_id="v3:other", client_state=state, hangup_cause=cause)


@pytest.mark.parametrize(
    ("target", "to"),
    [("+49 (0)40", "+4940"), ("tel:+1-415-555", "+1415555"), ("sip:ann@a.example", "sip:ann@a.example")],
)
async def test_a_transfer_is_over_once_somebody_has_taken_the_call(target: str, to: str) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            transfer, asked = await transferring(pop, api, target)
            assert asked["to"] == to and asked["timeout_secs"] == 28, "less than our own patience"
            await post(address, "call.initiated", direction="outgoing", client_state=asked["target_leg_client_state"])
            await post(address, "call.answered")
            assert not transfer.done() and len(api.did("answer")) == len(api.did("streaming_start")) == 1
            await post(address, "call.bridged")
            await transfer


async def test_a_transfer_that_nobody_takes(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            transfer, asked = await transferring(pop, api)
            await nobody_takes(address, asked, "user_busy")
            with pytest.raises(TransferFailed, match="user_busy"):
                await transfer
            api.status["transfer"] = 422, {"errors": [{"code": "10015", "title": "Bad", "detail": "no such number"}]}
            with pytest.raises(TransferFailed, match="^the telephone network refuses it$"):
                await pop.calls[0].line.transfer("+0")
            assert "no such number" in caplog.text  # which clients do not read


async def test_a_call_that_somebody_has_taken_is_not_hung_up_when_its_stream_ends() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            transfer, _ = await transferring(pop, api)
            await post(address, "call.bridged")
            await transfer
            await socket.send('{"event":"stop","stream_id":"S1","stop":{}}')
            await socket.wait_closed()
        await until(lambda: not pop.live)
        await post(address, "call.hangup")
        assert not api.did("hangup")


async def test_a_stream_that_breaks_during_a_transfer_leaves_nobody_in_silence_whom_nobody_takes() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            transfer, asked = await transferring(pop, api)
            socket.transport.abort()
            await until(lambda: not pop.live)
            assert not api.did("hangup"), "somebody may yet take it"
            await nobody_takes(address, asked, "timeout")
            await until(lambda: api.did("hangup"))
        transfer.cancel()
        await asyncio.wait({transfer})


async def test_whoever_takes_the_call_after_it_was_given_up_keeps_it() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            transfer, asked = await transferring(pop, api)
            transfer.cancel()
            await asyncio.wait({transfer})
            await post(
                address, "call.bridged", call_control_id="v3:other", client_state=asked["target_leg_client_state"]
            )
            await socket.send('{"event":"stop","stream_id":"S1","stop":{}}')
            await socket.wait_closed()
        await until(lambda: not pop.live)
        assert not api.did("hangup")
        await nobody_takes(address, asked, "normal_clearing")
        assert len(api.did("hangup")) == 1, "and when they hang up so does the caller"


async def test_an_attempt_that_was_given_up_does_not_fail_the_next() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            given_up, first = await transferring(pop, api)
            given_up.cancel()
            transfer, second = await transferring(pop, api, "+4950")
            await nobody_takes(address, first, "timeout")
            assert not transfer.done()
            await nobody_takes(address, second, "user_busy")
            with pytest.raises(TransferFailed, match="user_busy"):
                await transfer
            assert not api.did("hangup")


async def test_a_stream_that_breaks_as_nobody_takes_the_call_leaves_nobody_in_silence() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api) as socket:
            transfer, asked = await transferring(pop, api)
            await nobody_takes(address, asked, "timeout")
            socket.transport.abort()
            await until(lambda: api.did("hangup"))
        await asyncio.wait({transfer})
        assert isinstance(transfer.exception(), TransferFailed)
