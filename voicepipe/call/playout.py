"""Paces 20 ms packets to a line, and knows up to which sample the caller has heard, and how loud."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Literal, Protocol

import numpy as np

from voicepipe.audio import BLOCK_MS, RATE, Pcm, dbfs
from voicepipe.audio.resample import SegmentResampler
from voicepipe.call.speech import Phrase
from voicepipe.line import Line
from voicepipe.turn.echo import FAR, WINDOW

AUDIBLE_DBFS = -45.0
QUEUE_MS = 2000
"""How far speech is made ahead of what is played. Full, it holds up the reply that is being made, nothing else."""
SLIP_S = 0.06
"""A packet that leaves up to so late keeps its time, and so do the next ones: timers are always a little
late, and each packet 1 ms later than the one before would be speech that is 5 % too slow for its listener."""
Lowered = Literal["", "ducked", "held"]
RAMP_MS = 5
"""From one level to the next: a step would click."""
ECHO_S = (FAR - WINDOW) / RATE
"""Network, client's buffer and room together may delay our echo by so much, 0.76 s."""


class Level:
    """How loud our voice is: full, ducked while it is not sure that the caller speaks, or held. `duck_db`: what ducking
    adds to the level, in dB (negative)."""

    def __init__(self, rate: int, duck_db: float) -> None:
        self.held = False
        """Nothing is sent."""
        self._ramp = rate * RAMP_MS // 1000
        self._duck = 10 ** (duck_db / 20)
        self._gain = self._target = 1.0

    @property
    def full(self) -> bool:
        """What is sent next is at full level, or on its way there."""
        return self._target == 1.0 and not self.held

    def restore(self) -> None:
        """Full, at once: nothing sounds that was ducked or held."""
        self._gain = self._target = 1.0
        self.held = False

    def duck(self) -> None:
        self._target = self._duck

    def hold(self) -> None:
        """Stop after the packet that is out."""
        self.held = True

    def resume(self) -> Lowered:
        """Go on at full level. Returns what the level was before."""
        was: Lowered = "held" if self.held else "" if self.full else "ducked"
        self._target, self.held = 1.0, False
        return was

    def apply(self, pcm: Pcm) -> Pcm:
        """The next packet at this level, or on the way to it: int16[n]."""
        if self._gain == self._target == 1.0:
            return pcm
        gains = np.full(pcm.size, self._target, np.float32)
        gains[: self._ramp] = np.linspace(self._gain, self._target, self._ramp)
        self._gain = self._target
        return (pcm * gains).astype(np.int16)


