"""Keys that are sent by Telnyx: one command, with the pauses in it."""

import asyncio
import time

import pytest

from tests.ingress.telephony.telnyx_provider import call, streaming, telnyx
from tests.support.waiting import until
from voicepipe.base.errors import KeysFailed


async def test_keys_are_one_command_and_take_their_time() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            line, sent, began = pop.calls[0].line, list[str](), time.monotonic()
            assert line.lacks_keys == ""
            await line.send_keys("1w2#", sent.append)
            assert time.monotonic() - began >= 1.5, "three tones and a pause"
            assert sent == ["1w2#"] and api.did("send_dtmf") == [{"digits": "1w2#"}]


async def test_keys_of_two_who_ask_at_once_are_not_mixed() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            line = pop.calls[0].line
            await asyncio.gather(line.send_keys("1"), line.send_keys("2"))
            assert [body["digits"] for body in api.did("send_dtmf")] == ["1", "2"]


async def test_keys_that_telnyx_refuses(caplog: pytest.LogCaptureFixture) -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            api.status["send_dtmf"] = 422, {"errors": [{"code": "10015", "title": "Bad", "detail": "no such key"}]}
            sent: list[str] = []
            with pytest.raises(KeysFailed, match="^the telephone network refuses them$"):
                await pop.calls[0].line.send_keys("1", sent.append)
            assert sent == [] and "no such key" in caplog.text


async def test_keys_that_are_given_up_count_as_sent_once_telnyx_was_asked() -> None:
    async with telnyx() as (pop, api, address):
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            sent: list[str] = []
            sending = pop.calls[0].line.send_keys("1W2", sent.append)
            await until(lambda: api.did("send_dtmf"))
            sending.cancel()
            await asyncio.wait([sending])
            assert sent == ["1W2"]
