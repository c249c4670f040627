"""Hears a recording as a call does: each silence in it, and what is known there of the words and the voice."""

import asyncio
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import msgspec
import numpy as np

from voicepipe.audio import BLOCK, RATE, Block, Pcm, samples_to_ms
from voicepipe.audio.g711 import decode, encode
from voicepipe.audio.resample import Resampler
from voicepipe.call.utterance import RecogniserWait, Utterance
from voicepipe.call.vad_front_end import VadFrontEnd
from voicepipe.config import LadderConfig
from voicepipe.conversation.timing import TurnRecord
from voicepipe.engines.base import AsrHints, Engines, Hypothesis
from voicepipe.engines.vad_windows import WindowListener
from voicepipe.turn.endpoint import Evidence
from voicepipe.turn.facts import Fact, Silence, VoiceStarted
from voicepipe.turn.turn_state import TurnConfig
from voicepipe.turn.vad import VadConfig

PREPARE_MS = TurnConfig().prepare_ms


class Gap(msgspec.Struct):
    """A silence, as the ear has it."""

    last_ms: float
    """Where the voice ended before it."""
    sure_ms: float = -1.0
    """How long it had lasted when the detector was sure of it; below 0: it never was."""
    ms: float = 0.0
    """How long it lasted."""
    text: str = ""
    pitch: float = 0.0
    voice: float | None = None
    """What the turn model says."""
    full_stop: float | None = None
    """What the recogniser says of the sentence's end."""

    @property
    def evidence(self) -> Evidence:
        return Evidence(self.text, self.pitch, self.voice, full_stop=self.full_stop)


class Heard(msgspec.Struct):
    """What was heard of one recording."""

    id: str
    text: str
    """What it says."""
    kind: str
    """As the probes call it: "finished"; "pause_inside", up to the pause; "unfinished"."""
    noise: str
    end_ms: float
    """Where its voice ends, really."""
    gaps: list[Gap]
    language: str = "en"


def by_telephone(pcm: Pcm) -> Pcm:
    """What G.711 leaves of int16[n] at 16 kHz."""
    down, up = Resampler(RATE, RATE // 2), Resampler(RATE // 2, RATE)
    narrow = np.concatenate([down(pcm), down.flush()])
    heard = decode("pcmu", encode("pcmu", narrow))
    return np.concatenate([up(heard), up.flush()])[: pcm.size]


class Listener:
    """One call's ear and recogniser, which a recording is played to as fast as they can hear it."""

    def __init__(self, engines: Engines, *, narrow: bool = False, language: str = "en") -> None:
        self._engines, self._language = engines, language
        self._narrow = narrow
        self._facts: list[Fact] = []
        self._stream = engines.vad.stream()
        self._front_end = VadFrontEnd(self, VadConfig(), lambda: None, self)
        self._tasks: set[asyncio.Future[None]] = set()

    def ask(self, window: Pcm, listener: WindowListener) -> None:
        """As `WindowDetector.ask`, at once."""
        listener.answered(self._engines.vad.probabilities([(self._stream, window)])[0])

    def judged(self, block: Block, fact: Fact | Exception | None) -> None:
        if isinstance(fact, Exception):
            raise fact
        if fact:
            self._facts.append(fact)

    async def hear(self, pcm: Pcm) -> list[Gap]:
        """Every silence of int16[n] at 16 kHz that lasts long enough to ask for the words."""
        gaps: list[Gap] = []
        utterance: Utterance | None = None
        for at in range(0, pcm.size - BLOCK + 1, BLOCK):
            block = Block(pcm[at : at + BLOCK], at, at / RATE, narrow=self._narrow)
            self._facts.clear()
            self._front_end.hear(block)
            if utterance:
                utterance.hear(block.pcm)
            for fact in self._facts:
                match fact:
                    case VoiceStarted():
                        utterance = utterance or self._utterance()
                    case Silence() if utterance:
                        await self._silent(fact, utterance, gaps)
        if utterance:
            utterance.cancel()
        return gaps

    async def _silent(self, silence: Silence, utterance: Utterance, gaps: list[Gap]) -> None:
        last_ms = samples_to_ms(silence.last)
        if not gaps or gaps[-1].last_ms != last_ms:
            if silence.ms < PREPARE_MS or not silence.likely:
                return
            async with aclosing(utterance.settle()) as known:
                last = [each async for each in known][-1]
            gaps.append(Gap(last_ms, -1.0, 0.0, last.text, last.pitch, last.voice, last.full_stop))
        gap = gaps[-1]
        gap.ms = silence.ms
        if silence.sure and gap.sure_ms < 0:
            gap.sure_ms = silence.ms

    def _utterance(self) -> Utterance:
        sound = self._front_end.since(self._front_end.started)
        told: list[Utterance] = []

        def partial(hypothesis: Hypothesis) -> None:
            if told:
                told[0].take_partial(hypothesis.text, hypothesis.until)

        utterance = Utterance(
            item_id="", start=self._front_end.started, heard_from=self._front_end.now - sound.size, began=0.0,
            stream=self._engines.asr.stream(partial, AsrHints(self._language)), record=TurnRecord(""),
            spawn=self._spawn, past=sound.size, waits=RecogniserWait(config=LadderConfig(words_ms=0)),
            voice=self._engines.turn.stream() if self._engines.turn else None,
        )  # fmt: skip
        told.append(utterance)
        utterance.hear(sound)
        return utterance

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Future[Any]":
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
