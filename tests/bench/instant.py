"""Engines that take no time."""

from collections.abc import AsyncGenerator

import numpy as np
from numpy.typing import NDArray

from tests.support.scripted import ScriptedLlm, ScriptedTts
from voicepipe.bench.load import BY_LENGTH, TRAFFIC
from voicepipe.bench.play import PlayedEngines
from voicepipe.engines.base import NO_HINTS, Asr, AsrHints, Delta, Hypothesis, Llm, OnPartial, Prompt, Speech, Tts

SOUND = np.ones(16_000, np.int16)


def playing(asr: Asr | None = None, llm: Llm | None = None, tts: Tts | None = None) -> PlayedEngines:
    """These engines, asked nothing in particular."""
    return PlayedEngines(lambda call, guess: Prompt((), speculative=guess), asr, llm, tts, BY_LENGTH)


class InstantAsr:
    """Hears at once all but the last 20 ms; what it was fed."""

    def __init__(self) -> None:
        self.fed: list[int] = []

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> "InstantStream":
        return InstantStream(self, on_partial)


class InstantStream:
    def __init__(self, asr: InstantAsr, on_partial: OnPartial) -> None:
        self._asr, self._on_partial, self._fed = asr, on_partial, 0

    def feed(self, pcm: NDArray[np.int16]) -> None:
        self._asr.fed.append(pcm.size)
        self._fed += pcm.size
        self._on_partial(Hypothesis("", self._fed - 320))

    async def settle(self) -> Hypothesis:
        return Hypothesis()

    async def finish(self) -> Hypothesis:
        return Hypothesis()

    def cancel(self) -> None:
        pass


class InstantLlm(ScriptedLlm):
    """Says as many words as a reply has tokens; how many of its replies were guesses."""

    guesses = 0

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.guesses += prompt.speculative
        for _ in range(TRAFFIC.reply_tokens):
            yield "la "


class InstantTts(ScriptedTts):
    """Speaks in two pieces; what it was to speak, and whether a caller waited."""

    def __init__(self) -> None:
        super().__init__()
        self.phrases: list[tuple[str, bool]] = []

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        self.phrases.append((text, first))
        yield Speech(SOUND)
        yield Speech(SOUND)


def instant() -> PlayedEngines:
    """All of them."""
    return playing(InstantAsr(), InstantLlm(), InstantTts())
