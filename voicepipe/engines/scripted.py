"""Deterministic engines for tests. No threads, no clock but asyncio.sleep.

What an engine "hears" or "says" is given to it beforehand; how long it takes is a constructor argument in milliseconds.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Mapping, Sequence

import numpy as np

from voicepipe.audio import Pcm, dbfs, ms_to_samples
from voicepipe.base.errors import EngineBusy
from voicepipe.engines.base import (
    Aside,
    Delta,
    Hypothesis,
    OnPartial,
    Prompt,
    Speech,
    ToolCall,
    Word,
)

Timeline = Sequence[tuple[int, str]]
"""(sample of the stream from which the word is known, word), in order."""

FAILS = "(fails)"
"""An utterance of this alone makes the recogniser fail."""
WORD_MS = 250
"""An utterance given as text is spoken at this pace."""


async def pause(ms: float) -> None:
    if ms > 0:
        await asyncio.sleep(ms / 1000)


class _Lifeless:
    """The `start` and `close` of an engine that holds nothing."""

    async def start(self) -> None:
        """Nothing to load."""

    async def close(self) -> None:
        """Nothing to release."""


# --- voice activity and recognition ------------------------------------------------------------------------------


class ScriptedVad(_Lifeless):
    """A voice detector for tests: whatever is louder than `floor_dbfs` is voice."""

    def __init__(self, floor_dbfs: float = -45.0) -> None:
        self._floor = floor_dbfs

    def stream(self) -> None:
        """Returns nothing: the detector has no memory."""

    def probabilities(self, asked: Sequence[tuple[None, Pcm]]) -> list[float]:
        """0.98 for a window louder than the floor, else 0.02."""
        return [0.98 if dbfs(window) > self._floor else 0.02 for _, window in asked]


class ScriptedAsrStream:
    """A recogniser's stream for tests: it knows its words by the number of samples fed, so partials grow as sound
    comes."""

    def __init__(self, timeline: Timeline, on_partial: OnPartial, settle_ms: float, finish_ms: float) -> None:
        self._timeline = timeline
        self._on_partial = on_partial
        self._settle_ms = settle_ms
        self._finish_ms = finish_ms
        self._fed = 0
        self._heard = 0
        self._over = False

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
        return Hypothesis(" ".join(word for _, word in self._timeline[: self._heard]), self._fed)

    async def settle(self) -> Hypothesis:
        settled = self._hypothesis()
        await pause(self._settle_ms)
        if settled.text == FAILS:
            raise EngineBusy("It was to fail.")
        return settled

    async def finish(self) -> Hypothesis:
        self._over = True
        await pause(self._finish_ms)
        return self._hypothesis()

    def cancel(self) -> None:
        self._over = True


class ScriptedAsr(_Lifeless):
    """A recogniser for tests: the n-th stream hears the n-th utterance, over and over. An utterance is its text (a word
    every 250 ms), or a timeline."""

    def __init__(
        self, utterances: Sequence[str | Timeline] = ("hello",), settle_ms: float = 0, finish_ms: float = 0
    ) -> None:
        self._timelines = [paced(said) if isinstance(said, str) else said for said in utterances]
        self._settle_ms = settle_ms
        self._finish_ms = finish_ms
        self.streams = 0
        """Streams made so far."""

    def stream(self, on_partial: OnPartial, *, language: str = "en", asked: str = "") -> ScriptedAsrStream:
        timeline = self._timelines[self.streams % len(self._timelines)] if self._timelines else ()
        self.streams += 1
        return ScriptedAsrStream(timeline, on_partial, self._settle_ms, self._finish_ms)


def paced(text: str, word_ms: float = WORD_MS) -> Timeline:
    """The timeline of `text`, a word every `word_ms` from the first sample on."""
    return [(ms_to_samples(index * word_ms), word) for index, word in enumerate(text.split())]


# --- language and speech -----------------------------------------------------------------------------------------


class ScriptedLlm(_Lifeless):
    """A language model for tests, which finds its replies in a table.

    It looks up the last message's text, case and outer space aside, and echoes what is not in the table. A reply is
    text, a tool call, or a sequence of both. A tool's result is looked up like any other text.
    """

    def __init__(
        self,
        replies: Mapping[str, Delta | Sequence[Delta]] | None = None,
        first_token_ms: float = 0,
        token_ms: float = 0,
        stalls_after: int | None = None,
        fails: int = 0,
    ) -> None:
        self._fails = fails
        """The first requests, so many of them, are refused."""
        self._stalls_after = stalls_after
        """Number of a reply's tokens after which nothing more comes, and no error."""
        self._replies = {said.strip().lower(): reply for said, reply in (replies or {}).items()}
        self._first_token_ms = first_token_ms
        self._token_ms = token_ms
        self.prompts: list[Prompt] = []
        """Every prompt that was asked for, in order."""

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        self.prompts.append(prompt)
        if len(self.prompts) <= self._fails:
            raise EngineBusy("the scripted model is busy")
        said = prompt.messages[-1].text if prompt.messages else ""
        reply = self._replies.get(said.strip().lower(), f"You said {said.strip()}." if said.strip() else "Hello.")
        deltas: list[Delta] = [reply] if isinstance(reply, str | ToolCall | Aside) else list(reply)
        if prompt.tool_choice == "none":
            deltas = [delta for delta in deltas if not isinstance(delta, ToolCall)] or ["I cannot do that."]
        wait = self._first_token_ms
        for count, token in enumerate(tokens(deltas, prompt.max_tokens)):
            if count == self._stalls_after:
                await asyncio.Event().wait()
            await pause(wait)
            yield token
            wait = self._token_ms

    async def warm(self, prompt: Prompt) -> None:
        """There is no cache."""


