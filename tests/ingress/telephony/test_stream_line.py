"""How much of what was sent a caller has heard, by the marks of a provider that plays in real time, in virtual time."""

import asyncio
import heapq
import json
from base64 import b64decode
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.ingress.fake_pop import tone
from tests.support.sinks import Blocks
from voicepipe.audio import Block
from voicepipe.base.errors import KeysFailed, TransferFailed
from voicepipe.ingress.telephony.dialects import TELNYX, TWILIO, Dialect, SoundFormat
from voicepipe.ingress.telephony.stream_line import MARK_MS, ProviderCommands, StreamLine
from voicepipe.line import HIDDEN

RATE = 8000
PACKET = RATE // 50
PCMU = SoundFormat("pcmu", RATE)


class Timeline:
    """Virtual time: what is to happen, in order."""

    def __init__(self) -> None:
        self.now = 100.0
        self._todo: list[tuple[float, int, Callable[[], None]]] = []
        self._number = count()

    def __call__(self) -> float:
        return self.now

    def at(self, second: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._todo, (second, next(self._number), do))

    def until(self, second: float) -> None:
        while self._todo and self._todo[0][0] <= second:
            self.now, _, do = heapq.heappop(self._todo)
            do()
        self.now = second


class Provider:
    """Plays what it is sent, in real time, each message after `delay(n)` seconds on the way, in order; sends marks back
    once what came before them was played or cleared. `played` is the truth."""

    def __init__(self, clock: Timeline, delay: Callable[[], float], marks: bool = True) -> None:
        self.clock = clock
        self.delay = delay
        self.marks = marks
        self.line: StreamLine | None = None
        self.said: list[dict[str, Any]] = []
        self._arrives = self._returns = 0.0
        self._queued: list[tuple[float, int]] = []
        """When each piece begins to play, and its samples."""
        self._ends = 0.0
        self._waiting: list[tuple[float, str]] = []

    def take(self, raw: bytes) -> None:
        message = json.loads(raw)
        self.said.append(message)
        self._arrives = max(self._arrives, self.clock.now + self.delay())
        self.clock.at(self._arrives, lambda: self._came(message))

    def _came(self, message: dict[str, Any]) -> None:
        now = self.clock.now
        match message["event"]:
            case "media":
                begins = max(now, self._ends)
                samples = len(b64decode(message["media"]["payload"]))
                self._queued.append((begins, samples))
                self._ends = begins + samples / RATE
            case "mark":
                name = message["mark"]["name"]
                self._waiting.append((self._ends, name))
                self.clock.at(max(now, self._ends), lambda: self._done(name))
            case "clear":
                self._queued = [(begins, min(samples, int((now - begins) * RATE))) for begins, samples in self._queued
                                if begins < now]  # fmt: skip
                self._ends = now
                for _, name in list(self._waiting):
                    self._done(name)

    def _done(self, name: str) -> None:
        if any(name == waiting for _, waiting in self._waiting):
            self._waiting = [known for known in self._waiting if known[1] != name]
            if self.marks:
                self._returns = max(self._returns, self.clock.now + self.delay())
                assert self.line
                self.clock.at(self._returns, partial(self.line.mark, name))

    @property
    def played(self) -> int:
        now = self.clock.now
        return sum(max(0, min(samples, int((now - begins) * RATE))) for begins, samples in self._queued)


async def nowhere(target: str) -> None:
    raise TransferFailed("no")


def connected(
    delay: Callable[[], float], dialect: Dialect = TWILIO, marks: bool = True
) -> tuple[Timeline, Provider, StreamLine]:
    clock = Timeline()
    provider = Provider(clock, delay, marks)
    provider.line = StreamLine(dialect, "MZ1", (PCMU, PCMU), provider.take, ProviderCommands(nowhere, nowhere), clock)
    return clock, provider, provider.line


def speak(clock: Timeline, line: StreamLine, packets: int) -> None:
    """As playout does: 200 ms ahead, then in real time."""
    for _ in range(packets):
        line.send(tone(PACKET, RATE))
        if line._marks.remaining_s() > line.lead_ms / 1000:
            clock.until(clock.now + 0.02)