class OwnSound:
    """What the caller has lately heard from us, as the reference by which the VAD front end knows our echo.

    Packets are at `rate` Hz and are sent up to `lead_ms` ahead of real time. Times are monotonic seconds.
    """

    def __init__(self, rate: int, lead_ms: int) -> None:
        self._rate = rate
        self._packets: deque[tuple[float, Pcm]] = deque(maxlen=(1000 * FAR // RATE + lead_ms) // BLOCK_MS + 1)
        self._ends = 0.0

    def plays(self, at: float, pcm: Pcm) -> None:
        """Add a packet. A client that plays at once all that it gets begins to play it at `at`."""
        self._packets.append((at, pcm))
        self._ends = at + pcm.size / self._rate

    def cut(self, at: float) -> None:
        """Nothing is played from then on."""
        self._ends = min(self._ends, at)
        while self._packets and self._packets[-1][0] >= at:
            self._packets.pop()

    def heard(self, now: float) -> Pcm | None:
        """What the caller heard in the second up to `now`, silence included: int16[n] at 16 kHz. None when they have
        not heard us for longer."""
        if now > self._ends + ECHO_S:
            return None
        at_16_khz = _at_16_khz(self._rate)
        heard = at_16_khz.stretch
        heard[:] = 0
        for plays, pcm in self._packets:
            end = heard.size + round((plays - now) * self._rate) + pcm.size
            start = end - pcm.size
            if end > 0 and start < heard.size:
                heard[max(0, start) : end] = pcm[max(0, -start) : heard.size - start]
        return at_16_khz()


@cache
def _at_16_khz(rate: int) -> SegmentResampler:
    """A converter from `rate` Hz, shared by all calls: who fills it converts at once."""
    return SegmentResampler(rate, RATE, FAR * rate // RATE)


class PlayedReply(Protocol):
    """A listener to one reply while it is played. Implemented by `Reply`."""

    def speaks(self, phrase: Phrase, start: int) -> None:
        """A phrase begins to be sent, at sample `start` of the reply."""

    def audible(self) -> None:
        """The first sound of the answer itself goes out. Not called if the reply had to wait for a line that did not
        listen."""


class _NoPlayedReply:
    """Null object of `PlayedReply`: nothing is played."""

    def speaks(self, phrase: Phrase, start: int) -> None:
        """Does nothing."""

    def audible(self) -> None:
        """Does nothing."""


NOBODY: PlayedReply = _NoPlayedReply()


class Playout:
    """Paces one call's speech to its line in 20 ms packets.

    Between `begin` and `cut` or `drained` it plays one reply's phrases, behind what the line still plays of the reply
    before. It also knows which sample the caller has heard.
    """

    def __init__(self, line: Line, clock: Callable[[], float], duck_db: float) -> None:
        self.line = line
        self.clock = clock
        self.packet = line.out_rate * BLOCK_MS // 1000
        self.level = Level(line.out_rate, duck_db)
        self._queue: deque[Phrase] = deque()
        self._queued = 0
        """Samples."""
        self._going_on = False
        """The last phrase has a piece that is still being made."""
        self._offset = 0
        self._sent = 0
        """Samples of this reply that the line has."""
        self._line_sent = 0
        self._play_end = 0.0
        self._own_sound = OwnSound(line.out_rate, line.lead_ms)
        self._wake = asyncio.Event()
        self._room = asyncio.Event()
        self._reply = NOBODY
        self._timed = False
        """The first sound of the answer is still to be reported."""
        self._answering = False
        """What is being sent belongs to the answer."""

    def begin(self, reply: PlayedReply) -> int:
        """Begin a new reply. Returns the sample of the line at which it starts, which `heard` takes."""
        self._clear()
        self._sent = 0
        self._reply, self._timed = reply, True
        self._answering = False
        return self._line_sent

    async def put(self, phrase: Phrase) -> None:
        """Queue a phrase; waits while enough is queued. What the lead allows is sent before this returns."""
        while self._queued > QUEUE_MS * self.line.out_rate // 1000:
            self._room.clear()
            await self._room.wait()
        self._queue.append(phrase)
        self._queued += phrase.pcm.size
        self._going_on = phrase.more
        self._pump()
        self._wake.set()

    async def drained(self) -> None:
        """Returns when everything queued has been handed to the line. Nothing more comes of a phrase that goes on."""
        self._going_on = False
        self._wake.set()
        while self._queue:
            self._room.clear()
            await self._room.wait()

    async def heard_out(self) -> None:
        """Returns when the caller has heard everything, as far as we know."""
        await asyncio.sleep(max(0.0, self._play_end - self.clock()))

    async def quiet(self, ms: float, since: float) -> None:
        """Returns once the caller has heard nothing from us for `ms`, counted from the second `since` on, and nothing
        keeps us from speaking: no voice of theirs, no call on hold."""
        while True:
            left = max(since, self._play_end) + ms / 1000 - self.clock()
            if left <= 0 and not self._kept_from_speaking:
                return
            await asyncio.sleep(max(left, BLOCK_MS / 1000))

    @property
    def _kept_from_speaking(self) -> bool:
        return bool(self._queue) or not self.level.full or not self.line.takes_sound

    async def run(self) -> None:
        """The pacing loop; ends with its task."""
        try:
            await self.line.pace(self._pump, self._wake)
        finally:
            self._reply = NOBODY  # The last one knows us, too.

    def resume(self) -> Lowered:
        """Go on at full level from where it stopped. Returns what the level was before."""
        self._wake.set()
        return self.level.resume()

    def cut(self) -> None:
        """Stop for good, also what the line still plays."""
        self._clear()
        self._line_sent -= self.line.clear()
        self._play_end = min(self._play_end, self.clock())
        self._own_sound.cut(self._play_end)

    def heard(self, since: int) -> int:
        """Samples, at the line's rate, that the caller has heard by now from sample `since` of the line on."""
        played = self.line.played()
        return max(0, played - since)

    @property
    def position(self) -> int:
        """Samples of this reply that the line has been handed."""
        return self._sent

    def reference(self) -> Pcm | None:
        """What the caller has heard from us in the second up to now, as `OwnSound.heard`."""
        return self._own_sound.heard(self.clock())

    def _clear(self) -> None:
        self._queue.clear()
        self._queued = self._offset = 0
        self._going_on = False
        self._room.set()

    def _pump(self) -> float | None:
        """Send what is due. Returns seconds until more is, None if nothing waits to be sent."""
        lead = self.line.lead_ms / 1000
        if self._queue and not self.line.takes_sound:
            self._timed = False
            return None
        while self._waits() and not self.level.held:
            if self._going_on and self._queued < self.packet:
                return None  # Filled up with silence it would be a hole in a word.
            now = self.clock()
            if now - self._play_end > SLIP_S:
                self._play_end = now
            if self._play_end - now > lead:
                return self._play_end - now - lead
            self._send(self._next_packet())
            self._play_end += BLOCK_MS / 1000
        return None

    def _waits(self) -> bool:
        """Something waits to be sent. What was withdrawn before it began does not."""
        while self._queue and not self._offset and self._queue[0].withdrawn:
            self._queued -= self._queue.popleft().pcm.size
            self._room.set()
        return bool(self._queue)

    def _next_packet(self) -> Pcm:
        """20 ms off the queue; the end of the last phrase is filled up with silence."""
        parts: list[Pcm] = []
        wanted = self.packet
        while wanted and self._waits():
            phrase = self._queue[0]
            if self._offset == 0:
                self._answering = not phrase.stand_in
                self._reply.speaks(phrase, self._sent + self.packet - wanted)
            part = phrase.pcm[self._offset : self._offset + wanted]
            parts.append(part)
            wanted -= part.size
            self._offset += part.size
            self._queued -= part.size
            if self._offset >= phrase.pcm.size:
                self._queue.popleft()
                self._offset = 0
                self._room.set()
        if wanted:
            parts.append(np.zeros(wanted, np.int16))
        return np.concatenate(parts) if len(parts) > 1 else parts[0]

    def _send(self, pcm: Pcm) -> None:
        pcm = self.level.apply(pcm)
        self.line.send(pcm)
        if self._timed and self._answering and dbfs(pcm) > AUDIBLE_DBFS:
            self._timed = False
            self._reply.audible()
        self._own_sound.plays(self._play_end, pcm)
        self._sent += pcm.size
        self._line_sent += pcm.size
