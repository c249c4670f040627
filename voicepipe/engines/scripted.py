"""Engines for measurements that take no time: what they "hear" is given to them, what they "say" are tones."""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence

import numpy as np

from voicepipe.audio import Pcm, dbfs, ms_to_samples
from voicepipe.engines.base import NO_HINTS, AsrHints, Delta, Hypothesis, OnPartial, Prompt, Speech, Word
from voicepipe.languages.written_language import LikelyLanguage

Timeline = Sequence[tuple[int, str]]
"""(sample of the stream from which the word is known, word), in order."""
WORD_MS = 250
"""The pace of utterances."""
FLOOR_DBFS = -45.0
"""Whatever is louder is voice."""


class _Lifeless:
    """The `start` and `close` of an engine that holds nothing."""

    async def start(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to release."""


class ScriptedVad(_Lifeless):
    """A voice detector that goes by loudness alone."""

    def stream(self) -> None:
        """Returns nothing: the detector has no memory."""

    def probabilities(self, asked: Sequence[tuple[None, Pcm]]) -> list[float]:
        """0.98 for a window louder than the floor, else 0.02."""
        return [0.98 if dbfs(window) > FLOOR_DBFS else 0.02 for _, window in asked]


class ScriptedAsrStream:
    """A recogniser's stream that knows its words by the number of samples fed, so partials grow as sound comes."""

    def __init__(self, timeline: Timeline, on_partial: OnPartial) -> None:
        self._timeline = timeline
        self._on_partial = on_partial
        self._fed = 0
        self._heard = 0
        self._over = False
        self.language = LikelyLanguage()
        """The language that it tells."""

    def feed(self, pcm: Pcm) -> None:
        """Counts the samples; a partial follows whenever a further word is known."""
        if self._over:
            return
        self._fed += pcm.size
        heard = sum(begin < self._fed for begin, _ in self._timeline)
        if heard > self._heard:
            self._heard = heard
            asyncio.get_running_loop().call_soon(self._deliver, self._hypothesis())

    def _deliver(self, hypothesis: Hypothesis) -> None:
        if not self._over:
            self._on_partial(hypothesis)

    def _hypothesis(self) -> Hypothesis:
        text = " ".join(word for _, word in self._timeline[: self._heard])
        return Hypothesis(text, self._fed, language=self.language)

    async def settle(self) -> Hypothesis:
        return self._hypothesis()

    async def finish(self) -> Hypothesis:
        self._over = True
        return self._hypothesis()

    def cancel(self) -> None:
        self._over = True


class ScriptedAsr(_Lifeless):
    """A recogniser whose n-th stream hears the n-th utterance, over and over, whatever is said."""

    def __init__(self, utterances: Sequence[str]) -> None:
        self._timelines = [paced(said) for said in utterances]
        self._streams = 0

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> ScriptedAsrStream:
        return ScriptedAsrStream(self._next(), on_partial)

    def _next(self) -> Timeline:
        self._streams += 1
        return self._timelines[(self._streams - 1) % len(self._timelines)] if self._timelines else ()


def paced(text: str) -> Timeline:
    """The timeline of `text`, a word every `WORD_MS` from the first sample on."""
    return [(ms_to_samples(index * WORD_MS), word) for index, word in enumerate(text.split())]


class ScriptedLlm(_Lifeless):
    """A language model that repeats the last message's words."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        said = prompt.messages[-1].text.strip() if prompt.messages else ""
        for token in tokens(f"You said {said}." if said else "Hello.")[: prompt.max_tokens]:
            yield token

    async def warm(self, prompt: Prompt) -> None:
        """There is no cache."""


def tokens(text: str) -> list[str]:
    """The words of `text`, each with the space before it."""
    return re.findall(r"\s*\S+|\s+$", text)


class ScriptedTts(_Lifeless):
    """A voice that makes a tone for each word, `char_ms` long for each of its characters, and 20 ms of silence after
    it."""

    rate = 24_000
    char_ms = 60

    def voices(self) -> Mapping[str, str]:
        return {"scripted": "en"}

    def voice_for(self, asked: str, language: str = "") -> str:
        return "scripted"

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        sound: list[Pcm] = []
        ends: list[Word] = []
        at = 0
        for word in text.split():
            size = ms_to_samples(len(word) * self.char_ms / speed, self.rate)
            # A quarter period in, so that the very first sample is audible.
            phase = 2 * np.pi * 440 * np.arange(size) / self.rate + np.pi / 2
            sound += [(8000 * np.sin(phase)).astype(np.int16), np.zeros(ms_to_samples(20, self.rate), np.int16)]
            ends.append(Word(word, at + size))
            at += size + sound[-1].size
        if sound:
            yield Speech(np.concatenate(sound), tuple(ends))
