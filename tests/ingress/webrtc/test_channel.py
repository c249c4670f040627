"""The data channel as a client of a call."""

import json

import msgspec
import pytest
from websockets.asyncio.client import connect

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.webrtc.peer import dialled
from tests.support.waiting import until
from voicepipe.config import Config, LimitsConfig


async def test_an_event_that_the_channel_cannot_carry_is_told_and_the_call_goes_on() -> None:
    pop = FakePop(msgspec.structs.replace(Config(), limits=LimitsConfig(session_bytes=500_000)))
    async with serving(pop) as address, dialled(address) as (peer, location):
        call_id = location.rpartition("/")[2]
        async with connect(f"ws://{address}/v1/realtime?call_id={call_id}", proxy=None, max_size=None) as beside:
            await beside.recv()
            update = {"type": "session.update", "session": {"type": "realtime", "instructions": "word " * 80_000}}
            await beside.send(json.dumps(update))
            assert json.loads(await beside.recv())["type"] == "session.updated"
            error = (await peer.saw("error"))["error"]
            assert error["code"] == "event_too_long"
            peer.send(type="response.create")
            await peer.saw("response.done")


async def test_a_message_that_is_too_long_is_told_and_hangs_up() -> None:
    """The stock peer heeds what our answer allows; one that does not is stopped before all of its message is here."""
    pop = FakePop(msgspec.structs.replace(Config(), limits=LimitsConfig(message_bytes=4096)))
    async with serving(pop) as address, dialled(address) as (peer, _):
        with pytest.raises(ValueError, match="4096"):
            peer.channel.send("x" * 4097)
        peer.send(type="session.update", session={"type": "realtime", "instructions": "x" * 3900})
        await peer.saw("session.updated")
        sctp = peer.connection.sctp
        assert sctp
        sctp._remote_max_message_size = 0
        peer.channel.send("x" * 100_000)
        error = (await peer.saw("error"))["error"]
        assert error["code"] == "message_too_long" and "4096 bytes" in error["message"]
        await settled(pop)
        await until(lambda: peer.connection.connectionState == "closed")
