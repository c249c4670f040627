"""What the caller hears while tools run: what these say of their progress, and their `while_running` texts."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from voicepipe.base.errors import VoicepipeError
from voicepipe.call.reply_context import ReplyContext
from voicepipe.call.speech import Phrase
from voicepipe.call.tool_run import ToolRun

AT_ONCE_MS = 100
"""A tool that takes no longer than this needs no words, however long the caller has waited before."""
LOOK_S = 0.05
"""Between looks at whether a tool has something new to say."""


def talkative(tool_runs: Sequence[ToolRun]) -> ToolRun | None:
    """The running tool whose text the caller hears next: one that tells of its progress, or the first that has a
    `while_running` text."""
    progress = (tool_run for tool_run in tool_runs if tool_run.progress and tool_run.bridge)
    return next(progress, None) or next((tool_run for tool_run in tool_runs if tool_run.bridge), None)


def bridged(tool_runs: Iterable[ToolRun], said: ToolRun) -> None:
    """Note that the caller hears the text of `said` while these run."""
    for tool_run in tool_runs:
        if tool_run is said and said.progress:
            said.progress = ""
        else:
            tool_run.bridged += tool_run.output is None


class ToolTalk:
    """Says in one reply what there is to say while tools run. Each text is one piece: it is queued as a whole, and then
    finished."""

    def __init__(self, reply_context: ReplyContext) -> None:
        self._reply_context = reply_context
        self._context = reply_context.context

    async def say(self, tool_runs: Sequence[ToolRun]) -> None:
        """Say the texts of these until they are over; nothing before the turn is confirmed."""
        if not self._reply_context.spoken:
            return
        clock = self._context.clock
        soonest, said = clock() + AT_ONCE_MS / 1000, False
        await self._reply_context.gate.wait()
        since = self._reply_context.record.stamps.get("voice_ended", clock())
        while any(tool_run.output is None for tool_run in tool_runs):
            tool_run = talkative(tool_runs)
            if tool_run is None:
                await asyncio.sleep(LOOK_S)
                continue
            tool, text = tool_run.tool, tool_run.bridge
            first = bool(tool_run.progress) or not said
            phrase = await self._whole(f"{text} ")
            await asyncio.sleep(soonest - clock())
            ms = tool.while_running_after_ms if first else tool.while_running_every_ms
            if not await self._due(ms, since, tool_runs, text):
                continue
            if phrase:
                bridged(tool_runs, tool_run)
                await self._reply_context.pieces.put(phrase)
            since, said = clock(), True

    async def _due(self, ms: float, since: float, tool_runs: Sequence[ToolRun], text: str) -> bool:
        """Wait until the caller has heard nothing for `ms`. Returns whether `text` is still what is to be said."""
        while (tool_run := talkative(tool_runs)) and tool_run.bridge == text:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._context.playout.quiet(ms, since)
                    return True
        return False

    async def _whole(self, text: str) -> Phrase | None:
        settings, speaker = self._reply_context.order.settings, self._reply_context.speaker
        with suppress(VoicepipeError):  # The voice fails: the answer itself will say so.
            phrase = await speaker.whole(text, voice=settings.voice, speed=settings.speed)
            return phrase and replace(phrase, stand_in=True)
        return None
