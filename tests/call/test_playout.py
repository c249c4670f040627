"""Pacing, gain, and what the caller has heard, in virtual time."""

import asyncio
from dataclasses import dataclass, field

import numpy as np
import pytest

from voicepipe.audio import Pcm, dbfs
from voicepipe.audio.resample import Resampler
from voicepipe.call.playout import Playout
from voicepipe.call.speech import Phrase
from voicepipe.ingress.socket_line import by_timer
from voicepipe.line import Pump, SoundListener

pytestmark = pytest.mark.virtual_time
RATE = 8000
PACKET = 160


@dataclass
class RecordingLine:
    """Takes packets and plays them as a client does that plays at once what it gets."""

    lead_ms: int = 0
    out_rate: int = RATE
    kind: str = "test"
    takes_sound: bool = True
    sent: list[tuple[float, Pcm]] = field(default_factory=list)
    play_end: float = 0.0
    count: int = 0

    def send(self, pcm: Pcm) -> None:
        now = asyncio.get_running_loop().time()
        self.sent.append((now, pcm))
        self.play_end = max(self.play_end, now) + pcm.size / RATE
        self.count += pcm.size

    def _unplayed(self) -> int:
        return round(max(0.0, self.play_end - asyncio.get_running_loop().time()) * RATE)

    def clear(self) -> int:
        lost = self._unplayed()
        self.play_end, self.count = 0.0, self.count - lost
        return lost

    def played(self) -> int:
        return self.count - self._unplayed()

    async def pace(self, pump: Pump, wake: asyncio.Event) -> None:
        await by_timer(pump, wake)

    async def listen(self, listener: SoundListener) -> None: ...

    async def hang_up(self) -> None: ...


