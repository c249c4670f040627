"""GPU-like delays around real engines, for timing. No threads, no clock but asyncio.sleep."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Generic, TypeVar

from voicepipe.audio import Pcm
from voicepipe.config.engine_config import DelaysConfig
from voicepipe.engines.base import (
    NO_HINTS,
    Asr,
    AsrHints,
    CanBreak,
    Delta,
    Engine,
    Engines,
    Hypothesis,
    Llm,
    OnPartial,
    Prompt,
    ReadsIpa,
    Restarts,
    Speech,
    Tts,
)

E = TypeVar("E", bound=Engine)


async def pause(ms: float) -> None:
    """Wait so many milliseconds; 0: others do not even get their turn."""
    if ms > 0:
        await asyncio.sleep(ms / 1000)


class DelayedAsrStream:
    """A recogniser's stream that adds a delay to each partial, to `settle`, and to `finish` when sound came after the
    last settle."""

    def __init__(self, asr: Asr, asr_ms: float, on_partial: OnPartial, hints: AsrHints) -> None:
        self._inner = asr.stream(self._later, hints)
        self._asr_ms = asr_ms
        self._on_partial = on_partial
        self._unsettled = True
        self._over = False

    def feed(self, pcm: Pcm) -> None:
        self._unsettled = True
        self._inner.feed(pcm)

    async def settle(self) -> Hypothesis:
        self._unsettled = False
        settled = await self._inner.settle()
        await pause(self._asr_ms)
        return settled

    async def finish(self) -> Hypothesis:
        self._over = True
        final = await self._inner.finish()
        await pause(self._asr_ms if self._unsettled else 0)
        return final

    def cancel(self) -> None:
        self._over = True
        self._inner.cancel()

    def _later(self, partial: Hypothesis) -> None:
        asyncio.get_running_loop().call_later(self._asr_ms / 1000, self._deliver, partial)

    def _deliver(self, partial: Hypothesis) -> None:
        if not self._over:
            self._on_partial(partial)


class _Around(Generic[E]):
    """An engine around another, which it starts, closes and reports on."""

    def __init__(self, inner: E) -> None:
        self._inner = inner

    async def start(self) -> None:
        await self._inner.start()

    async def close(self) -> None:
        await self._inner.close()

    @property
    def alive(self) -> bool:
        return self._inner.alive if isinstance(self._inner, CanBreak) else True

    @property
    def restarts(self) -> int:
        return self._inner.restarts if isinstance(self._inner, Restarts) else 0


class DelayedAsr(_Around[Asr]):
    """A recogniser that answers `asr_ms` later than the one inside it."""

    def __init__(self, inner: Asr, asr_ms: float) -> None:
        super().__init__(inner)
        self._asr_ms = asr_ms

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> DelayedAsrStream:
        return DelayedAsrStream(self._inner, self._asr_ms, on_partial, hints)


class DelayedLlm(_Around[Llm]):
    """A language model whose first delta comes `first_token_ms` later than that of the one inside it, and each further
    one `token_ms` later."""

    def __init__(self, inner: Llm, first_token_ms: float, token_ms: float) -> None:
        super().__init__(inner)
        self._first_token_ms = first_token_ms
        self._token_ms = token_ms

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        wait = self._first_token_ms
        async with aclosing(self._inner.generate(prompt)) as deltas:
            async for delta in deltas:
                await pause(wait)
                yield delta
                wait = self._token_ms

    async def warm(self, prompt: Prompt) -> None:
        await self._inner.warm(prompt)


class DelayedTts(_Around[Tts]):
    """A voice whose phrases begin `tts_ms` later than those of the one inside it."""

    def __init__(self, inner: Tts, tts_ms: float) -> None:
        super().__init__(inner)
        self._tts_ms = tts_ms

    @property
    def rate(self) -> int:
        return self._inner.rate

    @rate.setter
    def rate(self, rate: int) -> None:
        raise AttributeError("the rate is the inner engine's")

    def voices(self) -> Mapping[str, str]:
        return self._inner.voices()

    def voice_for(self, asked: str, language: str = "") -> str:
        return self._inner.voice_for(asked, language)

    def reads_ipa(self, voice: str) -> bool:
        return isinstance(self._inner, ReadsIpa) and self._inner.reads_ipa(voice)

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        wait = self._tts_ms
        async with aclosing(self._inner.speak(text, voice=voice, speed=speed, first=first)) as pieces:
            async for piece in pieces:
                await pause(wait)
                yield piece
                wait = 0


def delayed(engines: Engines, delays: DelaysConfig) -> Engines:
    """`engines` with GPU-like delays added to their own time; an engine without a delay is left as it is."""
    asr, llm, tts = engines.asr, engines.llm, engines.tts
    return Engines(
        vad=engines.vad,
        asr=DelayedAsr(asr, delays.asr_ms) if delays.asr_ms else asr,
        llm=DelayedLlm(llm, delays.first_token_ms, delays.token_ms)
        if delays.first_token_ms or delays.token_ms
        else llm,
        tts=DelayedTts(tts, delays.tts_ms) if delays.tts_ms else tts,
        turn=engines.turn,
    )
