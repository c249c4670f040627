"""The text of ONE reply: the model is asked, and asked again with what came of the tools that it called.

Until the gate opens no tool is begun. All tools of one answer of the model's run at the same time.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from itertools import count

from voicepipe.base.errors import EngineError, EngineStalled, ToolError, VoicepipeError
from voicepipe.base.tasks import TaskGroup
from voicepipe.call.ahead import Ahead
from voicepipe.call.draft import Draft
from voicepipe.call.errands import Errand, bridged, talkative
from voicepipe.call.speech import Phrase
from voicepipe.conversation.events import TOOL_CHARS, TOOL_NAME_CHARS, ToolUse
from voicepipe.conversation.phrases import Phraser, ends_sentence
from voicepipe.conversation.prompt import Message, Prompt, ToolCall
from voicepipe.conversation.transfer import END_CALL, TRANSFER_TOOL
from voicepipe.engines.base import Aside

TOOL_ROUNDS = 5
AT_ONCE_MS = 100
"""A tool that takes no longer than this needs no words, however long the caller has waited before."""
NO_TOOLS = (
    "What you wrote to call a tool could not be read: nothing was done, and no tool works in this answer. Say in plain "
    "words that you cannot do that at the moment, or answer without it."
)
FIRST_TELL = "not done, since other tools were called with it; tell the caller what came of those first"


@dataclass(slots=True)
class _Use:
    """A tool that the model has called, as long as the reply is made."""

    call: ToolCall
    began: float
    errand: Errand | None = None
    """None: it was not begun."""
    why: str = ""
    """It was not."""
    ended: float | None = None


@dataclass(slots=True)
class _Answer:
    """One answer of the model's: it answers again after its calls of tools."""

    said: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    called_as_text: bool = False

    @property
    def text(self) -> str:
        return "".join(self.said)


