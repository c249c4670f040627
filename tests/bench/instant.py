"""Engines that take no time."""

from collections.abc import AsyncGenerator, Callable

import numpy as np
from numpy.typing import NDArray

from voicepipe.bench.load import BY_LENGTH, TRAFFIC


class Instant:
    """Engines that take no time; what they were asked."""

    name, phrasing = "instant", BY_LENGTH

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.guesses = self.over = 0
        self.phrases: list[tuple[str, bool]] = []

    def listen(self, call: int, told: Callable[[int], None]) -> "InstantUtterance":
        return InstantUtterance(self, told)

    async def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
        self.guesses += guess
        for _ in range(TRAFFIC.reply_tokens):
            yield "la "

    async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
        self.phrases.append((text, first))
        yield
        yield


class InstantUtterance:
    def __init__(self, engine: Instant, told: Callable[[int], None]) -> None:
        self._engine, self._told, self._fed = engine, told, 0

    def feed(self, pcm: NDArray[np.int16]) -> None:
        self._engine.fed.append(pcm.size)
        self._fed += pcm.size
        self._told(self._fed - 320)

    async def settle(self) -> None:
        pass

    def cancel(self) -> None:
        self._engine.over += 1


SOUND = np.ones(16_000, np.int16)
