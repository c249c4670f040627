"""Attacks by WebRTC on a PoP of its own: a call beside them goes on, and nothing of them stays behind."""

import asyncio
import importlib
import os

import pytest

from tests.attacks.target import Target
from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.webrtc.peer import dialled
from tests.waiting import until

NAMES = (
    "sctp_gaps", "sctp_fragments", "sctp_lies", "datachannel_big_messages", "rtp_flood", "stun_flood", "dtls_junk",
    "offers_flood",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
async def test_a_call_beside_it_goes_on(name: str, caplog: pytest.LogCaptureFixture) -> None:
    attack = importlib.import_module(f"tests.attacks.{name}").ATTACK
    pop = FakePop()
    before = asyncio.all_tasks()
    async with serving(pop) as address:
        host, _, port = address.rpartition(":")
        target = Target(host, int(port), pid=os.getpid())
        async with dialled(address) as (peer, _):
            running = asyncio.create_task(attack.run(target, 1.5))
            frames, turns = peer.frames, 0
            while not running.done():
                peer.send(type="response.create")
                turns += 1
                await until(lambda: peer.types().count("response.done") >= turns)  # noqa: B023
            await running
            assert peer.frames > frames and turns
            await until(lambda: pop.live == 1)
        await settled(pop)
    await until(lambda: asyncio.all_tasks() - before <= {asyncio.current_task()})
    assert "Traceback" not in caplog.text and "Unhandled" not in caplog.text
    if name == "datachannel_big_messages":
        assert target.told["message_too_long"], "who sends too much is told why"
