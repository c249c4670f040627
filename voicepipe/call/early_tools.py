"""Tools that only read, run for replies that are only prepared: the caller may still go on.

Each belongs to a turn, by its record. The speculations of one turn share its runs: one that asks for the same as an
earlier one gets that one's run. A confirmed reply enters what it has used in the conversation (`ToolRuns.adopt`). The
rest is dropped, and the turn's record counts it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voicepipe.agent import Tool
from voicepipe.call.tool_run import ToolRun, request_text
from voicepipe.call.tool_runs import ToolRuns
from voicepipe.conversation.prompt import ToolCall
from voicepipe.conversation.timing import TurnRecord

OF_TURN = 6
"""Runs that one turn begins early. Its further tools wait until the turn is over."""
AT_A_TIME = 4
"""Early runs of one call that are not over, also dropped ones."""
DROPPED = 64
"""A call that has dropped so many begins none early any more: its speculations are mostly wrong."""


@dataclass(eq=False, slots=True)
class EarlyTool:
    """A run that was begun early. Times are seconds of the call's clock."""

    tool_run: ToolRun
    record: TurnRecord
    """The turn's."""
    began: float
    ended: float | None = None


class EarlyTools:
    """The early tool runs of one call."""

    def __init__(self, tool_runs: ToolRuns, clock: Callable[[], float]) -> None:
        self._tool_runs, self._clock = tool_runs, clock
        self._kept: list[EarlyTool] = []
        """Those of the present turn, and of the reply before it while that is not over."""
        self._begun: tuple[TurnRecord | None, int] = None, 0
        """The latest turn that began some, and how many."""
        self._running = self._dropped = 0

    def call_ids(self) -> set[str]:
        """The call ids of all that may still be adopted."""
        return {early.tool_run.call.call_id for early in self._kept}

    def may(self, asked: Sequence[tuple[Tool, ToolCall]], record: TurnRecord) -> bool:
        """Whether all of these may be run for a reply that is only prepared."""
        new = 0
        for tool, call in asked:
            text = request_text(tool, call)
            if not tool.reads_only:
                return False
            if not (self.find(text, record) or self._tool_runs.same(text)):
                new += 1
                if self._tool_runs.unsettled(text):
                    return False
        begun = self._begun[1] if self._begun[0] is record else 0
        return not new or (begun + new <= OF_TURN and self._running + new <= AT_A_TIME and self._dropped < DROPPED)

    def find(self, text: str, record: TurnRecord) -> EarlyTool | None:
        """The early run of this request for the same turn that goes on or was successful."""
        return next(
            (
                early
                for early in reversed(self._kept)
                if early.record is record and early.tool_run.request.text == text and not early.tool_run.failed
            ),
            None,
        )

    def begin(self, tool: Tool, call: ToolCall, about: Mapping[str, Any], record: TurnRecord) -> EarlyTool:
        """Run a tool that only reads, or join the run of the same request. Ask `may` before."""
        text = request_text(tool, call)
        if found := self.find(text, record):
            return found
        if same := self._tool_runs.same(text):
            return EarlyTool(same, record, self._clock())
        self.drop_others(record)
        self._begun = record, 1 + (self._begun[1] if self._begun[0] is record else 0)
        self._running += 1
        early = EarlyTool(self._tool_runs.begin_early(tool, call, about), record, self._clock())
        self._kept.append(early)
        assert early.tool_run.task

        def over(_: object) -> None:
            self._running -= 1
            early.ended = self._clock()

        early.tool_run.task.add_done_callback(over)
        return early

    def adopt(self, tool_run: ToolRun, before: str | None = None) -> None:
        """The reply is confirmed that uses it. `before`: as `ToolRuns.begin` has it."""
        self._kept = [early for early in self._kept if early.tool_run is not tool_run]
        self._tool_runs.adopt(tool_run, before)

    def drop(self, record: TurnRecord) -> None:
        """The reply to this turn is over: drop what it has not used."""
        self._drop([early for early in self._kept if early.record is record])

    def drop_others(self, record: TurnRecord | None = None) -> None:
        """Drop those of turns that nobody has answered; None: all, since the call is over."""
        self._drop([early for early in self._kept if early.record is not record])

    def _drop(self, dropped: Sequence[EarlyTool]) -> None:
        for early in dropped:
            self._kept.remove(early)
            self._dropped += 1
            early.record.tools_dropped += 1
            if early.tool_run.task and early.tool_run.tool.interruptible:
                early.tool_run.task.cancel()
