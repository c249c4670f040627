"""The text of ONE reply: the model is asked, and asked again with what came of the tools that it called.

Until the gate opens only tools that read are begun (`early_tools.py`); all others wait for it. All tools of one answer
of the model's run at the same time.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import msgspec

from voicepipe.agent import Tool
from voicepipe.base.errors import EngineError, EngineStalled, ToolError
from voicepipe.base.tasks import TaskGroup
from voicepipe.call.hand_over_wanted import change_wanted
from voicepipe.call.read_ahead import ReadAhead
from voicepipe.call.reply_context import HandedOver, ReplyContext
from voicepipe.call.tool_run import ToolRun, request_text
from voicepipe.call.tool_talk import ToolTalk
from voicepipe.conversation.events import TOOL_CHARS, TOOL_NAME_CHARS, ToolUse
from voicepipe.conversation.hand_over import HAND_OVER, MOST, named_in
from voicepipe.conversation.own_tools import END_CALL, KEYS_ALONE, SEND_KEYS, SET_LANGUAGE
from voicepipe.conversation.phrases import Phraser, ends_sentence
from voicepipe.conversation.prompt import Message, Prompt, ToolCall
from voicepipe.engines.base import StreamCorrection

TOOL_ROUNDS = 5
NO_TOOLS = (
    "What you wrote to call a tool could not be read: nothing was done, and no tool works in this answer. Say in plain "
    "words that you cannot do that at the moment, or answer without it."
)
FIRST_TELL = "not done, since other tools were called with it; tell the caller what came of those first"


@dataclass(slots=True)
class _ModelToolUse:
    """One use of a tool by the model, while its reply is made. Times are seconds of the call's clock."""

    call: ToolCall
    began: float
    tool_run: ToolRun | None = None
    """None: the tool was not begun."""
    why: str = ""
    """Why the tool was not begun, as the model reads it."""
    done: str = ""
    """What came of a tool of ours, which has no run."""
    ended: float | None = None

    @property
    def result(self) -> str:
        """What came of it, as the model reads it."""
        return self.tool_run.output or "" if self.tool_run else self.done or self.why


@dataclass(slots=True)
class _Answer:
    """What the model has written of one answer. It answers again after its calls of tools."""

    said: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    called_as_text: bool = False

    @property
    def text(self) -> str:
        return "".join(self.said)