def tokens(deltas: Sequence[Delta], limit: int | None = None) -> list[Delta]:
    """`deltas` with their text cut into words, each with the space before it; at most `limit` words."""
    result: list[Delta] = []
    for delta in deltas:
        result += [delta] if not isinstance(delta, str) else re.findall(r"\s*\S+|\s+$", delta)
    return result if limit is None else result[:limit]


class ScriptedTts(_Lifeless):
    """A voice for tests: a tone for each word, `char_ms` long for each of its characters, and 20 ms of silence after
    it."""

    def __init__(
        self, char_ms: int = 60, first_ms: float = 0, rate: int = 24_000, stalls_at: str | None = None
    ) -> None:
        self.rate = rate
        self._stalls_at = stalls_at
        """At this word nothing more comes, and no error."""
        self._char_ms = char_ms
        self._first_ms = first_ms
        self.spoken: list[str] = []
        """Every text that was asked for, in order."""
        self.firsts: list[str] = []
        """Texts that a caller was waiting for."""

    def voices(self) -> Mapping[str, str]:
        return {"scripted": "en"}

    def voice_for(self, asked: str, language: str = "") -> str:
        return "scripted"

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        self.firsts += [text] if first else []
        self.spoken.append(text)
        words = text.split()
        if not words:
            return
        if self._stalls_at in words:
            await asyncio.Event().wait()
        await pause(self._first_ms)
        sound: list[Pcm] = []
        ends: list[Word] = []
        at = 0
        for word in words:
            size = ms_to_samples(len(word) * self._char_ms / speed, self.rate)
            # A quarter period in, so that the very first sample is audible.
            phase = 2 * np.pi * 440 * np.arange(size) / self.rate + np.pi / 2
            sound += [(8000 * np.sin(phase)).astype(np.int16), np.zeros(ms_to_samples(20, self.rate), np.int16)]
            ends.append(Word(word, at + size))
            at += size + sound[-1].size
        yield Speech(np.concatenate(sound), tuple(ends))
