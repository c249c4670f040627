"""What both sides of one call work with, and what a reply is asked to be."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol

import msgspec

from voicepipe.agent import Agent, Keep, ToolSpec
from voicepipe.base import call_ids
from voicepipe.base.errors import ToolError
from voicepipe.base.words import count
from voicepipe.call.early_tools import EarlyTools
from voicepipe.call.playout import Playout
from voicepipe.call.speech import PhraseSpeaker
from voicepipe.call.tool_run import BeginTool
from voicepipe.call.tool_runs import ToolRuns, called
from voicepipe.call_settings import CallSettings, Origin
from voicepipe.config import LadderConfig
from voicepipe.conversation.events import TOOL_CHARS, CallEvent, Item, ToolUse
from voicepipe.conversation.hand_over import HAND_OVER, hand_over_tool, kept
from voicepipe.conversation.history import History, Ids
from voicepipe.conversation.own_tools import (
    END_CALL_TOOL,
    SEND_KEYS,
    SEND_KEYS_TOOL,
    keys_to_send,
    set_language_tool,
    transfer_tool,
)
from voicepipe.conversation.prompt import Message, Prompt, ToolCall, with_language, with_origin
from voicepipe.engines.base import Engines
from voicepipe.languages.agent_texts import in_language
from voicepipe.languages.tags import named_in
from voicepipe.turn.menus import why_not_to_press

log = logging.getLogger(__name__)


class Colleagues(Protocol):
    """The other agents of a PoP, as one call may be handed over to them. Bound to the call by `_AdmittedCall.open`
    (`pop/pop.py`)."""

    def __call__(self, name: str) -> CallSettings | None:
        """The settings with which the agent `name` would have begun this call; None: it cannot take the call now."""


def alone(name: str) -> CallSettings | None:
    """Null object of `Colleagues`: there is no other agent."""
    return None


def settings_in(settings: CallSettings, tag: str) -> CallSettings:
    """`settings` with the agent as it speaks in the language `tag`. The same object where that is its own."""
    agent = in_language(settings.agent, tag)
    return settings if agent is settings.agent else msgspec.structs.replace(settings, agent=agent)


@dataclass(frozen=True, slots=True)
class CallServices:
    """What one call asks its PoP for."""

    begin_tool: BeginTool
    colleagues: Colleagues = alone


@dataclass(slots=True)
class CallContext:
    """What hearing, speaking and every reply of one call share: its engines, history, tool runs and playout."""

    call_id: str
    engines: Engines
    playout: Playout
    pop: CallServices
    ladder: LadderConfig
    clock: Callable[[], float]
    emit: Callable[[CallEvent], None]
    hand_over: Callable[[CallSettings], CallSettings]
    """Lets another agent go on with the call, with these settings; returns those until then."""
    left: dict[str, CallSettings] = field(default_factory=dict)
    """The settings of agents that have handed the call over, by name: they go on with them when they get it back."""
    ids: Ids = field(init=False)
    history: History = field(init=False)
    tool_runs: ToolRuns = field(init=False)
    early_tools: EarlyTools = field(init=False)
    own_tools_over: list[ToolUse] = field(default_factory=list)
    """Uses of tools of ours that were over after their reply; the next reply that ends names them."""
    _speakers: dict[tuple[str, str], PhraseSpeaker] = field(init=False)

    def __post_init__(self) -> None:
        self.ids = Ids(call_ids.bare(self.call_id))
        self.history = History(ids=self.ids)
        self.tool_runs = ToolRuns(self.history, self.ids, self.pop.begin_tool)
        self.early_tools = EarlyTools(self.tool_runs, self.clock)
        self._speakers = {}

    @property
    def out_rate(self) -> int:
        """Sample rate in Hz of what is said."""
        return self.playout.line.out_rate

    def speaker(self, agent: Agent) -> PhraseSpeaker:
        """The speaker of this agent's phrases, which keeps those that are made ahead."""
        key = agent.name, agent.language
        if key not in self._speakers:
            engines = self.engines
            self._speakers[key] = PhraseSpeaker(engines.tts, self.out_rate, agent, engines.made_ahead)
        return self._speakers[key]

    def own_tools(self, settings: CallSettings) -> list[ToolSpec]:
        """Our tools that the model is offered: for handing over, if another agent can take the call, for transferring,
        if the line can and the agent knows where to, for hanging up, if the agent allows it, for pressing keys, if
        the line takes some, too, and for another language, if the agent has several; none of whose name the client or
        the agent has a tool."""
        agent, own = settings.agent, list[ToolSpec]()
        if colleagues := {name: entry for name, entry in agent.hand_over.items() if self.pop.colleagues(name)}:
            own.append(hand_over_tool(colleagues))
        if self.playout.line.transfers and agent.transfer:
            own.append(transfer_tool(agent))
        if agent.end_call:
            own.append(END_CALL_TOOL)
        if agent.send_keys and not self.playout.line.lacks_keys:
            own.append(SEND_KEYS_TOOL)
        if len(agent.languages) > 1:
            own.append(set_language_tool(agent.languages))
        taken = {spec.name for spec in settings.tools} | {tool.name for tool in agent.tools}
        return [spec for spec in own if spec.name not in taken]

    def wrong(self, call: ToolCall) -> str:
        """Why a tool of ours is not begun, as the model reads it; empty: it is, once the reply has been heard."""
        if call.name != SEND_KEYS:
            return ""
        try:
            keys_to_send(call.arguments)
        except ToolError as error:
            return str(error)
        if why := why_not_to_press(self.history.items):
            log.warning("%s: keys are %s", self.call_id, why)
        return why

    def order(
        self, settings: CallSettings, words: str = "", *, speculative: bool = False, items: Sequence[Item] | None = None
    ) -> "ReplyOrder":
        """A reply to the conversation as it is when the prompt is first read, or to `items` in its place, and to
        `words`, which are not part of it yet. Raises ItemExists: an item is there twice."""
        history = self.history
        if items is not None:
            history = History()
            for item in items:
                history.add(item)
        return ReplyOrder(partial(self._prompt, history, settings, words, speculative), settings)

    def _prompt(self, history: History, settings: CallSettings, words: str, speculative: bool) -> Prompt:
        instructions = _instructions(settings)
        messages = history.messages(instructions, [Item("", text=words)])
        tools = self._tools(settings)
        return Prompt(messages, tools, settings.tool_choice, settings.most_tokens, speculative, settings.agent)

    def _tools(self, settings: CallSettings) -> tuple[ToolSpec, ...]:
        theirs = {spec.name for spec in settings.tools}
        agents = (tool.spec for tool in settings.agent.tools if tool.name not in theirs)
        return (*settings.tools, *agents, *self.own_tools(settings))

    def colleague(self, name: str, language: str) -> CallSettings | None:
        """The settings with which this agent goes on with the call, in `language` if it speaks that; None: it cannot
        take the call now."""
        if (fresh := self.pop.colleagues(name)) is None:
            return None
        settings = self.left.get(name, fresh)
        return settings_in(settings, named_in(settings.agent.languages, language) or settings.agent.language)

    def handed_prompt(self, before: Prompt, keep: Keep, settings: CallSettings, *, last: bool) -> Prompt:
        """The request to an agent that has just been handed the call. `before`: the one that the former would have
        answered next; `keep`: what the other one reads of it; `last`: it cannot hand the call over at once."""
        instructions = _instructions(settings)
        system = (Message("system", instructions),) if instructions else ()
        tools = tuple(tool for tool in self._tools(settings) if not (last and tool.name == HAND_OVER))
        messages = (*system, *kept(before.messages, keep))
        limit = settings.most_tokens
        return Prompt(messages, tools, before.tool_choice, limit, before.speculative, settings.agent)

    def about(self, origin: Origin) -> dict[str, Any]:
        """The phone call as tools read it: {"id", "caller", "called", "headers"}."""
        return {"id": self.call_id, "caller": origin.caller, "called": origin.called, "headers": origin.headers}

    def named(self, calls: Iterable[ToolCall], prompt: Prompt) -> list[ToolCall]:
        """The model's calls, each with an id that no other call has: results are matched to calls by id, and some
        servers number their calls anew in each answer. `prompt`: the one that the model answered."""
        taken = {item.call_id for item in self.history.items}
        taken |= self.tool_runs.call_ids() | self.early_tools.call_ids()
        taken |= {message.call.call_id for message in prompt.messages if message.call}
        named = []
        for call in calls:
            if call.call_id in taken:
                call = replace(call, call_id=self.ids.new("call"))
            taken.add(call.call_id)
            named.append(call)
        return named

    def unused(self, call: ToolCall) -> None:
        """Forget a tool that ran on the server (`used`): the reply that called it was taken back."""
        for item in [item for item in self.history.items if item.call_id == call.call_id]:
            self.history.delete(item.id)

    def used(self, call: ToolCall, result: str) -> None:
        """A tool ran on the server: the conversation holds it, and the client does not see it."""
        self.ended(self.begun(call), result)

    def own_tool_over(
        self, call: ToolCall, result: str, *, item: Item | None = None, failed: bool = False, took: float | None = None
    ) -> None:
        """A tool of ours is over, or will not begin: the conversation holds what came of it, and the next reply that
        ends names it. `item`: as `begun` returned it; `took`: milliseconds."""
        self.ended(item or self.begun(call), result)
        use = ToolUse(call.name, took, failed=failed, arguments=call.arguments[:TOOL_CHARS], result=result)
        self.own_tools_over.append(use)

    def begun(self, call: ToolCall) -> Item:
        """A tool of ours begins: the conversation holds its call, of which the client sees nothing."""
        item = called(self.ids, call)
        self.history.add(item, hidden=True)
        return item

    def ended(self, item: Item, result: str) -> None:
        """What came of the tool whose call is `item`: the conversation holds it behind the call."""
        output = Item(self.ids.new("item"), "function_call_output", call_id=item.call_id, output=result)
        self.history.add(output, item.id if item.id in self.history else None, hidden=True)


def _instructions(settings: CallSettings) -> str:
    """What the model is told before the conversation."""
    told = with_language(settings.instructions, settings.agent)
    return with_origin(told, settings.origin, settings.began)


@dataclass
class ReplyOrder:
    """A request for one reply: what to answer or to say, and with which settings."""

    ask: Callable[[], Prompt]
    """Makes the request to the model, when it is first read: many replies are replaced before that."""
    settings: CallSettings
    text: str | None = None
    """Say exactly this, without the model: the greeting, a question after silence."""
    metadata: dict[str, str] | None = None
    remembered: bool = True
    """False: the reply is out of band, and the conversation does not get its items."""

    @cached_property
    def prompt(self) -> Prompt:
        """The request to the model, made when it is first read."""
        return self.ask()

    @property
    def words(self) -> int:
        """Number of words in the request; 0 while nobody has read it."""
        return sum(count(message.text) for message in self.prompt.messages) if "prompt" in self.__dict__ else 0
