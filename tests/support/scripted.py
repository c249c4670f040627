"""Deterministic engines. No threads, no clock but asyncio.sleep.

What an engine "hears" or "says" is given to it beforehand; how long it takes is a constructor argument in milliseconds.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

from voicepipe.base.errors import EngineBusy
from voicepipe.engines import scripted
from voicepipe.engines.base import (
    NO_HINTS,
    AsrHints,
    Delta,
    Hypothesis,
    OnPartial,
    Prompt,
    Speech,
    StreamCorrection,
    ToolCall,
)
from voicepipe.engines.delayed import pause
from voicepipe.engines.scripted import ScriptedVad, Timeline

__all__ = ["FAILS", "ScriptedAsr", "ScriptedAsrStream", "ScriptedLlm", "ScriptedTts", "ScriptedVad", "pause", "tokens"]
FAILS = "(fails)"
"""An utterance of this alone makes the recogniser fail."""


class ScriptedAsrStream(scripted.ScriptedAsrStream):
    """A recogniser's stream that takes its time."""

    def __init__(self, timeline: Timeline, on_partial: OnPartial, settle_ms: float, finish_ms: float) -> None:
        super().__init__(timeline, on_partial)
        self._settle_ms = settle_ms
        self._finish_ms = finish_ms

    async def settle(self) -> Hypothesis:
        settled = await super().settle()
        await pause(self._settle_ms)
        if settled.text == FAILS:
            raise EngineBusy("It was to fail.")
        return settled

    async def finish(self) -> Hypothesis:
        self._over = True
        await pause(self._finish_ms)
        return await super().finish()


class ScriptedAsr(scripted.ScriptedAsr):
    """A recogniser: the n-th stream hears the n-th utterance, over and over. An utterance is its text (a word every 250
    ms), or a timeline."""

    def __init__(
        self, utterances: Sequence[str | Timeline] = ("hello",), settle_ms: float = 0, finish_ms: float = 0
    ) -> None:
        super().__init__(())
        self._timelines = [scripted.paced(said) if isinstance(said, str) else said for said in utterances]
        self._settle_ms = settle_ms
        self._finish_ms = finish_ms

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> ScriptedAsrStream:
        return ScriptedAsrStream(self._next(), on_partial, self._settle_ms, self._finish_ms)


class ScriptedLlm(scripted.ScriptedLlm):
    """A language model that finds its replies in a table.

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
        deltas: list[Delta] = [reply] if isinstance(reply, str | ToolCall | StreamCorrection) else list(reply)
        if prompt.tool_choice == "none":
            deltas = [delta for delta in deltas if not isinstance(delta, ToolCall)] or ["I cannot do that."]
        wait = self._first_token_ms
        for count, token in enumerate(tokens(deltas, prompt.max_tokens)):
            if count == self._stalls_after:
                await asyncio.Event().wait()
            await pause(wait)
            yield token
            wait = self._token_ms


def tokens(deltas: Sequence[Delta], limit: int | None = None) -> list[Delta]:
    """`deltas` with their text cut into words, each with the space before it; at most `limit` words."""
    result: list[Delta] = []
    for delta in deltas:
        result += [delta] if not isinstance(delta, str) else scripted.tokens(delta)
    return result[:limit]


class ScriptedTts(scripted.ScriptedTts):
    """A voice: a tone for each word, `char_ms` long for each of its characters, and 20 ms of silence after it."""

    def __init__(
        self, char_ms: int = 60, first_ms: float = 0, rate: int = 24_000, stalls_at: str | None = None
    ) -> None:
        self.rate = rate
        self.char_ms = char_ms
        self._stalls_at = stalls_at
        """At this word nothing more comes, and no error."""
        self._first_ms = first_ms
        self.spoken: list[str] = []
        """Every text that was asked for, in order."""
        self.voiced: list[tuple[str, str]] = []
        """The voice and the text of each."""
        self.firsts: list[str] = []
        """Texts that a caller was waiting for."""

    def voices(self) -> Mapping[str, str]:
        return {"scripted": "en", "anna": "en", "bert": "en", "claire": "fr"}

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked if asked in self.voices() else "claire" if language == "fr" else "scripted"

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        self.firsts += [text] if first else []
        self.spoken.append(text)
        self.voiced.append((voice, text))
        if not text.strip():
            return
        if self._stalls_at in text.split():
            await asyncio.Event().wait()
        await pause(self._first_ms)
        async with aclosing(super().speak(text, voice=voice, speed=speed, first=first)) as pieces:
            async for piece in pieces:
                yield piece
