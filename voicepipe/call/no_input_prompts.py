"""The caller says nothing: they are asked again, or hear that a tool still works for them."""

from voicepipe.call.call_context import CallContext
from voicepipe.call.pending_replies import PendingReplies
from voicepipe.call.speaking import Speaking
from voicepipe.call.tool_talk import bridged, talkative
from voicepipe.turn.no_input import NoInput


class NoInputPrompts(NoInput):
    """Decides what to say when the caller of one call says nothing. Times are samples of the caller's sound."""

    def __init__(self, context: CallContext, speaking: Speaking, pending_replies: PendingReplies) -> None:
        super().__init__()
        self._speaking, self._pending_replies = speaking, pending_replies
        self._tool_runs = context.tool_runs
        self._fallback_ms = context.ladder.fallback_ms
        """So long the caller waits for a reply that had no words; 0: they are asked as after others."""

    def passes(self, now: int, *, loud: bool) -> None:
        """Nobody has spoken up to `now`: say what is due, if anything is. `loud`: as `LineSound`."""
        speaking, settings = self._speaking, self._speaking.settings
        if speaking.reply or self._pending_replies.waiting or settings.turn_detection is None:
            return self.wait(now)
        if self._pending_replies.works:
            text = self._bridge(self.work(now))
        elif speaking.mute and 0 < self._fallback_ms <= self.lasts(now):
            text = settings.agent.fallback
        else:
            text = self.line(now, settings.agent, loud=loud)
        if text:
            speaking.say(text)

    def _bridge(self, quiet_ms: float) -> str:
        """The next text of a tool that runs and that no reply waits for, since the caller interrupted that reply; "" if
        none is due after so much silence."""
        running = self._tool_runs.running()
        tool_run = talkative(running)
        if not (tool_run and self._speaking.audible and self._pending_replies.answers_unasked):
            return ""
        if quiet_ms < tool_run.tool.while_running_every_ms:
            return ""
        text = tool_run.bridge
        bridged(running, tool_run)
        return text
