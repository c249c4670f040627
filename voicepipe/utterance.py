"""What the caller is saying, while it is said: its sound on the way to the recogniser, and the words so far."""

import asyncio
from dataclasses import dataclass, field

from voicepipe.audio import Pcm
from voicepipe.engines.base import AsrStream
from voicepipe.turn.agreement import Agreement
from voicepipe.turn.pitch import Pitch
from voicepipe.turn.timing import TurnRecord


@dataclass(slots=True)
class Utterance:
    """From its first voiced sample to its commit."""

    item_id: str
    start: int
    """First voiced sample."""
    heard_from: int
    """First sample that the recogniser got: the prefix before it."""
    began: float
    """Monotonic seconds."""
    stream: AsrStream
    record: TurnRecord
    before: str = ""
    """The words of the turn that this one reopened."""
    partial: str = ""
    """The words since, as far as they are recognised while the caller speaks."""
    text: str = ""
    """The words since, when they were last asked for; frozen while a silence lasts."""
    announced: bool = False
    agreement: Agreement = field(default_factory=Agreement)
    pitch: Pitch = field(default_factory=Pitch)
    settling: "asyncio.Task[None] | None" = None

    @property
    def words(self) -> str:
        return f"{self.before} {self.text}".strip()

    def hear(self, pcm: Pcm) -> None:
        """More of the caller's sound."""
        self.stream.feed(pcm)
        self.pitch.push(pcm)
