"""The embedded language engine: answers by the intents of the agent's file, without a model."""

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple
from uuid import uuid4

from voicepipe.agent import Agent, Intent, ToolSpec
from voicepipe.conversation.hand_over import HAND_OVER
from voicepipe.conversation.own_tools import END_CALL, SEND_KEYS, TRANSFER_TOOL
from voicepipe.conversation.prompt import without_origin
from voicepipe.engines.base import Answering, Delta, Message, Prompt, ToolCall
from voicepipe.engines.llm.frontdesk import client_tools
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import (
    ACCEPT,
    MAX_CHARS,
    FrontdeskAnswer,
    FrontdeskDialogue,
    FrontdeskState,
    fill,
)
from voicepipe.engines.llm.frontdesk.matcher import KeptMatches
from voicepipe.engines.llm.frontdesk.steps import Steps, unhurried
from voicepipe.languages.agent_texts import texts_in
from voicepipe.turn.keypad import as_digits

OBEYED = re.compile(
    r"\W*+(?:please\s+|just\s+|now\s+)*"
    r"(?:say|speak|repeat|(?:greet|reply|respond|answer|tell)\b[^:\"“]{0,40}\b(?:with|exactly|only|saying|this|that))\b"
    r"[^:\"“]{0,60}[:\"“]\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)
"""'Say exactly: ...', 'Greet the caller with "..."'."""

GREET = re.compile(
    r"\W*(?:please\s+)?(?:greet|welcome|say (?:hello|hi)(?: to)?)\b"
    r"(?:\s+(?:the|a|your|them|me|user|caller|customer|guest)\b)*(?:\s+\w+ly)?\W*",
    re.IGNORECASE,
)
"""The whole instructions are to greet. "Greet callers and take their orders" is a job, not a sentence to say."""

WORDS = 64
"""After so many words of a reply the others get their turn: a client can have 60,000 of them said."""

OURS = {TRANSFER_TOOL, END_CALL, SEND_KEYS, HAND_OVER}
"""Tools that are called for an intent alone, never since a caller's words are like their descriptions."""

WAYS_OUT = 'set engines.llm to "auto" (a model that runs on this machine) or "openai" (with openai.base_url).'

MOST_LEARNT = 64
"""Agents whose intents are kept at a time."""

NOBODY = Agent(name="")
"""Answers where a prompt names no agent."""


class FrontdeskLlm:
    """The embedded language engine (`frontdesk`): answers by the agent's `intents`. Stateless: everything is in the
    prompt. Implements `base.Llm` and `base.ChoosesAgents`."""

    def __init__(self) -> None:
        self._learnt: dict[tuple[tuple[str, int], ...], _Learnt] = {}
        """By the names of the intents and the ids of their examples."""

    async def start(self) -> None:
        """Agents are learnt by `warm`, or when they are first asked."""
        await self._dialogue(NOBODY)

    async def close(self) -> None:
        """Forget all agents."""
        self._learnt.clear()

    def answering(self, agent: Agent) -> Answering:
        lacks = (
            f"Agent {agent.name} has no [[intents]], and the embedded language engine knows nothing else: {WAYS_OUT}"
        )
        return Answering("the embedded engine", "" if agent.intents else lacks)

    async def warm(self, prompt: Prompt) -> None:
        """Learn the prompt's agent, in a thread: 2,000 examples take about 0.7 s, which no caller should wait for."""
        await self._dialogue(prompt.agent or NOBODY)

    async def generate(self, prompt: Prompt) -> AsyncGenerator[Delta, None]:
        """The reply word by word, each with the space before it, then the tool call if there is one."""
        dialogue = await self._dialogue(prompt.agent or NOBODY)
        left = prompt.max_tokens
        for delta in await unhurried(reply_in_steps(dialogue, prompt)):
            if not isinstance(delta, str):
                yield delta
                continue
            # Without the spaces at its end: each of them would be looked at as the beginning of a word.
            for number, word in enumerate(islice(re.finditer(r"\s*\S+", delta.rstrip()), left), 1):
                yield word[0]
                left = None if left is None else left - 1
                if number % WORDS == 0:
                    await asyncio.sleep(0)

    async def _dialogue(self, agent: Agent) -> FrontdeskDialogue:
        """The agent's rules. Only what its examples teach is kept: an agent's texts may be filled in anew for each
        call, but its examples are the same objects until its file is read again."""
        key = tuple((intent.name, id(intent.examples)) for intent in agent.intents)
        known = self._learnt.get(key)
        if known is None:
            matches = await asyncio.to_thread(KeptMatches, agent.intents)
            if len(self._learnt) >= MOST_LEARNT:
                self._learnt.pop(next(iter(self._learnt)))
            self._learnt[key] = known = _Learnt(agent.intents, matches)
        return FrontdeskDialogue(agent, known.matches)


class _Learnt(NamedTuple):
    intents: tuple[Intent, ...]
    """Kept, so that no other examples get their ids."""
    matches: KeptMatches


def reply_in_steps(dialogue: FrontdeskDialogue, prompt: Prompt) -> Steps[list[Delta]]:
    """The whole reply to a prompt. Clients may send much that is to be read for it: a message or a tool is a step."""
    prompt = _as_ours(prompt)
    states = [FrontdeskState()]
    for message in prompt.messages[:-1]:
        states.append(dialogue.after(states[-1], message))
        yield
    news = yield from _news(dialogue, prompt.messages, states)
    if prompt.messages and prompt.messages[-1].role == "tool":
        return [" ".join(news)]
    last = next(
        (index for index in range(len(prompt.messages) - 1, -1, -1) if prompt.messages[index].role == "user"), -1
    )
    text = as_digits(prompt.messages[last].text) if last >= 0 else ""
    if order := _order(dialogue.agent, prompt, text):
        return [order]
    text = text[:MAX_CHARS]
    if last < 0:
        return [dialogue.agent.greeting or texts_in(dialogue.agent.language).opening]
    state, answer = dialogue.hear(states[last], text)
    yield
    asked = states[last].open or state.open
    if call := (yield from _client_call(dialogue, prompt, answer, text, asked=asked)):
        return [call]
    if not answer.understood and not dialogue.intents and text.strip():
        # An echo of the caller's words would seem to be an answer.
        return [texts_in(dialogue.agent.language).no_model]
    if not answer.understood and (news or _pending(prompt.messages)):
        # Most likely the end of what the tool was called for.
        return [" ".join(news) or dialogue.agent.acknowledgement]
    return [*(f"{each} " for each in news), *_spoken(prompt, answer)]


def _as_ours(prompt: Prompt) -> Prompt:
    """The prompt without what tells of hand-overs: whoever takes over answers what the caller said last."""
    calls = {message.call.call_id for message in prompt.messages if message.call and message.call.name == HAND_OVER}
    results = [message for message in prompt.messages if message.call_id in calls]
    done = {message.call_id for message in results if not message.text.startswith("Error")}
    if not done:
        return prompt
    theirs = [(message, message.call.call_id if message.call else message.call_id) for message in prompt.messages]
    return replace(prompt, messages=tuple(message for message, call_id in theirs if call_id not in done))


def _order(agent: Agent, prompt: Prompt, text: str) -> str:
    """What the instructions (or the user) say must be said, word for word; "" if they leave it open."""
    theirs = (without_origin(message.text) for message in prompt.messages if message.role == "system")
    system = [text for text in theirs if text != agent.instructions]
    for order in [*system[::-1], text]:
        if found := OBEYED.match(order):
            return found[1].strip().strip("\"“”'").strip()
        if order != text and GREET.fullmatch(order):
            return agent.greeting or NOBODY.greeting
    return ""


def _spoken(prompt: Prompt, answer: FrontdeskAnswer) -> list[Delta]:
    """The answer's text, or the call of its tool; the tool's result comes with the next prompt."""
    offered = {} if prompt.tool_choice == "none" else {tool.name: tool for tool in prompt.tools}
    if answer.tool in offered:
        return [_call(answer.tool, json.dumps(typed(offered[answer.tool], answer.values), ensure_ascii=False))]
    if (answer.transfer and TRANSFER_TOOL not in offered) or (answer.hand_over and HAND_OVER not in offered):
        return [answer.otherwise]
    text: list[Delta] = [fill(answer.text, {"result": ""})]
    if answer.hand_over:
        text.append(_call(HAND_OVER, json.dumps({"to": answer.hand_over})))
    elif answer.transfer:
        text.append(_call(TRANSFER_TOOL, json.dumps({"to": answer.transfer})))
    elif answer.end_call and END_CALL in offered:
        text.append(_call(END_CALL, "{}"))
    return text


def _client_call(
    dialogue: FrontdeskDialogue, prompt: Prompt, answer: FrontdeskAnswer, text: str, *, asked: bool
) -> Steps[ToolCall | None]:
    """The call of a tool that no intent knows, if it is required or nearer to the caller's words than an intent.
    `asked`: what the caller says answers a question, or is asked about."""
    own = {tool for intent in dialogue.intents.values() for tool in (intent.tool, intent.check)}
    others = [tool for tool in prompt.tools if tool.name not in own | OURS]
    choice = prompt.tool_choice
    chosen = next((tool for tool in prompt.tools if tool.name == choice), None)
    if chosen is None and choice == "required" and answer.tool not in {tool.name for tool in prompt.tools}:
        chosen = (yield from client_tools.choose(others, text)) or next(iter(others or prompt.tools), None)
    elif chosen is None and choice == "auto" and not asked and dialogue.match(text).score < 2 * ACCEPT:
        chosen = yield from client_tools.choose(others, text)
    if chosen is None or chosen.name == answer.tool:
        return None
    return _call(chosen.name, (yield from client_tools.arguments(chosen, text)))


def _call(name: str, arguments: str) -> ToolCall:
    return ToolCall(f"call_{uuid4().hex[:16]}", name, arguments)


def typed(tool: ToolSpec, values: dict[str, str]) -> dict[str, Any]:
    """The slots' values as the tool's schema wants them: "2" becomes 2 where an integer is asked for."""
    properties = client_tools.table(tool.parameters.get("properties"))

    def convert(name: str, value: str) -> Any:
        wanted = client_tools.table(properties.get(name)).get("type")
        return int(value) if wanted in ("integer", "number") and value.isdecimal() else value

    return {name: convert(name, value) for name, value in values.items()}


def _news(
    dialogue: FrontdeskDialogue, messages: Sequence[Message], states: Sequence[FrontdeskState]
) -> Steps[list[str]]:
    """What tools have answered since the agent last said something. `states`: before each message."""
    first = _unspoken(messages)
    news: list[str] = []
    for index, message in enumerate(messages):
        if message.role == "tool" and index >= first:
            news.append(dialogue.answered(states[index], message)[1].text)
            yield
    return news


def _pending(messages: Sequence[Message]) -> bool:
    """Whether a tool has not answered yet that was called since the agent last said something."""
    answered = {message.call_id for message in messages if message.role == "tool"}
    return any(message.call and message.call.call_id not in answered for message in messages[_unspoken(messages) :])


def _unspoken(messages: Sequence[Message]) -> int:
    """Index of the message behind the last thing that the agent said."""
    spoken = (index for index in range(len(messages) - 1, -1, -1) if messages[index].role == "assistant")
    return next((index + 1 for index in spoken if messages[index].text), 0)