@given(st.lists(st.floats(0.005, 0.08), min_size=1, max_size=20), st.integers(20, 120), st.integers(0, 200))
def test_what_was_heard_is_what_the_provider_has_played_less_the_way(
    delays: list[float], packets: int, on: int
) -> None:
    turns = count()
    clock, provider, line = connected(lambda: delays[next(turns) % len(delays)])
    speak(clock, line, packets)
    clock.until(clock.now + on / 1000)
    played = line.played()
    way = int(2 * 0.08 * RATE)
    assert 0 <= played <= line._marks.sent == packets * PACKET
    assert provider.played - way - PACKET <= played <= provider.played + way + PACKET
    clock.until(clock.now + 2)
    assert line.played() == provider.played == packets * PACKET


def test_it_is_exact_where_a_mark_comes_back_and_goes_on_by_the_clock() -> None:
    clock, provider, line = connected(lambda: 0.0)
    speak(clock, line, 40)
    start = clock.now
    for _ in range(20):
        assert line.played() == pytest.approx(provider.played, abs=2)
        clock.until(clock.now + 0.007)
    assert clock.now > start and line.played() < 40 * PACKET


def test_a_mark_follows_every_200_ms() -> None:
    clock, provider, line = connected(lambda: 0.0)
    speak(clock, line, 50)
    events = [said["event"] for said in provider.said]
    assert events.count("media") == 50 and events.count("mark") == 1000 // MARK_MS
    assert events[:11] == ["media"] * 10 + ["mark"]
    names = [said["mark"]["name"] for said in provider.said if said["event"] == "mark"]
    assert len(set(names)) == len(names)


@given(st.floats(0.0, 0.1), st.integers(15, 80), st.integers(0, 400))
def test_what_was_cleared_was_never_heard(delay: float, packets: int, on: int) -> None:
    clock, provider, line = connected(lambda: delay)
    speak(clock, line, packets)
    clock.until(clock.now + on / 1000)
    before = line.played()
    lost = line.clear()
    assert line.played() == before == packets * PACKET - lost
    assert ([said["event"] for said in provider.said][-1] == "clear") == bool(lost)
    clock.until(clock.now + 1)  # The marks come back, though their sound was never heard.
    assert line.played() == before
    heard = provider.played
    assert heard - int(0.2 * RATE) - PACKET <= before <= heard + int(0.1 * RATE) + PACKET
    speak(clock, line, 10)
    clock.until(clock.now + 1)
    assert line.played() == before + 10 * PACKET


def test_a_provider_that_stalls_is_not_believed_to_play_on() -> None:
    clock, provider, line = connected(lambda: 0.01 if clock.now < 100.3 else 3.0)
    speak(clock, line, 30)
    clock.until(clock.now + 1)
    assert provider.played < 30 * PACKET and line.played() <= 20 * PACKET


def test_a_provider_that_sends_no_marks_back_is_taken_to_play_in_real_time() -> None:
    clock, provider, line = connected(lambda: 0.01, marks=False)
    speak(clock, line, 50)
    clock.until(clock.now + 2)
    assert line.played() == 50 * PACKET


async def test_blocks_come_as_packets_do() -> None:
    _, _, line = connected(lambda: 0.0)
    blocks = list[Block]()
    listening = asyncio.create_task(line.listen(Blocks(blocks.append)))
    for number in range(3):
        await line.hear(PCMU.encode(tone(PACKET, RATE)), float(number))
        await line.flush()
    assert [(block.arrived, block.pos, block.narrow) for block in blocks] == [(n, n * 320, True) for n in range(3)]
    line.end()
    await listening
    assert len(blocks) == 3


async def test_what_programs_beside_the_call_cannot_do() -> None:
    _, _, line = connected(lambda: 0.0, TELNYX)
    assert (line.kind, line.out_rate, line.setup_ms) == ("telnyx", 8000, 0)
    assert (line.transfers, line.network()) == (True, HIDDEN)
    with pytest.raises(TransferFailed):
        await line.transfer("+49301")


@pytest.mark.parametrize("sound", [PCMU, SoundFormat("pcma", RATE), SoundFormat("l16", 16_000)])
def test_sound_there_and_back(sound: SoundFormat) -> None:
    pcm = tone(sound.rate // 50, sound.rate)
    back = sound.decode(sound.encode(pcm))
    assert back.shape == pcm.shape and np.abs(back.astype(int) - pcm).max() <= (0 if sound.encoding == "l16" else 512)


async def test_twilios_streams_are_sent_no_keys() -> None:
    _, _, line = connected(lambda: 0.05, dialect=TWILIO)
    with pytest.raises(KeysFailed, match="Twilio sends no keys while a call is streamed"):
        line.send_keys("1")
