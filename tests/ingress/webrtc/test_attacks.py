"""Attacks by WebRTC on a PoP of its own: a call beside them goes on, and nothing of them stays behind."""

import asyncio
import importlib
import os

import pytest

from latency_probes.webrtc import place
from tests.attacks.target import Target
from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.webrtc.peer import dialled
from tests.support.waiting import until
from voicepipe.ingress.webrtc import drop_warnings

pytestmark = pytest.mark.slow

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
        async with dialled(address) as (peer, _):
            target = Target(host, int(port), pid=os.getpid(), spared=peer.ports())
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


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("rtp_flood", "rate_limit_exceeded"),
        ("sctp_gaps", "data_channel_stuck"),
        ("sctp_fragments", "data_channel_stuck"),
        ("sctp_lies", "data_channel_invalid"),
    ],
)
async def test_who_holds_a_key_is_told_why(name: str, code: str, caplog: pytest.LogCaptureFixture) -> None:
    attack = importlib.import_module(f"tests.attacks.{name}").ATTACK
    pop = FakePop()
    async with serving(pop) as address:
        host, _, port = address.rpartition(":")
        target = Target(host, int(port), pid=os.getpid())
        running = asyncio.create_task(attack.run(target, 60))
        try:
            await until(lambda: target.told[code])
        finally:
            running.cancel()
            await asyncio.wait({running})
        await settled(pop)
    told = [line for line in caplog.messages if "much of what its peer sends is dropped" in line]
    assert len(told) in (1, 2)


async def test_a_data_channel_that_stays_useless_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drop_warnings, "END_S", 4.0)
    attack = importlib.import_module("tests.attacks.sctp_lies").ATTACK
    pop = FakePop()
    async with serving(pop) as address:
        host, _, port = address.rpartition(":")
        target = Target(host, int(port), pid=os.getpid())
        running = asyncio.create_task(attack.run(target, 60))
        try:
            await until(lambda: target.told["data_channel_unusable"])
        finally:
            running.cancel()
            await asyncio.wait({running})
        await settled(pop)


async def test_two_seconds_of_sound_at_once_are_no_flood() -> None:
    """As after a network has stalled, with every packet sent twice."""
    pop = FakePop()
    async with serving(pop) as address:
        said: list[str] = []
        placed = await place(f"http://{address}", "", "", on_message=said.append)
        try:
            for _ in range(4):
                for _ in range(200):
                    placed.send(b"\xf8\xff\xfe")
                await asyncio.sleep(1)
            assert not [event for event in said if '"error"' in event[:200]]
        finally:
            await placed.hang_up()
        await settled(pop)
