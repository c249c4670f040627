"""The state that the making and the playing half of ONE reply share."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from voicepipe.agent import Keep
from voicepipe.call.call_context import CallContext, ReplyOrder
from voicepipe.call.late_reply import LateReply
from voicepipe.call.speech import AnswerDraft, Phrase, PhraseSpeaker
from voicepipe.call.tool_run import ToolRun
from voicepipe.call.tool_runs import ToolRuns
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import Hop, TurnRecord

READY_PIECES = 3
"""Pieces that are made ahead of the gate or of playout's queue; a full queue holds up the voice, not the model."""


class ResultDelivery:
    """Which tool results one reply tells, and how much of that the caller has heard.

    The model answers once more after each of its calls of tools. An answer that ends in such calls tells nothing: "Let
    me see" comes before what there is to tell.
    """

    def __init__(self, tool_runs: ToolRuns) -> None:
        self.knows: list[ToolRun] = []
        """The due tool runs whose results are in the prompt, or have come since; a reply beside the conversation tells
        the caller of none."""
        self.answer = 0
        """The number of the model's answer that is being made."""
        self._tool_runs = tool_runs
        self._began: dict[ToolRun, int] = {}
        """How many sentences were said before the first that tells of it."""
        self._ends: list[int] = []
        """The sample of the reply at which each sentence was heard."""

    def says(self, answer: int, ends: Iterable[int]) -> None:
        """Words of the model's answer number `answer` begin to be heard; its sentences end at the samples `ends` of the
        reply."""
        if answer == self.answer:
            new = [tool_run for tool_run in self.knows if tool_run not in self._began]
            self._began |= dict.fromkeys(new, len(self._ends))
            self._tool_runs.delivered(new)
            self._ends += ends

    def calls_tools(self) -> None:
        """The answer that was made so far ends in calls of tools."""
        self.answer += 1
        self._tool_runs.taken_back(self._began)
        self._began.clear()

    def broke_off(self, heard: int) -> list[ToolRun]:
        """The caller heard only `heard` samples of the reply. Results of which that holds no whole sentence are due
        again; returns these."""
        missed = [
            tool_run for tool_run, before in self._began.items() if all(end > heard for end in self._ends[before:])
        ]
        self._tool_runs.taken_back(missed)
        return missed


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A point in a reply at which another agent takes over, in order with the sound."""

    call: ToolCall
    result: str
    """The call's result, as the other agent reads it."""
    keep: Keep
    settings: CallSettings
    """Those of the other agent."""
    played: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when all before it went to the line: the other agent has the call."""


Piece = Phrase | ToolCall | HandedOver | None


@dataclass(eq=False, slots=True)
class ReplyContext:
    """The state that the making and the playing half of one reply share."""

    context: CallContext
    order: ReplyOrder
    record: TurnRecord
    delivery: ResultDelivery = field(init=False)
    late_reply: LateReply = field(init=False)
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the turn is confirmed: before that nothing leaves the reply, and only tools that read run."""
    pieces: "asyncio.Queue[Piece]" = field(default_factory=lambda: asyncio.Queue(READY_PIECES))
    """Pieces to be played, in order. None: no more come."""
    over: bool = False
    """All of the reply went out, or it was ended: nothing is noted any more."""
    gave_up: bool = False
    """The model says nothing, or calls one tool after the other: the fallback is said, and no answer."""
    draft: AnswerDraft = field(default_factory=AnswerDraft)
    """The draft that the model writes now."""
    message: str | None = None
    """Id of the reply's message, once it is in the conversation."""

    def __post_init__(self) -> None:
        self.delivery = ResultDelivery(self.context.tool_runs)
        self.late_reply = LateReply(self.context.ladder, self.record, self.context.clock)

    @property
    def speaker(self) -> PhraseSpeaker:
        """The speaker for the agent that replies now."""
        return self.context.speaker(self.order.settings.agent)

    @property
    def spoken(self) -> bool:
        """Whether the reply is sound, and not text alone."""
        return self.order.settings.modality == "audio"

    def withdraw(self) -> None:
        """The engine says that what the model has written of this answer was none: begin a new draft."""
        self.draft.withdrawn = True
        self.draft = AnswerDraft()
        self.late_reply.answering = False
        self.late_reply.withdrawn = True

    def stamp(self, hop: Hop) -> None:
        """Note in the turn's record that the reply reaches `hop` now."""
        if not self.over:  # A task that is cancelled may run on for a moment; the record is another reply's by then.
            self.record.stamp(hop, self.context.clock())
