"""What those who make ONE reply share with those who play it."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from voicepipe.call.errands import Errand, Errands
from voicepipe.call.ladder import Ladder
from voicepipe.call.speech import Phrase, Take
from voicepipe.call.studio import Order, Studio
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import Hop, TurnRecord

READY_PIECES = 3
"""Pieces that are made ahead of the gate or of playout's queue; a full queue holds up the voice, not the model."""


class Telling:
    """Which results ONE reply tells, and how much of that the caller has heard.

    The model answers once more after each of its calls of tools. An answer that ends in such calls tells nothing: "Let
    me see" comes before what there is to tell.
    """

    def __init__(self, errands: Errands) -> None:
        self.knows: list[Errand] = []
        """The untold tools whose results stand in the prompt, or have come since; a reply beside the conversation tells
        the caller of none."""
        self.answer = 0
        """The number of the model's answer that is made."""
        self._errands = errands
        self._began: dict[Errand, int] = {}
        """How many sentences were said before the first that tells of it."""
        self._ends: list[int] = []
        """The sample of the reply at which each sentence was heard."""

    def says(self, answer: int, ends: Iterable[int]) -> None:
        """Words of the model's answer of that number begin to be heard; sentences end at these samples."""
        if answer == self.answer:
            new = [errand for errand in self.knows if errand not in self._began]
            self._began |= dict.fromkeys(new, len(self._ends))
            self._errands.told(new)
            self._ends += ends

    def calls_tools(self) -> None:
        """The answer that was made so far ends in calls of tools."""
        self.answer += 1
        self._errands.taken_back(self._began)
        self._began.clear()

    def broke_off(self, heard: int) -> list[Errand]:
        """The caller heard `heard` samples of the reply: results of which that holds no whole sentence were not told.
        Returns these."""
        missed = [errand for errand, before in self._began.items() if all(end > heard for end in self._ends[before:])]
        self._errands.taken_back(missed)
        return missed


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
