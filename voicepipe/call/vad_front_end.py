"""The caller's sound of one call: blocks in, facts for the turn machine out, and sound for the recogniser."""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol

import numpy as np

from voicepipe.audio import BLOCK, RATE, Block, Pcm
from voicepipe.engines.vad_windows import WindowListener
from voicepipe.turn.backchannel import VoiceBurst
from voicepipe.turn.echo import WINDOW as ECHO_WINDOW
from voicepipe.turn.echo import likeness
from voicepipe.turn.facts import Fact, MaybeVoice, NoSound, NoVoice, Silence, VoiceGoesOn, VoiceStarted
from voicepipe.turn.vad import WINDOW, Beginning, VadConfig, VoiceTracker

GAP_S = 1.0
"""A client that sends nothing for so long has stopped sending: networks rarely stall for as long."""
REMEMBER = 2 * RATE // BLOCK
"""Blocks that are kept: 2 s, for the sound before a voice was noticed."""
ECHO, ECHO_STILL = 0.4, 0.2
"""Likeness to our own output from which a beginning voice is our echo; while one was heard lately, less will do.
Another voice alone reaches 0.25 in one of a hundred comparisons, an echo in a quiet room is below 0.4 in one of 20."""
LATELY = RATE
"""Samples: 1 s."""
DOUBT = RATE * 250 // 1000
"""Samples: what is no voice by then is a car, or a fan."""
LOOK = RATE * 60 // 1000
"""Samples: so often a burst is compared again."""


class VadListener(Protocol):
    """A listener to the caller's sound, block by block. Implemented by `Hearing`."""

    def judged(self, block: Block, fact: Fact | Exception | None) -> None:
        """The detector has judged a block. `fact`: what it tells about the caller's voice, or why the voice cannot be
        detected."""


class TurnTaking(Protocol):
    """What decides whose turn it is: `Turns`."""

    def feed(self, fact: Fact) -> None: ...

    def block_heard(self) -> None:
        """20 ms have passed for the caller, and their facts were fed."""

    def words_known(self) -> None:
        """The recogniser has the words of the utterance so far; the endpointer has not judged them yet."""


class WindowDetector(Protocol):
    """A voice detector that judges windows of one caller's sound: `StreamWindows`."""

    def ask(self, window: Pcm, listener: WindowListener) -> None:
        """Judge `window` (int16[512]); `listener` gets the answer."""


