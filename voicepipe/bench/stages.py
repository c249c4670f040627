"""The interfaces of the three engines to the load: those of a configuration (`configured.py`), or a test's."""

from collections.abc import AsyncGenerator, Callable
from typing import Any, Protocol

from voicepipe.conversation.phrases import PhraseConfig


class BenchStage(Protocol):
    """An engine as the load uses it."""

    name: str
    """The engine's name."""


class HeardUtterance(Protocol):
    """The words of one caller until the end of a turn: the part of `AsrStream` that the load needs."""

    def feed(self, pcm: Any) -> None:
        """Sound as it comes: int16[320] at 16 kHz, 20 ms."""

    async def settle(self) -> object:
        """Returns when the words of all that was fed have come. The utterance may go on."""

    def cancel(self) -> None:
        """End the utterance."""


class AsrStage(BenchStage, Protocol):
    """A recogniser as the load uses it."""

    def listen(self, call: int, on_words: Callable[[int], None]) -> HeardUtterance:
        """Begin an utterance. `on_words` is called with partial words, which cover so many samples."""


class LlmStage(BenchStage, Protocol):
    """A language engine as the load uses it."""

    phrasing: PhraseConfig
    """How its words are cut into phrases: random ones have no commas."""

    def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
        """The text of one reply, as it is made. Closing it aborts the reply. `guess`: the turn may not be over."""


class TtsStage(BenchStage, Protocol):
    """A voice as the load uses it."""

    def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
        """Speak a phrase; yields each time that more of its sound is in the host's memory."""
