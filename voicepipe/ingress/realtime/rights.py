"""What one client may change of its call; and the session with which a call of the convention begins.

An agent's file, or whoever made an `ek_` key, locks parts of the session; a lock closes every way to that part: the
session, a single response, items that the model would read as such. What is locked stays as it is, the rest of an
update is applied, and an error names what was not. Besides, the agent's own tools run on the server: who holds an
`ek_` key cannot force the model to call one, nor write into the conversation that one was called. What a hook tells the
model of a caller is not shown to them either: they see the agent's instructions as its file has them.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec

from voicepipe.agent import Agent, Part
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.events import Item
from voicepipe.ingress.access import decoded
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.realtime.client_events import ResponseParams
from voicepipe.ingress.realtime.items import fresh_id
from voicepipe.ingress.realtime.session import NamedTool, Session, ToolChoice, ToolJson
from voicepipe.ingress.wire_errors import WireError

_PATHS: dict[Part, str] = {
    "instructions": "instructions",
    "tools": "tools",
    "tool_choice": "tool_choice",
    "voice": "audio.output.voice",
    "speed": "audio.output.speed",
    "turn_detection": "audio.input.turn_detection",
    "output_modalities": "output_modalities",
    "max_output_tokens": "max_output_tokens",
}
"""Paths in a session of each part that can be locked; "conversation" is no part of a session."""

_OF_RESPONSE: dict[Part, Callable[[ResponseParams], Any]] = {
    "instructions": lambda asked: asked.instructions,
    "tools": lambda asked: asked.tools,
    "tool_choice": lambda asked: asked.tool_choice,
    "voice": lambda asked: asked.audio and asked.audio.output and asked.audio.output.voice,
    "output_modalities": lambda asked: asked.output_modalities,
    "max_output_tokens": lambda asked: asked.max_output_tokens,
    "conversation": lambda asked: asked.input,
}


@dataclass(frozen=True, slots=True)
class Rights:
    """A client's rights to change its call."""

    locked: frozenset[Part] = frozenset()
    of_tenant: bool = True
    """The client is the tenant's own: it holds no `ek_` key. It may force the agent's own tools, and add calls of them
    to the conversation; it sees what they do, and all of the instructions."""

    @classmethod
    def of(cls, who: Caller, agent: Agent) -> "Rights":
        """The rights of this caller in a call that `agent` answers."""
        return cls(frozenset((*agent.locked, *who.locked)), of_tenant=who.agent is None)

    def shown(self, session: Session, settings: CallSettings) -> Session:
        """The session of a call with these settings as this client sees it."""
        if self.of_tenant or session.instructions != settings.agent.instructions:
            return session
        return session.replaced("instructions", settings.written_instructions)

    def meant(self, instructions: str | None, settings: CallSettings) -> str | None:
        """What this client means by instructions: those of the agent's file, which it is shown, stand for the agent's
        own in this call."""
        if self.of_tenant or instructions != settings.written_instructions:
            return instructions
        return settings.agent.instructions

    def session(self, before: Session, wanted: Session, settings: CallSettings) -> tuple[Session, list[WireError]]:
        """`wanted` with each locked part as it was `before`, and an error for each of them that would have changed."""
        agent = settings.agent
        if wanted.instructions != before.instructions:
            wanted = wanted.replaced("instructions", self.meant(wanted.instructions, settings))
        refused: list[WireError] = []
        locked = self._locked(agent)
        for part in locked & _PATHS.keys():
            path = _PATHS[part]
            value_of = attrgetter(path)
            if value_of(wanted) != value_of(before):
                refused.append(_locked(part, f"session.{path}"))
                wanted = wanted.replaced(path, value_of(before))
        unchanged = (wanted.tool_choice, wanted.tools) == (before.tool_choice, before.tools)
        if unchanged or "tool_choice" in locked:  # then it is not the client that forces a tool
            return wanted, refused
        try:
            self._check_choice(wanted.tool_choice, wanted.tools, agent, "session")
        except WireError as error:
            refused.append(error)
            wanted = msgspec.structs.replace(wanted, tool_choice=before.tool_choice, tools=before.tools)
        return wanted, refused

    def check_response(self, asked: ResponseParams, session: Session, agent: Agent) -> None:
        """Raises WireError: the response changes a locked part, or forces a tool of the agent's."""
        for part, get in _OF_RESPONSE.items():
            if part in self._locked(agent) and get(asked) is not None:
                raise _locked(part, "response.input" if part == "conversation" else f"response.{_PATHS[part]}")
        if asked.tool_choice is None and asked.tools is None:
            return
        choice = session.tool_choice if asked.tool_choice is None else asked.tool_choice
        tools = session.tools if asked.tools is None else asked.tools
        self._check_choice(choice, tools, agent, "response")

    def check_item(self, item: Item, agent: Agent, param: str) -> None:
        """Raises WireError: the conversation is locked, and the model would take the item for instructions, or for what
        the agent did."""
        if item.role == "system" and "instructions" in self._locked(agent):
            raise _locked("instructions", f"{param}.role")
        if "conversation" in self._locked(agent) and not _said(item):
            raise _locked("conversation", f"{param}.role" if item.kind == "message" else f"{param}.type")
        # A tool of the holder's own may have that name now. The conversation outlives it, and would lie then.
        if not self.of_tenant and item.kind == "function_call" and item.name in _own(agent):
            forged = f"Only the server can say that {item.name!r} was called, a tool of the agent's. Leave it out."
            raise WireError("invalid_value", forged, f"{param}.name")

    def check_delete(self, item: Item, agent: Agent) -> None:
        """Raises WireError: the conversation is locked, and the entry is not the client's."""
        if item.role == "system" and "instructions" in self._locked(agent):
            raise _locked("instructions", "item_id")
        if "conversation" in self._locked(agent) and not _said(item):
            raise _locked("conversation", "item_id")

    def _locked(self, agent: Agent) -> frozenset[Part]:
        """What is locked now: an agent that has taken the call over may lock more."""
        return self.locked.union(agent.locked)

    def _check_choice(self, choice: ToolChoice, tools: Collection[ToolJson], agent: Agent, where: str) -> None:
        """Raises WireError: the choice would force a tool of the agent's."""
        own = set() if self.of_tenant else _own(agent) - {tool.name for tool in tools}
        if own and (choice.name in own if isinstance(choice, NamedTool) else choice == "required"):
            forced = f"An ek_ key cannot force the agent's own tools ({', '.join(sorted(own))}). "
            advice = "Name a tool of yours, or leave the choice at 'auto'."
            raise WireError("invalid_value", forced + advice, f"{where}.tool_choice")


def _own(agent: Agent) -> set[str]:
    return {tool.name for tool in agent.tools}


def _said(item: Item) -> bool:
    """Whether an item is the caller's words, or the result of a tool of the client's."""
    return item.kind == "function_call_output" or (item.kind == "message" and item.role == "user")


def _locked(part: Part, param: str) -> WireError:
    why = f"{part!r} is locked, by the agent or by this key: '{param}' stays as it is. Leave it out."
    return WireError("locked", why, param)


def effective_session(settings: CallSettings, who: Caller, expires_at: int = 0) -> tuple[Session, CallSettings]:
    """The session with which a call begins, and `settings` with what its client changes there. Raises WireError."""
    asked, agent = decoded(who.session, dict[str, Any], "session"), settings.agent
    before = Session.of(settings, id=fresh_id("sess"), expires_at=expires_at)
    session = permitted(Rights(frozenset(agent.locked)), before, asked, settings)
    return session, session.settings(settings)


def permitted(rights: Rights, before: Session, asked: dict[str, Any], settings: CallSettings) -> Session:
    """The session with the changes that a client asks for. Raises WireError, also where part of it is locked."""
    session, refused = rights.session(before, before.updated(asked), settings)
    if refused:
        raise refused[0]
    return session