class VadFrontEnd:
    """Makes facts for the turn machine of one caller's sound: runs the voice detector, tracks bursts of voice, and
    knows our echo.

    `detector` judges windows. `reference` returns what the caller has heard from us in the last second (int16[n] at 16
    kHz), or None if we were silent for longer. Positions are samples at 16 kHz since the answer.
    """

    def __init__(
        self,
        detector: WindowDetector,
        config: VadConfig,
        reference: Callable[[], Pcm | None],
        listener: VadListener,
    ) -> None:
        self._detector = detector
        self._listener: VadListener | None = listener
        self._coming: deque[Block] = deque()
        """The first one waits for the detector's answer, the others for it."""
        self._tracker = VoiceTracker(config)
        self.configure(config)
        self._reference = reference
        self._blocks: deque[Block] = deque(maxlen=REMEMBER)
        self._rest = np.empty(0, np.int16)
        self._started = False
        self._burst = VoiceBurst()
        self._looked = 0
        self._is_ours = False
        """When the burst was last compared with our own sound, and whether it was our echo."""
        self._beginning = Beginning.NONE
        self._maybe = False
        """MaybeVoice was emitted, and nothing since."""
        self._maybe_at = 0
        self._doubted = -LATELY
        """Sample at which what may have been a voice was found to be none."""
        self._echoed = -LATELY
        """Sample at which an echo was last heard."""

    def configure(self, vad: VadConfig) -> None:
        """Detect voice by these thresholds from now on."""
        self._config, self._by_telephone = vad, vad.by_telephone()

    @property
    def now(self) -> int:
        """End of the sound heard so far, in samples since the answer."""
        return self._tracker.voice.now

    @property
    def started(self) -> int:
        """First voiced sample of the present burst."""
        return self._tracker.voice.started

    @property
    def last_voiced(self) -> int:
        return self._tracker.voice.last

    def hear(self, block: Block) -> None:
        """Take a block. The listener gets it, at the latest when the detector has answered."""
        self._coming.append(block)
        if len(self._coming) == 1:
            self._next()

    def _next(self) -> None:
        while self._coming:
            self._rest = np.concatenate([self._rest, self._coming[0].pcm])
            if self._rest.size >= WINDOW:  # A block completes no more than one.
                window, self._rest = self._rest[:WINDOW], self._rest[WINDOW:]
                return self._detector.ask(window, self)
            self._report([])

    def answered(self, answer: float | Exception) -> None:
        """As `WindowListener.answered`."""
        if isinstance(answer, Exception):
            self._tell(self._coming.popleft(), answer)
        else:
            self._report([answer])
        self._next()

    def _report(self, probabilities: list[float]) -> None:
        block = self._coming.popleft()
        try:
            fact = self._fact(block, probabilities)
        except Exception as error:
            return self._tell(block, error)
        self._tell(block, fact)

    def _tell(self, block: Block, fact: Fact | Exception | None) -> None:
        if self._listener is not None:
            self._listener.judged(block, fact)

    def let_go(self) -> None:
        """The call is over: forget the listener, which refers to us."""
        self._listener = None

    def _fact(self, block: Block, probabilities: list[float]) -> Fact | None:
        """The fact about the caller's voice that this block makes known, if any. `probabilities`: of the windows that
        it completed."""
        self._blocks.append(block)
        before = self._tracker.voice
        self._tracker.config = self._by_telephone if block.narrow else self._config
        voice = self._tracker.push(block.pcm, block.pos, probabilities)
        if not voice.active:
            return self._look()
        voiced = voice.last > before.last
        if not self._started:
            # An echo that slips through here holds the reply, and so ends by itself; until then it is looked at again.
            if self._is_echo():
                self.forget()
                return self._look()
            self._started, self._maybe, self._is_ours = True, False, False
            self._beginning = Beginning.NONE
            self._burst = VoiceBurst()
            for heard in self._blocks:
                if heard.pos >= voice.started:
                    self._burst.push(heard.pcm)
            return VoiceStarted(voice.started)
        if voiced:
            self._burst.push(block.pcm)
            return VoiceGoesOn(voice.voiced_ms, self._burst.speech and not self._ours(), voice.hiss_ms)
        return Silence(voice.silence_ms, voice.last, voice.likely, voice.sure)

    def nothing(self, ms: float) -> Fact | None:
        """The fact that follows if the line has brought no block for `ms`: silence, if a voice was being heard."""
        if self._maybe:
            self._maybe = False
            return NoVoice()
        voice = self._tracker.voice
        return NoSound(voice.silence_ms + ms, voice.last) if self._started else None

    def forget(self) -> None:
        """Forget the burst, which is dealt with; the next voice is a new one."""
        self._tracker.forget()
        self._started = False

    def since(self, pos: int, not_before: int = 0) -> Pcm:
        """The sound from sample `pos` less the prefix up to now, as far as it is remembered: int16[n]."""
        first = max(not_before, pos - self._config.prefix_ms * RATE // 1000)
        kept = [block.pcm[max(0, first - block.pos) :] for block in self._blocks if block.pos + BLOCK > first]
        return np.concatenate(kept) if kept else np.empty(0, np.int16)

    def arrived(self, pos: int) -> float:
        """When the packet that holds sample `pos` - 1 arrived, in monotonic seconds."""
        for block in reversed(self._blocks):
            if block.pos < pos:
                return block.arrived
        return self._blocks[0].arrived

    def _look(self) -> Fact | None:
        """The fact about a beginning over our own sound that may be a voice, or that was none after all."""
        before, self._beginning = self._beginning, self._tracker.beginning
        doubt = self._beginning is Beginning.PERHAPS and self.now - self._maybe_at >= DOUBT
        if self._maybe and (doubt or self._beginning is Beginning.NONE):
            self._maybe, self._doubted = False, self.now
            return NoVoice()
        if self._maybe or self._beginning <= before or not self._worth_reporting():
            return None
        like = self._likeness()
        self._maybe, self._maybe_at = like is not None and like < ECHO, self.now
        return MaybeVoice() if self._maybe else None

    def _worth_reporting(self) -> bool:
        """Whether a beginning may be reported: where an echo was heard lately, it is more likely the next of it, and
        what was noise is noise again."""
        doubted = self._beginning is Beginning.PERHAPS and self.now - self._doubted < LATELY
        return self.now - self._echoed >= LATELY and not doubted

    def _ours(self) -> bool:
        """Whether the burst is our echo after all: when it began there was little of it to compare."""
        voice = self._tracker.voice
        if voice.now - voice.started >= ECHO_WINDOW and voice.now - self._looked >= LOOK:
            self._looked, self._is_ours = voice.now, self._is_echo()
        return self._is_ours

    def _is_echo(self) -> bool:
        like = self._likeness()
        if like is None:
            return False
        still = self.now - self._echoed < LATELY
        echo = like > (ECHO_STILL if still else ECHO)
        if echo:
            self._echoed = self.now
        return echo

    def _likeness(self) -> float | None:
        """The likeness of the sound just heard to our own; None if nothing of ours was heard lately, or too little of
        theirs."""
        far = self._reference()
        if far is None or self.now < ECHO_WINDOW:
            return None
        near = np.concatenate([block.pcm for block in list(self._blocks)[-ECHO_WINDOW // BLOCK :]])
        return likeness(near, far)


class MissingSound:
    """Notices that a client has stopped sending (a muted microphone, a button let go), and feeds `turns` the fact that
    follows.

    Silence is counted in the caller's sound, so without this it would never pass.
    """

    def __init__(self, front_end: VadFrontEnd, turns: TurnTaking, clock: Callable[[], float]) -> None:
        self._front_end = front_end
        self._turns = turns
        self._clock = clock
        self._last_at = clock()

    def over(self) -> None:
        """Sound came again."""
        self._last_at = self._clock()

    async def mind(self) -> None:
        """Watch for gaps. Runs until cancelled."""
        while True:
            await asyncio.sleep(GAP_S / 4)
            gap = self._clock() - self._last_at
            if gap >= GAP_S and (fact := self._front_end.nothing(gap * 1000)):
                self._turns.feed(fact)