class ReplyWriter:
    """Writes the text of one reply: asks the model, runs the tools that it calls, and asks again with their results."""

    def __init__(self, reply_context: ReplyContext) -> None:
        self._hurry = reply_context.context.ladder.first_phrase == "short"
        self.cutter = Phraser(hurry=self._hurry)
        self.tokens = 0
        self.awaited = True
        """The caller hears nothing until the next phrase is there."""
        self.own_call: ToolCall | None = None
        """A transfer, keys or a goodbye, to be carried out once the reply was heard."""
        self.may_be_silent = False
        """The agent has pressed keys, and said nothing since: it need not say anything now."""
        self.whole = False
        """The model failed behind a whole sentence: nothing need be said in its place."""
        self.mute = False
        """The model wrote nothing that is meant for the caller."""
        self._uses: list[_ModelToolUse] = []
        self._waits: list[ToolRun] = []
        """The tool runs that it waits for."""
        self._waited_s, self._waits_since = 0.0, 0.0
        """For how long it has waited for tools, and since when it does so again."""
        self._handed: HandedOver | None = None
        """The latest hand-over of this reply."""
        self._hand_overs = 0
        self._ended: Sequence[_ModelToolUse] = ()
        """The agent's tools that the last answer called."""
        self._reply_context = reply_context
        self._context, self._order, self._record = reply_context.context, reply_context.order, reply_context.record
        self._delivery, self._late_reply = reply_context.delivery, reply_context.late_reply

    async def texts(self) -> AsyncGenerator[str, None]:
        """The phrases to be said, in order."""
        prompt = self._order.prompt
        self.may_be_silent = _presses_keys(prompt)
        self._delivery.knows = self._context.tool_runs.known(prompt) if self._order.remembered else []
        if handed := self._hand_over_by(tool_run.output or "" for tool_run in self._delivery.knows):
            prompt = await self._hand_over(handed, prompt, "")  # The result came while nobody waited for it.
        for _ in range(TOOL_ROUNDS):
            answer = _Answer()
            async with aclosing(self._phrases(prompt, answer)) as phrases:
                async for text in phrases:
                    yield text
            if calls := self._context.named(answer.calls, prompt):
                if handed := self._hand_over_of(calls):
                    prompt = await self._hand_over(handed, prompt, answer.text)
                    continue
                if not self._only_read(calls):
                    await self._may_act()
                more = await self._carry_out(calls)
                if more is None:
                    goodbye, own = self._order.settings.agent.goodbye, self.own_call
                    if own and own.name == END_CALL and not self._late_reply.answering and goodbye:
                        yield goodbye
                    return
                prompt = self._next(prompt, answer.text, more)
                if handed := self._hand_over_by(use.result for use in self._ended):
                    prompt = await self._hand_over(handed, prompt, "")
            elif answer.called_as_text and prompt.tool_choice != "none":
                prompt = replace(self._next(prompt, answer.text, [Message("system", NO_TOOLS)]), tool_choice="none")
            else:
                answered = self._late_reply.answering and bool(answer.text.strip() or not self._hand_overs)
                self.mute = answer.called_as_text and not answered
                if answered or self.mute or (self.may_be_silent and not self._uses):
                    return
                break
        self._reply_context.gave_up = True
        yield self._order.settings.agent.fallback

    async def _phrases(self, prompt: Prompt, answer: "_Answer") -> AsyncGenerator[str, None]:
        """The phrases of one answer of the model's, which is noted in `answer`. If the engine fails, what came before
        is said."""
        try:
            async with ReadAhead(self._context.engines.llm.generate(prompt), self._reply_context.withdraw) as deltas:
                while (delta := await self._late_reply.next(deltas)) is not None:
                    self._reply_context.stamp("token")
                    draft = self._reply_context.draft
                    if isinstance(delta, ToolCall):
                        answer.calls.append(delta)
                    elif delta is StreamCorrection.WITHDRAWN:
                        answer.said.clear()
                        answer.called_as_text = False
                        self.cutter, self.awaited = Phraser(hurry=self._hurry), True
                    elif delta is StreamCorrection.CALL_AS_TEXT:
                        answer.called_as_text = True
                    else:
                        self.tokens += 1
                        answer.said.append(delta)
                        for text in self.cutter.push(delta):
                            if not draft.withdrawn:
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
        """Whole sentences that came and were not said yet, when no more is waited for; "" if there are none."""
        text = "".join(self.cutter.flush())
        return text if _ends(text) else ""

    def _next(self, prompt: Prompt, said: str, more: Sequence[Message]) -> Prompt:
        before = (Message("assistant", said),) if said.strip() else ()
        # A choice that forces a tool has been obeyed; it would be called again and again.
        choice = prompt.tool_choice if prompt.tool_choice == "none" else "auto"
        messages = (*prompt.messages, *before, *more)
        speculative = not self._reply_context.gate.is_set()
        return replace(prompt, messages=messages, tool_choice=choice, speculative=speculative)

    def tools(self) -> tuple[ToolUse, ...]:
        """The agent's tools that the reply had run so far, and before them what came of ours after the replies
        before."""
        over, self._context.own_tools_over[:] = tuple(self._context.own_tools_over), []
        return (*over, *map(self._tool_use, self._uses))

    @property
    def talks(self) -> bool:
        """Whether the caller hears of the tools that run."""
        return any(tool_run.tool.while_running or tool_run.progress for tool_run in self._waits)

    def confirm(self) -> None:
        """The turn is confirmed: what was begun before is part of the conversation from now on."""
        for use in self._uses:
            if use.tool_run:
                self._record.tool = True
                self._context.early_tools.adopt(use.tool_run)

    def interrupt(self) -> bool:
        """The caller interrupts: cancel the tools for which this waits and that may be cancelled. Returns whether there
        were any."""
        cancelled = [tool_run for tool_run in self._waits if tool_run.tool.interruptible and tool_run.output is None]
        for tool_run in cancelled:
            self._context.tool_runs.cancel(tool_run)
        for use in self._uses:
            if use.tool_run in cancelled:
                use.ended = self._context.clock()
        return bool(cancelled)

    def waited_for_tools(self) -> float:
        """The seconds for which it has waited for tools."""
        return self._waited_s + (self._context.clock() - self._waits_since if self._waits else 0.0)

    def _tool_use(self, use: _ModelToolUse) -> ToolUse:
        stamps, tool_run = self._record.stamps, use.tool_run
        since, commit = stamps.get("voice_ended"), stamps.get("commit")
        return ToolUse(
            use.call.name[:TOOL_NAME_CHARS],
            took=None if use.ended is None else round(1000 * (use.ended - use.began), 1),
            at=None if since is None else round(1000 * (use.began - since), 1),
            failed=tool_run.failed if tool_run else not use.done,
            arguments=use.call.arguments[:TOOL_CHARS],
            result=use.result[:TOOL_CHARS],
            early=tool_run is not None and commit is not None and use.began < commit,
        )

    def _hand_over_of(self, calls: Sequence[ToolCall]) -> ToolCall | None:
        """The model's call that hands the caller over, or changes the language, if it is the only one."""
        is_one = len(calls) == 1 and calls[0].name in (HAND_OVER, SET_LANGUAGE) and self._is_ours(calls[0])
        return calls[0] if is_one else None

    def _hand_over_by(self, results: Iterable[str]) -> ToolCall | None:
        """A call in the model's place, where one of these results of tools hands the caller over."""
        name = next(filter(None, map(named_in, results)), "")
        if name not in self._order.settings.agent.hand_over:
            return None
        return ToolCall(self._context.ids.new("call"), HAND_OVER, msgspec.json.encode({"to": name}).decode())

    async def _hand_over(self, call: ToolCall, prompt: Prompt, said: str) -> Prompt:
        """Let another agent, or the same in another language, go on with this reply. Returns what it answers; where it
        cannot, what the model reads instead. It needs no confirmed turn: until the reply is played, nothing of it is
        done."""
        use = _ModelToolUse(call, self._context.clock())
        use.ended = use.began
        self._uses.append(use)
        self._delivery.calls_tools()
        try:
            self._handed = handed = change_wanted(call, self._order, self._context, self._hand_overs)
        except ToolError as error:
            use.why = f"Error: {error}"
            return self._next(prompt, said, _exchanged(use))
        self._hand_overs += 1
        use.done = handed.result
        await self._reply_context.pieces.put(handed)
        self._order.settings = handed.settings
        self.awaited = True
        before = self._next(prompt, said, _exchanged(use))
        return self._context.handed_prompt(before, handed.keep, handed.settings, last=self._hand_overs == MOST)

    async def _may_act(self) -> None:
        """Wait until tools may run that do something: the turn is confirmed, and who calls them has the call."""
        await self._reply_context.gate.wait()
        if self._handed:
            await self._handed.played.wait()

    async def _carry_out(self, calls: Sequence[ToolCall]) -> list[Message] | None:
        """Carry out the calls. Returns what the model reads next; None: it is not asked again."""
        wrong = ""
        if len(calls) == 1 and self._is_ours(calls[0]):
            wrong = self._context.wrong(calls[0])
            if not wrong:
                self.own_call = calls[0]  # Nothing follows it: it is carried out when the reply has been heard.
                return None
        self._delivery.calls_tools()
        uses = [self._begin(call, wrong) for call in calls if not self._is_client_s(call)]
        await self._wait(uses)
        if len(uses) < len(calls):
            # The reply that the client asks for, once its tools are done, tells of ours as well.
            self._context.tool_runs.put_off(self._delivery.knows)
            for call in calls:
                if self._is_client_s(call):
                    await self._reply_context.pieces.put(call)
            return None
        self.awaited = True
        self._ended = uses
        return [message for use in uses for message in _exchanged(use)]

    def _is_ours(self, call: ToolCall) -> bool:
        """Whether the call is a hand-over, a transfer, keys or a goodbye, which we carry out ourselves."""
        return any(spec.name == call.name for spec in self._context.own_tools(self._order.settings))

    def _is_client_s(self, call: ToolCall) -> bool:
        """Whether the client has a tool of this name: it wins over one of the agent's, and the client runs it."""
        return any(spec.name == call.name for spec in self._order.settings.tools)

    def _tool(self, call: ToolCall) -> Tool | None:
        return next((tool for tool in self._order.settings.agent.tools if tool.name == call.name), None)

    def _only_read(self, calls: Sequence[ToolCall]) -> bool:
        """Whether these are tools that may be begun before the turn is confirmed. Behind a hand-over they wait: it
        enters the conversation before them, once it is played."""
        asked = [(tool, call) for call in calls if not self._is_client_s(call) and (tool := self._tool(call))]
        return len(asked) == len(calls) and not self._hand_overs and self._context.early_tools.may(asked, self._record)

    def _begin(self, call: ToolCall, wrong: str) -> _ModelToolUse:
        """Begin a tool of the agent's, if it can be begun. `wrong`: as `CallContext.wrong`, if it is a tool of ours."""
        settings, remembered, tool = self._order.settings, self._order.remembered, self._tool(call)
        use = _ModelToolUse(call, self._context.clock())
        self._uses.append(use)
        if tool and self._begin_early(tool, use):
            return use
        try:
            if tool is None:
                beside = KEYS_ALONE if call.name == SEND_KEYS else FIRST_TELL
                raise ToolError(wrong or (beside if self._is_ours(call) else f"there is no tool {call.name}"))
            about = self._context.about(settings.origin)
            self._record.tool = True
            use.tool_run = self._context.tool_runs.begin(
                tool, call, about, remembered=remembered, before=self._reply_context.message
            )
        except ToolError as error:
            use.why, use.ended = f"Error: {error}", use.began
            if remembered:
                self._context.used(call, use.why)
        return use

    def _begin_early(self, tool: Tool, use: _ModelToolUse) -> bool:
        """Begin it before the turn is confirmed, or join what was begun for this turn then. Returns whether that could
        be done."""
        early_tools, confirmed = self._context.early_tools, self._reply_context.gate.is_set()
        if not confirmed:
            about = self._context.about(self._order.settings.origin)
            early = early_tools.begin(tool, use.call, about, self._record)
        elif found := early_tools.find(request_text(tool, use.call), self._record):
            early = found
        else:
            return False
        use.tool_run, use.began, use.ended = early.tool_run, early.began, early.ended
        if confirmed:
            self._record.tool = True
            early_tools.adopt(early.tool_run, self._reply_context.message)
        return True

    async def _wait(self, uses: Sequence[_ModelToolUse]) -> None:
        tool_runs = [use.tool_run for use in uses if use.tool_run]
        if not tool_runs:
            return
        self._waits, self._waits_since = tool_runs, self._context.clock()
        try:
            async with TaskGroup() as tasks:
                talk = tasks.create_task(ToolTalk(self._reply_context).say(tool_runs))
                with self._late_reply.excused():
                    await asyncio.gather(*map(self._over, uses))
                talk.cancel()
        finally:
            self._waited_s, self._waits = self.waited_for_tools(), []
        if self._order.remembered:
            self._delivery.knows += tool_runs

    async def _over(self, use: _ModelToolUse) -> None:
        if use.tool_run:
            await use.tool_run.wait()
            use.ended = use.ended or self._context.clock()


def _presses_keys(prompt: Prompt) -> bool:
    """Whether the last that the agent did was to press keys."""
    last = next((message for message in reversed(prompt.messages) if message.role == "assistant"), None)
    return last is not None and last.call is not None and last.call.name == SEND_KEYS


def _exchanged(use: _ModelToolUse) -> tuple[Message, Message]:
    """A call and its result, as the model reads them."""
    return Message("assistant", call=use.call), Message("tool", use.result, call_id=use.call.call_id)


def _ends(text: str) -> bool:
    """Whether the text ends with a whole sentence."""
    words = text.split()
    return bool(words) and ends_sentence(words[-1])