class Writer:
    """Made for one reply."""

    def __init__(self, draft: Draft) -> None:
        self._hurry = draft.studio.ladder.first_phrase == "short"
        self.cutter = Phraser(hurry=self._hurry)
        self.tokens = 0
        self.awaited = True
        """The caller hears nothing until the next phrase is there."""
        self.farewell: ToolCall | None = None
        """A transfer, or a goodbye: to be carried out once the reply was heard."""
        self.talks = False
        """Tools run that have something to say meanwhile."""
        self.whole = False
        """The model failed behind a whole sentence: there is no need to say anything in its place."""
        self.mute = False
        """It wrote nothing that is meant for the caller."""
        self._uses: list[_Use] = []
        self._draft = draft
        self._studio, self._order, self._record = draft.studio, draft.order, draft.record
        self._telling, self._ladder = draft.telling, draft.ladder

    async def texts(self) -> AsyncGenerator[str, None]:
        """Phrases to be said, in order."""
        prompt, agent = self._order.prompt, self._order.settings.agent
        self._telling.knows = self._studio.errands.known(prompt) if self._order.remembered else []
        for _ in range(TOOL_ROUNDS):
            answer = _Answer()
            async with aclosing(self._phrases(prompt, answer)) as phrases:
                async for text in phrases:
                    yield text
            if answer.calls:
                await self._draft.gate.wait()
                more = await self._carry_out(self._studio.named(answer.calls, prompt))
                if more is None:
                    if (
                        self.farewell
                        and self.farewell.name == END_CALL
                        and not self._ladder.answering
                        and agent.goodbye
                    ):
                        yield agent.goodbye
                    return
                prompt = self._next(prompt, answer.text, more)
            elif answer.called_as_text and prompt.tool_choice != "none":
                prompt = replace(self._next(prompt, answer.text, [Message("system", NO_TOOLS)]), tool_choice="none")
            else:
                self.mute = answer.called_as_text and not self._ladder.answering
                if self._ladder.answering or self.mute:
                    return
                break
        self._draft.gave_up = True
        yield agent.fallback

    async def _phrases(self, prompt: Prompt, answer: "_Answer") -> AsyncGenerator[str, None]:
        """Those of one answer of the model's, and what else it wrote. What came before an engine failed is said."""
        try:
            async with Ahead(self._studio.engines.llm.generate(prompt), self._draft.withdraw) as deltas:
                while (delta := await self._ladder.next(deltas)) is not None:
                    self._draft.stamp("token")
                    take = self._draft.take
                    if isinstance(delta, ToolCall):
                        answer.calls.append(delta)
                    elif delta is Aside.WITHDRAWN:
                        answer.said.clear()
                        answer.called_as_text = False
                        self.cutter, self.awaited = Phraser(hurry=self._hurry), True
                    elif delta is Aside.CALL_AS_TEXT:
                        answer.called_as_text = True
                    else:
                        self.tokens += 1
                        answer.said.append(delta)
                        for text in self.cutter.push(delta):
                            if not take.withdrawn:
                                yield text
        except EngineError as error:
            self.whole = _ends(answer.text)
            if self.whole or not isinstance(error, EngineStalled):  # Half a sentence that is seconds old helps nobody.
                for text in self.cutter.flush():
                    yield text if self.whole else f"{text.rstrip()} "  # The fallback follows.
            raise
        for text in self.cutter.flush():
            yield text

    def sentence(self) -> str:
        """Whole sentences that came and were not said yet, when no more is waited for; empty: there are none."""
        text = "".join(self.cutter.flush())
        return text if _ends(text) else ""

    def _next(self, prompt: Prompt, said: str, more: Sequence[Message]) -> Prompt:
        before = (Message("assistant", said),) if said.strip() else ()
        # A choice that forces a tool has been obeyed; it would be called again and again.
        choice = prompt.tool_choice if prompt.tool_choice == "none" else "auto"
        messages = (*prompt.messages, *before, *more)
        return replace(prompt, messages=messages, tool_choice=choice, speculative=False)

    def tools(self) -> tuple[ToolUse, ...]:
        """Those of the agent's that the reply had run so far."""
        return tuple(map(self._told, self._uses))

    def _told(self, use: _Use) -> ToolUse:
        since, errand = self._record.stamps.get("voice_ended"), use.errand
        return ToolUse(
            use.call.name[:TOOL_NAME_CHARS],
            took=None if use.ended is None else round(1000 * (use.ended - use.began), 1),
            at=None if since is None else round(1000 * (use.began - since), 1),
            failed=errand.failed if errand else True,
            arguments=use.call.arguments[:TOOL_CHARS],
            result=((errand.output or "") if errand else use.why)[:TOOL_CHARS],
        )

    async def _carry_out(self, calls: Sequence[ToolCall]) -> list[Message] | None:
        """What the model reads next; None: it is not asked again."""
        if len(calls) == 1 and self._is_ours(calls[0]):
            self.farewell = calls[0]  # Nothing follows it: it is carried out when the reply has been heard.
            return None
        self._telling.calls_tools()
        begun = {index: self._begin(call) for index, call in enumerate(calls) if not self._is_client_s(call)}
        await self._wait([errand for errand in begun.values() if isinstance(errand, Errand)])
        if len(begun) < len(calls):
            # The reply that the client asks for, once its tools are done, tells of ours as well.
            self._studio.errands.put_off(self._telling.knows)
            for call in calls:
                if self._is_client_s(call):
                    await self._draft.pieces.put(call)
            return None
        self.awaited = True
        messages: list[Message] = []
        for index, call in enumerate(calls):
            result = begun[index]
            output = result.output or "" if isinstance(result, Errand) else result
            messages += [Message("assistant", call=call), Message("tool", output, call_id=call.call_id)]
        return messages

    def _is_ours(self, call: ToolCall) -> bool:
        """A transfer or a goodbye."""
        settings, studio = self._order.settings, self._studio
        return (call.name == TRANSFER_TOOL and studio.transfers(settings)) or (
            call.name == END_CALL and studio.ends(settings)
        )

    def _is_client_s(self, call: ToolCall) -> bool:
        """The client has a tool of this name: it wins over one of the agent's, and the client runs it."""
        return any(spec.name == call.name for spec in self._order.settings.tools)

    def _begin(self, call: ToolCall) -> Errand | str:
        """A tool of the agent's is begun; or why not, as the model reads it."""
        settings, remembered = self._order.settings, self._order.remembered
        tool = next((tool for tool in settings.agent.tools if tool.name == call.name), None)
        try:
            if tool is None:
                raise ToolError(FIRST_TELL if self._is_ours(call) else f"there is no tool {call.name}")
            about = self._studio.about(settings.origin)
            self._record.tool = True
            errand = self._studio.errands.begin(tool, call, about, remembered=remembered, before=self._draft.message)
            self._uses.append(_Use(call, self._studio.clock(), errand))
            return errand
        except ToolError as error:
            why, now = f"Error: {error}", self._studio.clock()
            self._uses.append(_Use(call, now, why=why, ended=now))
            if remembered:
                self._studio.used(call, why)
            return why

    async def _wait(self, errands: Sequence[Errand]) -> None:
        if not errands:
            return
        self.talks = any(errand.tool.while_running for errand in errands)
        try:
            async with TaskGroup() as tasks:
                talk = tasks.create_task(self._talk(errands))
                with self._ladder.excused():
                    await asyncio.gather(*(self._over(errand) for errand in errands))
                talk.cancel()
        finally:
            self.talks = False
        if self._order.remembered:
            self._telling.knows += errands

    async def _over(self, errand: Errand) -> None:
        await errand.wait()
        for use in self._uses:
            if use.errand is errand and use.ended is None:
                use.ended = self._studio.clock()

    async def _talk(self, errands: Sequence[Errand]) -> None:
        """What the caller hears while tools run. Each text is one piece: it is queued as a whole, and then finished."""
        if not self.talks or not self._draft.spoken:
            return
        clock, quiet = self._studio.clock, self._studio.playout.quiet
        since, soonest = self._record.stamps.get("voice_ended", clock()), clock() + AT_ONCE_MS / 1000
        for number in count():
            errand = talkative(errands)
            if errand is None:
                return
            tool, phrase = errand.tool, await self._whole(f"{errand.bridge} ")
            if not number:
                await asyncio.sleep(soonest - clock())
            await quiet(tool.while_running_every_ms if number else tool.while_running_after_ms, since)
            if phrase and talkative(errands):
                bridged(errands)
                await self._draft.pieces.put(phrase)
            since = clock()

    async def _whole(self, text: str) -> Phrase | None:
        settings, speaker = self._order.settings, self._studio.speaker
        with suppress(VoicepipeError):  # The voice fails: the answer itself will say so.
            phrase = await speaker.whole(text, voice=settings.voice, speed=settings.speed)
            return phrase and replace(phrase, stand_in=True)
        return None


def _ends(text: str) -> bool:
    """With a whole sentence."""
    words = text.split()
    return bool(words) and ends_sentence(words[-1])
