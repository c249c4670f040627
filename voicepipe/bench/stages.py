"""The three engines as the load sees them: those of a configuration (`configured.py`), or a test's."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from voicepipe.conversation.phrases import PhraseConfig


class BenchStage(Protocol):
    name: str
    """What it is."""


class HeardUtterance(Protocol):
    """What one caller says until the end of a turn: of `AsrStream` as much as the load needs."""

    def feed(self, pcm: Any) -> None:
        """Sound as it comes: int16[320] at 16 kHz, 20 ms."""

    async def settle(self) -> object:
        """Until the words of all that was fed are there. The utterance may go on."""

    def cancel(self) -> None:
        """It is over."""


class AsrStage(BenchStage, Protocol):
    def listen(self, call: int, told: Callable[[int], None]) -> HeardUtterance:
        """`told`: partial words are there, which cover so many samples."""


class LlmStage(BenchStage, Protocol):
    phrasing: PhraseConfig
    """How its words are cut into phrases: random ones have no commas."""

    def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
        """The text of one reply, as it is made. Closing it aborts the reply. `guess`: the turn may not be over."""


class TtsStage(BenchStage, Protocol):
    def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
        """A phrase; each time that more of its sound is in the host's memory."""
