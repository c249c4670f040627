"""Scripted engines that hang on purpose, and say so as real ones do: what hangs owes an answer
(`engines/hosting/liveness.py`)."""

import asyncio
from collections.abc import AsyncGenerator

from tests.support.scripted import ScriptedAsr, ScriptedAsrStream, ScriptedLlm, ScriptedTts
from voicepipe.engines.base import NO_HINTS, AsrHints, Delta, Hypothesis, OnPartial, Prompt, Speech
from voicepipe.engines.hosting.liveness import Liveness

LIMIT_S = 4.0
"""These engines' own limit."""


def now() -> float:
    """Of virtual time."""
    return asyncio.get_running_loop().time()


class Fault:
    """Of one engine. Between `begin` and `end` nothing comes of it."""

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._liveness = Liveness(now)
        self._limit_s = limit_s
        self._works = asyncio.Event()
        self._works.set()

    def begin(self) -> None:
        self._works.clear()

    @property
    def works(self) -> bool:
        return self._works.is_set()

    def end(self) -> None:
        self._works.set()
        self._liveness.moved()  # Real engines are asked for something small, or made anew.

    async def through(self) -> None:
        """Returns where the engine works."""
        with self._liveness.asked(self._limit_s):
            await self._works.wait()
            self._liveness.moved()

    @property
    def alive(self) -> bool:
        return self._liveness.alive


class FaultyAsr(ScriptedAsr):
    def __init__(self, fault: Fault, *hears: str, settle_ms: float = 10) -> None:
        super().__init__(hears, settle_ms, settle_ms)
        self._fault = fault

    @property
    def alive(self) -> bool:
        return self._fault.alive

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> "FaultyStream":
        stream = super().stream(on_partial, hints)
        faulty = FaultyStream(stream._timeline, on_partial, stream._settle_ms, stream._finish_ms)
        faulty._fault = self._fault
        return faulty


class FaultyStream(ScriptedAsrStream):
    _fault: Fault

    def _deliver(self, hypothesis: Hypothesis) -> None:
        if self._fault.works:
            super()._deliver(hypothesis)

    async def settle(self) -> Hypothesis:
        await self._fault.through()
        return await super().settle()

    async def finish(self) -> Hypothesis:
        await self._fault.through()
        return await super().finish()


class FaultyLlm(ScriptedLlm):
    def __init__(self, fault: Fault) -> None:
        super().__init__(first_token_ms=5)
        self._fault = fault

    @property
    def alive(self) -> bool:
        return self._fault.alive

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        await self._fault.through()
        async for delta in super().generate(prompt):
            yield delta


class FaultyTts(ScriptedTts):
    def __init__(self, fault: Fault) -> None:
        super().__init__(first_ms=5)
        self._fault = fault

    @property
    def alive(self) -> bool:
        return self._fault.alive

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        await self._fault.through()
        async for speech in super().speak(text, voice=voice, speed=speed, first=first):
            yield speech
