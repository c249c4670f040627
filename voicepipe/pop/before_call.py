"""Before a call is answered: what the agent's hook is asked, what its answer means, and what holds without one."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from voicepipe.agent import Agent
from voicepipe.base.errors import Declined
from voicepipe.base.foreign_json import decode
from voicepipe.call_api import NO_ANSWER, CallSlot, DoorKind, HookAnswer
from voicepipe.call_settings import Origin
from voicepipe.conversation.variables import LONGEST as LONGEST_VALUE
from voicepipe.conversation.variables import NAME as VARIABLE
from voicepipe.pop.hooks import Hook, HookCaller, HookFailed, noted

KEY = "before_call"
LONGEST_REASON = 200
VariableValue = Annotated[str, Meta(max_length=LONGEST_VALUE)] | int | float | None


class AnswerUnusable(HookFailed):
    """A hook's answer is not what it may say. The text says what is wrong, and what is allowed."""

    def __init__(self, wrong: str) -> None:
        super().__init__(f"its answer is not used: {wrong}", "invalid")


class WrittenAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer of `hooks.before_call` as it is written in JSON. Null is the same as left out."""

    variables: Annotated[dict[str, VariableValue], Meta(max_length=100)] | None = None
    greeting: Annotated[str, Meta(max_length=2000)] | None = None
    agent: str | None = None
    instructions: Annotated[str, Meta(max_length=20_000)] | None = None
    refuse: Annotated[str, Meta(max_length=2000)] | None = None


ALLOWED = ", ".join(WrittenAnswer.__struct_fields__)


def question(call_id: str, agent: str, origin: Origin, door: DoorKind, pop: str, tenant: str) -> dict[str, Any]:
    """What the hook is told of a call. `call` is as tools get it."""
    call = {"id": call_id, "caller": origin.caller, "called": origin.called, "headers": dict(origin.headers)}
    return {"call": call, "agent": agent, "door": door, "pop": pop, "tenant": tenant}


def read_answer(text: str, agent: Agent, knows: Callable[[str], bool]) -> HookAnswer:
    """The answer of this agent's hook. `knows`: whether an agent of this name can answer the call. Raises Declined: it
    refuses the call; AnswerUnusable."""
    if text.strip() in ("", "null"):
        return NO_ANSWER
    written = _written(text)
    if written.refuse:
        raise Declined(" ".join(written.refuse.split())[:LONGEST_REASON] or "The agent takes no such call.")
    other = "" if written.agent == agent.name else written.agent or ""
    if other and other not in agent.hooks.agents:
        raise AnswerUnusable(f"agent: hooks.agents of {agent.name} does not name {other[:64]!r}: add it there")
    if other and not knows(other):
        raise AnswerUnusable(f"agent: this PoP has no agent {other[:64]!r} that can answer, or not for this tenant")
    for name in written.variables or {}:
        if not VARIABLE.fullmatch(name):
            raise AnswerUnusable(f"variables: {name[:64]!r} is no name: give up to 64 letters, digits and _")
    variables = {name: str(value) for name, value in (written.variables or {}).items() if value is not None}
    return HookAnswer(
        agent=other, greeting=written.greeting, instructions=written.instructions or "", variables=variables
    )


def _written(text: str) -> WrittenAnswer:
    try:
        said = decode(text)
    except msgspec.DecodeError as error:
        raise AnswerUnusable(f"it is no JSON ({error}): answer with an object with any of {ALLOWED}") from None
    if not isinstance(said, Mapping):
        raise AnswerUnusable(f"it is no JSON object: answer with one with any of {ALLOWED}")
    if unknown := [key for key in said if key not in WrittenAnswer.__struct_fields__]:
        raise AnswerUnusable(f"it has an unknown key {str(unknown[0])[:64]!r}; allowed: {ALLOWED}")
    try:
        return msgspec.convert(said, WrittenAnswer)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        where = where.replace("`", "").removeprefix("$.") or "it"
        raise AnswerUnusable(f"{where}: {what[:1].lower()}{what[1:]}") from None


class BeforeCall:
    """Asks the `hooks.before_call` of a PoP's agents. `pop`: its id; `answers`: whether an agent of this name can
    answer a call of this tenant's."""

    def __init__(self, hooks: HookCaller, pop: str, answers: Callable[[str, str], object]) -> None:
        self._hooks, self._pop, self._answers = hooks, pop, answers

    async def ask(
        self, slot: CallSlot, agent: Agent, origin: Origin, door: DoorKind, limit_ms: int | None = None
    ) -> HookAnswer:
        """As `PopApi.ask_hook`, of an agent that has one. Raises Declined."""
        said = NO_ANSWER
        hook = Hook(KEY, agent.hooks.before_call, agent.hooks.before_call_ms, KEY, agent.hooks.secret).within(limit_ms)
        told = question(slot.call_id, agent.name, origin, door, self._pop, slot.owner)
        with noted(slot, agent, KEY):
            written = await self._hooks.ask(hook, told, slot.call_id, slot.owner)
            said = read_answer(written, agent, lambda name: bool(self._answers(name, slot.owner)))
        return said