def phrase(text: str, ms: int, level: int = 8000) -> Phrase:
    return Phrase(text, np.full(ms * RATE // 1000, level, np.int16))


class Stage:
    """A playout with its loop running."""

    def __init__(self, lead_ms: int = 0) -> None:
        self.line = RecordingLine(lead_ms)
        self.playout = Playout(self.line, asyncio.get_running_loop().time, -15.0)  # type: ignore[arg-type]
        self.began: list[tuple[str, int]] = []
        self.audible_at: list[float] = []

    async def __aenter__(self) -> "Stage":
        self.task = asyncio.create_task(self.playout.run())
        self.begin()
        return self

    def begin(self) -> None:
        self.place = self.playout.begin(self)

    def speaks(self, phrase: Phrase, start: int) -> None:
        self.began.append((phrase.text, start))

    def audible(self) -> None:
        self.audible_at.append(asyncio.get_running_loop().time())

    async def __aexit__(self, *_: object) -> None:
        self.task.cancel()


async def test_packets_leave_at_real_time_without_drift() -> None:
    async with Stage() as stage:
        start = asyncio.get_running_loop().time()
        await stage.playout.put(phrase("a", 500))
        await stage.playout.put(phrase("b", 310))
        await stage.playout.drained()
        times = [at - start for at, _ in stage.line.sent]
        assert times == pytest.approx([n * 0.02 for n in range(41)], abs=1e-6)
        assert all(pcm.size == PACKET for _, pcm in stage.line.sent)
        assert stage.began == [("a", 0), ("b", 4000)]
        assert stage.audible_at == [start]


async def test_a_lead_is_sent_at_once() -> None:
    async with Stage(lead_ms=200) as stage:
        start = asyncio.get_running_loop().time()
        await stage.playout.put(phrase("a", 1000))
        assert len([at for at, _ in stage.line.sent if at == start]) == 11
        await stage.playout.drained()
        assert stage.line.sent[-1][0] - start == pytest.approx(0.78, abs=0.021)


@pytest.mark.parametrize("lead_ms", [0, 200])
async def test_a_phrase_that_goes_on_has_no_silence_where_its_pieces_meet(lead_ms: int) -> None:
    """With a lead of 200 ms the end of a first piece of 165 ms once left at once, filled up with 15 ms of silence."""
    async with Stage(lead_ms) as stage:
        ramp = np.arange(1, 4001, dtype=np.int16)
        await stage.playout.put(Phrase("a", ramp[:1320], more=True))
        await asyncio.sleep(0.1)
        await stage.playout.put(Phrase("", ramp[1320:1330], more=True))
        await stage.playout.put(Phrase("", ramp[1330:]))
        await stage.playout.drained()
        sent = np.concatenate([pcm for _, pcm in stage.line.sent])
        assert np.array_equal(sent, ramp)


async def test_a_phrase_that_broke_off_is_played_to_its_last_sample() -> None:
    async with Stage(lead_ms=200) as stage:
        await stage.playout.put(Phrase("a", np.full(170, 8000, np.int16), more=True))
        assert len(stage.line.sent) == 1
        await stage.playout.drained()
        assert np.count_nonzero(np.concatenate([pcm for _, pcm in stage.line.sent])) == 170


async def test_audible_is_the_first_sound_not_the_first_packet() -> None:
    async with Stage() as stage:
        start = asyncio.get_running_loop().time()
        await stage.playout.put(Phrase("a", np.zeros(3 * PACKET, np.int16)))
        await stage.playout.put(phrase("b", 100))
        await stage.playout.drained()
        assert stage.audible_at == [pytest.approx(start + 0.06)]


async def test_hold_stops_and_resume_goes_on_at_the_same_sample() -> None:
    async with Stage() as stage:
        ramp = np.arange(4000, dtype=np.int16) + 100
        await stage.playout.put(Phrase("a", ramp))
        await asyncio.sleep(0.1)
        stage.playout.level.hold()
        await asyncio.sleep(1)
        held = len(stage.line.sent)
        assert held <= 7
        stage.playout.resume()
        await stage.playout.drained()
        assert np.array_equal(np.concatenate([pcm for _, pcm in stage.line.sent]), ramp)


async def test_ducking_is_15_db_and_back() -> None:
    async with Stage() as stage:
        await stage.playout.put(phrase("a", 600))
        await asyncio.sleep(0.1)
        stage.playout.level.duck()
        await asyncio.sleep(0.2)
        stage.playout.resume()
        await stage.playout.drained()
        levels = [round(dbfs(pcm) - dbfs(stage.line.sent[0][1])) for _, pcm in stage.line.sent]
        assert levels[8:13] == [-15] * 5
        assert levels[-1] == 0


@pytest.mark.parametrize("lead_ms", [0, 200])
async def test_cut_tells_what_was_heard_and_the_next_reply_starts_from_nothing(lead_ms: int) -> None:
    async with Stage(lead_ms) as stage:
        await stage.playout.put(phrase("a", 3000))
        await asyncio.sleep(0.5)
        stage.playout.cut()
        heard = stage.playout.heard(stage.place)
        assert heard == pytest.approx(0.5 * RATE, abs=2 * PACKET)
        sent = len(stage.line.sent)
        await asyncio.sleep(0.5)
        assert len(stage.line.sent) == sent
        stage.begin()
        assert stage.playout.heard(stage.place) == 0
        await stage.playout.put(phrase("b", 200))
        await stage.playout.drained()
        await asyncio.sleep(0.3)
        assert stage.playout.heard(stage.place) == 0.2 * RATE


async def test_a_full_queue_holds_the_maker_up() -> None:
    async with Stage() as stage:
        start = asyncio.get_running_loop().time()
        for _ in range(5):
            await stage.playout.put(phrase("a", 1000))
        assert asyncio.get_running_loop().time() - start == pytest.approx(2.0, abs=0.05)


async def test_the_reference_is_what_was_heard_when_it_was_heard() -> None:
    async with Stage(lead_ms=200) as stage:
        assert stage.playout.reference() is None
        await stage.playout.put(phrase("a", 400))
        await asyncio.sleep(0.1)
        heard = stage.playout.reference()
        assert heard is not None and heard.size == pytest.approx(16_000, abs=32)
        assert not heard[:14_200].any() and heard[14_600:].all()  # what was sent ahead is still to be heard
        await asyncio.sleep(0.4)
        tail = stage.playout.reference()
        assert tail is not None and not tail[15_000:].any()
        await asyncio.sleep(0.7)
        assert stage.playout.reference() is None


async def test_what_was_cut_is_no_part_of_the_reference() -> None:
    async with Stage(lead_ms=200) as stage:
        await stage.playout.put(phrase("a", 400))
        await asyncio.sleep(0.11)
        stage.playout.cut()
        await asyncio.sleep(0.2)
        heard = stage.playout.reference()
        assert heard is not None and np.count_nonzero(heard) == pytest.approx(0.12 * 16_000, abs=400)


async def test_what_the_caller_has_heard_is_what_was_sent_at_16_khz() -> None:
    async with Stage() as stage:
        sound = np.random.default_rng(3).normal(0, 6000, 3 * RATE).astype(np.int16)
        await stage.playout.put(Phrase("", sound[:RATE]))
        await asyncio.sleep(0.51)
        heard = stage.playout.reference()
        assert heard is not None
        second = np.concatenate([np.zeros(RATE, np.int16), sound])[round(0.51 * RATE) :][:RATE]
        assert np.array_equal(heard[32:], Resampler(RATE, 16_000)(second)[32:])
        await asyncio.sleep(1.5)
        assert stage.playout.reference() is None
