"""What those who make ONE reply share with those who play it."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from voicepipe.call.call_context import CallContext, ReplyOrder
from voicepipe.call.late_reply import LateReply
from voicepipe.call.speech import AnswerDraft, Phrase
from voicepipe.call.tool_runs import ToolRun, ToolRuns
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import Hop, TurnRecord

READY_PIECES = 3
"""Pieces that are made ahead of the gate or of playout's queue; a full queue holds up the voice, not the model."""


class ResultDelivery:
    """Which results ONE reply tells, and how much of that the caller has heard.

    The model answers once more after each of its calls of tools. An answer that ends in such calls tells nothing: "Let
    me see" comes before what there is to tell.
    """

    def __init__(self, tool_runs: ToolRuns) -> None:
        self.knows: list[ToolRun] = []
        """The untold tools whose results stand in the prompt, or have come since; a reply beside the conversation tells
        the caller of none."""
        self.answer = 0
        """The number of the model's answer that is made."""
        self._tool_runs = tool_runs
        self._began: dict[ToolRun, int] = {}
        """How many sentences were said before the first that tells of it."""
        self._ends: list[int] = []
        """The sample of the reply at which each sentence was heard."""

    def says(self, answer: int, ends: Iterable[int]) -> None:
        """Words of the model's answer of that number begin to be heard; sentences end at these samples."""
        if answer == self.answer:
            new = [tool_run for tool_run in self.knows if tool_run not in self._began]
            self._began |= dict.fromkeys(new, len(self._ends))
            self._tool_runs.told(new)
            self._ends += ends

    def calls_tools(self) -> None:
        """The answer that was made so far ends in calls of tools."""
        self.answer += 1
        self._tool_runs.taken_back(self._began)
        self._began.clear()

    def broke_off(self, heard: int) -> list[ToolRun]:
        """The caller heard `heard` samples of the reply: results of which that holds no whole sentence were not told.
        Returns these."""
        missed = [
            tool_run for tool_run, before in self._began.items() if all(end > heard for end in self._ends[before:])
        ]
        self._tool_runs.taken_back(missed)
        return missed


@dataclass(eq=False, slots=True)
class ReplyContext:
    """From the order to the end of the reply."""

    context: CallContext
    order: ReplyOrder
    record: TurnRecord
    delivery: ResultDelivery = field(init=False)
    ladder: LateReply = field(init=False)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the turn is confirmed: before that nothing leaves the reply, and no tool runs."""
    pieces: "asyncio.Queue[Phrase | ToolCall | None]" = field(default_factory=lambda: asyncio.Queue(READY_PIECES))
    """To be played, in order. None: no more come."""
    over: bool = False
    """All of the reply went out, or it was ended: nothing is noted any more."""
    gave_up: bool = False
    """The model says nothing, or asks for one tool after the other: what is said is the fallback, and no answer."""
    take: AnswerDraft = field(default_factory=AnswerDraft)
    """What the model writes now is of this one."""
    message: str | None = None
    """Id of the reply's message, once it is in the conversation."""

    def __post_init__(self) -> None:
        self.delivery = ResultDelivery(self.context.tool_runs)
        self.ladder = LateReply(self.context.ladder, self.record, self.context.clock)

    @property
    def spoken(self) -> bool:
        """It is sound, and not text alone."""
        return self.order.settings.modality == "audio"

    def withdraw(self) -> None:
        """What the model has written so far of this answer was none."""
        self.take.withdrawn = True
        self.take = AnswerDraft()
        self.ladder.answering = False
        self.ladder.withdrawn = True

    def stamp(self, hop: Hop) -> None:
        """The reply reaches `hop` now."""
        if not self.over:  # A task that is cancelled may run on for a moment; the record is another reply's by then.
            self.record.stamp(hop, self.context.clock())
