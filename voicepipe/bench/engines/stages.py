"""The three engines as the load sees them. Protocols; `close` ends the threads and frees the memory."""

from collections.abc import AsyncGenerator
from typing import Protocol


class Stage(Protocol):
    name: str
    """What it is, with its version: a stand-in says that it is one."""
    weights: int

    def close(self) -> None: ...


class AsrStage(Stage, Protocol):
    async def read(self, call: int, heard_s: float, *, final: bool) -> bool:
        """The words of the last `heard_s` seconds. False: a newer reading of this call took its place."""


class LlmStage(Stage, Protocol):
    def reply(self, call: int) -> AsyncGenerator[int, None]:
        """How many tokens of the reply there are, each time that there are more. Closing it aborts the reply."""


class TtsStage(Stage, Protocol):
    async def speak(self, call: int, *, first: bool) -> None:
        """A first phrase or a later one, as speech in the host's memory."""
