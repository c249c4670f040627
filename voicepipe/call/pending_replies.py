"""Replies that come later: to turns that are heard while something else goes on, and to what came of tools."""

from typing import Literal

import msgspec

from voicepipe.call.call_context import CallContext
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.conversation import Conversation
from voicepipe.call.hearing import Hearing
from voicepipe.call.speaking import Speaking
from voicepipe.call.tool_run import ToolRun
from voicepipe.conversation.prompt import ToolCall


class PendingReplies:
    """The replies that one call still has to make: to turns that were heard while it waited, and to tool results."""

    def __init__(
        self, context: CallContext, conversation: Conversation, hearing: Hearing, speaking: Speaking, tasks: CallTasks
    ) -> None:
        self.waiting: set[str] = set()
        """Why turns are not answered for now: keys that are still being pressed, on either side, or a transfer."""
        self._context = context
        self._tool_runs = context.tool_runs
        self._tool_runs.on_over = self._tool_over
        self._conversation = conversation
        self._hearing, self._speaking = hearing, speaking
        self._tasks = tasks
        self._what: Literal["", "turn", "failure", "keys"] = ""
        """What the pending reply is to answer; "": none is pending."""
        self._since = 0
        """How many replies the model had made by then. One more reply answers all that is pending."""

    @property
    def answers(self) -> bool:
        """Whether the caller's turns lead to replies now, without the client's asking."""
        return self.answers_unasked and not self.waiting

    @property
    def answers_unasked(self) -> bool:
        """Whether the caller's turns lead to replies without the client's asking."""
        detection = self._speaking.settings.turn_detection
        return detection is not None and detection.create_response

    @property
    def works(self) -> bool:
        """Whether a tool of ours runs, or a reply to its result is pending: the caller need not speak meanwhile."""
        return bool(self._tool_runs.running() or self._results())

    def wait(self, what: str) -> None:
        """Until `go_on` with the same reason the caller is heard and not answered, and silence does not matter."""
        self.waiting.add(what)
        self._speaking.discard()

    def go_on(self, what: str) -> None:
        """Stop waiting for this reason, and answer what has not been answered meanwhile."""
        self.waiting.discard(what)
        self.catch_up()

    def turn(self) -> None:
        """A reply to a turn follows later, unless the client asks for replies itself."""
        if self.answers_unasked:
            self._what, self._since = "turn", self._speaking.prompted

    def failed(self, call: ToolCall, why: str) -> None:
        """A tool of ours that the model has called failed: a reply follows later, in which the model reads why and says
        so."""
        self._context.used(call, f"Error: {why}")
        self._what, self._since = "failure", self._speaking.prompted

    def keys_over(self) -> None:
        """The conversation has what came of keys that the model has called for. A reply follows later, unless the
        client asks for replies itself; it may be silent."""
        if self.answers_unasked:
            self._what, self._since = "keys", self._speaking.prompted

    def _tool_over(self) -> None:
        """The conversation has a new tool result. A prepared reply does not know it, so drop that, and answer it if one
        is due."""
        self._speaking.discard()
        self.catch_up()

    def catch_up(self) -> None:
        """Begin the pending reply, if there is one and nothing is in its way. A tool result that the caller has not
        heard is one, too."""
        # A voice that is heard now ends as a turn, whose reply answers everything, or as a cough.
        if self._hearing.utterance or self._tasks.over:
            return
        results, what = self._results(), self._what if self._speaking.prompted == self._since else ""
        if not (what or results) or self.waiting or self._speaking.reply:
            return
        settings = self._speaking.settings
        if what == "failure":  # A person hears that it failed before it is tried again.
            settings = msgspec.structs.replace(settings, tool_choice="none")
        elif (results or what == "keys") and settings.tool_choice != "none":
            # Nobody has said anything that a tool could be forced upon.
            settings = msgspec.structs.replace(settings, tool_choice="auto")
        self._tool_runs.bring_up(results)
        order = self._context.order(settings)
        if results:  # One reply for each; what the prompt has no room for is brought up after it.
            self._tool_runs.put_off(self._tool_runs.known(order.prompt))
        self._speaking.begin(order)

    def _results(self) -> list[ToolRun]:
        return self._tool_runs.pending() if self.answers_unasked and not self._client_works() else []

    def _client_works(self) -> bool:
        """Whether a tool of the client's has been called: then the client asks for the next reply itself, perhaps at
        once."""
        last = self._conversation.last()
        return last is not None and last.kind != "message"
