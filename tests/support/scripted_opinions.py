"""A scripted turn model."""

import asyncio

from voicepipe.audio import Pcm
from voicepipe.base.errors import EngineError


class ScriptedTurnModel:
    """Says the same of every utterance, `after_ms`; below 0 it fails."""

    def __init__(self, probability: float, after_ms: float = 0.0) -> None:
        self._probability = probability
        self._after_ms = after_ms

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def stream(self) -> "ScriptedTurnModel":
        return self

    def feed(self, pcm: Pcm) -> None: ...

    async def complete(self) -> float:
        await asyncio.sleep(self._after_ms / 1000)
        if self._probability < 0:
            raise EngineError("the scripted turn model fails")
        return self._probability
