"""What is said to a caller by RTP while they have the call on hold: it waits, and is heard as said."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import numpy as np
import pytest

from tests.rtp.test_rtp_session import FRAME_S, Clock, Wire
from tests.support.sinks import Blocks
from voicepipe.audio import Block, Pcm, g711
from voicepipe.call.playout import Playout
from voicepipe.call.speech import Phrase
from voicepipe.ingress.rtp_line import RtpLine
from voicepipe.line import HIDDEN
from voicepipe.rtp.codec import PCMU
from voicepipe.rtp.packet import RtpPacket
from voicepipe.rtp.rtp_session import AT_ONCE

RATE, PACKET = 8000, 160


class Stage:
    """A line and its playout, paced by hand."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.wire = Wire(self.clock)
        self.line = RtpLine(PCMU, 0, self.wire, self.clock)
        self.playout = Playout(self.line, self.clock, -15.0)
        self.began: list[tuple[str, int]] = []
        self.audible_at: list[float] = []
        self.place = self.playout.begin(self)

    # As PlayedReply.

    def speaks(self, phrase: Phrase, start: int) -> None:
        self.began.append((phrase.text, start))

    def audible(self) -> None:
        self.audible_at.append(self.clock.now)

    async def ticks(self, packets: int) -> None:
        for _ in range(packets):
            self.line.tick(self.clock.now)
            await asyncio.sleep(0)
            self.clock.now += FRAME_S

    def hold(self, held: bool) -> None:
        self.line.media.hold(sends=not held, hears=not held)

    @property
    def said(self) -> bytes:
        """What was sent without the silence."""
        silence = g711.encode("pcmu", np.zeros(PACKET, np.int16))
        return b"".join(packet.payload for _, packet in self.wire.rtp if packet.payload != silence)


@asynccontextmanager
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    task = asyncio.create_task(made.playout.run())
    await asyncio.sleep(0)
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.wait({task})


def speech(ms: int, seed: int) -> Pcm:
    """Of which no two packets are alike."""
    return np.random.default_rng(seed).integers(500, 8000, ms * RATE // 1000).astype(np.int16)


async def test_a_reply_that_is_held_in_the_middle_is_heard_whole() -> None:
    first, second = speech(400, 1), speech(300, 2)
    async with stage() as call:
        await call.playout.put(Phrase("a", first))
        await call.ticks(10)
        call.hold(True)
        sent, position = len(call.wire.rtp), call.playout.position
        assert 0 < position < first.size
        await call.playout.put(Phrase("b", second))
        await call.ticks(500)
        assert (len(call.wire.rtp), call.playout.position) == (sent, position), "nothing is said or lost"
        assert call.playout.heard(call.place) == position, "nor counted as heard"
        assert call.began == [("a", 0)]
        assert call.playout.reference() is None, "there is no echo of what was not said"
        call.hold(False)
        await call.ticks(40)
        assert call.said == g711.encode("pcmu", np.concatenate([first, second]))
        assert call.began == [("a", 0), ("b", first.size)] and len(call.audible_at) == 1
        assert call.playout.heard(call.place) == call.playout.position == first.size + second.size
        assert call.playout.reference() is not None
        stamps = [when for when, packet in call.wire.rtp[sent:] if packet.payload in call.said]
        assert set(np.diff(stamps).round(6)) == {FRAME_S}, "a packet each 20 ms, none made good"


async def test_a_reply_that_begins_on_hold_is_heard_afterwards() -> None:
    async with stage() as call:
        call.hold(True)
        await call.playout.put(Phrase("a", speech(200, 3)))
        await call.ticks(100)
        assert not call.said and not call.began
        call.hold(False)
        await call.ticks(20)
        assert call.said == g711.encode("pcmu", speech(200, 3))
        assert not call.audible_at, "how long its caller was away is no latency"


async def test_a_reply_that_is_cut_on_hold_was_heard_up_to_there() -> None:
    async with stage() as call:
        await call.playout.put(Phrase("a", speech(1000, 4)))
        await call.ticks(25)
        call.hold(True)
        await call.ticks(200)
        call.playout.cut()
        assert call.playout.heard(call.place) == call.playout.position == pytest.approx(0.5 * RATE, abs=PACKET)
        call.hold(False)
        await call.ticks(50)
        assert len(call.said) == call.playout.position, "the rest is not said"


async def test_a_voice_over_a_reply_that_is_held_twice_lets_it_go_on_after_both() -> None:
    """Held by the caller's telephone and, for a cough before it, by the turn machine."""
    async with stage() as call:
        await call.playout.put(Phrase("a", speech(400, 5)))
        await call.ticks(5)
        call.playout.level.hold()
        call.hold(True)
        await call.ticks(20)
        call.playout.resume()
        await call.ticks(20)
        assert len(call.said) == call.playout.position < speech(400, 5).size
        call.hold(False)
        await call.ticks(30)
        assert call.said == g711.encode("pcmu", speech(400, 5))


async def test_a_commit_after_a_stall_waits_until_all_that_came_is_heard() -> None:
    clock, heard = Clock(), list[Block]()
    line = RtpLine(PCMU, 0, Wire(clock), clock)
    listening = asyncio.create_task(line.listen(Blocks(heard.append)))
    await asyncio.sleep(0)
    for n in range(30):  # In one go, as after a stall of the network.
        line.media.datagram(bytes(RtpPacket(0, n, 160 * n, 5, bytes(160))), clock.now)
    assert len(heard) == AT_ONCE
    flushing = asyncio.create_task(line.flush())
    for _ in range(5):
        line.tick(clock.now)
        await asyncio.sleep(0.03)
    await flushing
    assert len(heard) == 30
    line.end()
    await listening


async def test_what_came_before_another_source_is_heard_first() -> None:
    clock, heard = Clock(), list[Block]()
    line = RtpLine(PCMU, 0, Wire(clock), clock)
    listening = asyncio.create_task(line.listen(Blocks(heard.append)))
    await asyncio.sleep(0)
    for n in range(30):
        line.media.datagram(bytes(RtpPacket(0, n, 160 * n, 5, bytes(160))), clock.now)
    line.media.datagram(bytes(RtpPacket(0, 7, 9, 6, bytes(160))), clock.now)
    assert len(heard) == 30
    line.end()
    await listening


async def test_of_a_caller_of_whom_no_packet_came_no_loss_is_known() -> None:
    async with stage() as call:
        await call.ticks(50)
        assert call.line.network() == HIDDEN
