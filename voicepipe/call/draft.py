"""What those who make ONE reply share with those who play it."""

import asyncio
from dataclasses import dataclass, field

from voicepipe.call.ladder import Ladder
from voicepipe.call.speech import Phrase, Take
from voicepipe.call.studio import Order, Studio
from voicepipe.call.telling import Telling
from voicepipe.turn.prompt import ToolCall
from voicepipe.turn.timing import Hop, TurnRecord

READY_PIECES = 3
"""Pieces that are made ahead of the gate or of playout's queue; a full queue holds up the voice, not the model."""


@dataclass(eq=False, slots=True)
class Draft:
    """From the order to the end of the reply."""

    studio: Studio
    order: Order
    record: TurnRecord
    telling: Telling = field(init=False)
    ladder: Ladder = field(init=False)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the turn is confirmed: before that nothing leaves the reply, and no tool runs."""
    pieces: "asyncio.Queue[Phrase | ToolCall | None]" = field(default_factory=lambda: asyncio.Queue(READY_PIECES))
    """To be played, in order. None: no more come."""
    over: bool = False
    """All of the reply went out, or it was ended: nothing is noted any more."""
    gave_up: bool = False
    """The model says nothing, or asks for one tool after the other: what is said is the fallback, and no answer."""
    take: Take = field(default_factory=Take)
    """What the model writes now is of this one."""
    message: str | None = None
    """Id of the reply's message, once it is in the conversation."""

    def __post_init__(self) -> None:
        self.telling = Telling(self.studio.errands)
        self.ladder = Ladder(self.studio.ladder, self.record, self.studio.clock)

    @property
    def spoken(self) -> bool:
        """It is sound, and not text alone."""
        return self.order.settings.modality == "audio"

    def withdraw(self) -> None:
        """What the model has written so far of this answer was none."""
        self.take.withdrawn = True
        self.take = Take()
        self.ladder.answering = False
        self.ladder.withdrawn = True

    def stamp(self, hop: Hop) -> None:
        """The reply reaches `hop` now."""
        if not self.over:  # A task that is cancelled may run on for a moment; the record is another reply's by then.
            self.record.stamp(hop, self.studio.clock())
