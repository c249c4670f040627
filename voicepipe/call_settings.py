"""The settings of one call: its agent's, and what a client may lay over them; and where the call comes from."""

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from voicepipe.agent import Agent, Part, ToolSpec

LOCKS: dict[Part, str] = {
    "tools": "tools",
    "turn_detection": "turn_detection",
    "output_modalities": "modality",
    "max_output_tokens": "max_tokens",
}
"""Parts that a client may set and an agent that takes a call over may lock, with their fields of `CallSettings`."""


class ServerVad(msgspec.Struct, frozen=True, tag_field="type", tag="server_vad"):
    """Turn detection by silence alone: `silence_ms`, which the client sets, ends a turn, and such turns are never
    counted late. The names on the wire are the Realtime convention's."""

    threshold: Annotated[float, Meta(ge=0, le=1)] = 0.5
    prefix_ms: Annotated[int, Meta(ge=0, le=10_000)] = msgspec.field(default=300, name="prefix_padding_ms")
    silence_ms: Annotated[int, Meta(ge=0, le=60_000)] = msgspec.field(default=500, name="silence_duration_ms")
    idle_ms: Annotated[int, Meta(ge=0, le=600_000)] | None = msgspec.field(default=None, name="idle_timeout_ms")
    create_response: bool = True
    interrupt_response: bool = True


class SemanticVad(msgspec.Struct, frozen=True, tag_field="type", tag="semantic_vad"):
    """Turn detection by voicepipe's endpointer. `eagerness` scales only the unsure and the unfinished waits. The names
    on the wire are the Realtime convention's."""

    eagerness: Literal["low", "medium", "high", "auto"] = "auto"
    create_response: bool = True
    interrupt_response: bool = True


class TraceContext(msgspec.Struct, frozen=True):
    """The trace that a call belongs to, by W3C Trace Context: two headers of the request that began it, unchanged.
    Empty: the request had none."""

    parent: str = ""
    """traceparent"""
    state: str = ""
    """tracestate"""


class Origin(msgspec.Struct, frozen=True):
    """Where a call comes from, as the network that brought it says. Empty: it said nothing."""

    caller: str = ""
    """The calling number, or a SIP user."""
    called: str = ""
    """The number that was dialled."""
    headers: dict[str, str] = {}
    """X- headers of a SIP call, parameters of a Twilio or Telnyx stream."""
    trace: TraceContext = TraceContext()


NOWHERE = Origin()
"""The origin of a call of which no network says anything."""


class CallSettings(msgspec.Struct, frozen=True):
    """The settings of one call: the agent's file plus the client's changes. Effective from the next *prepare*."""

    agent: Agent
    instructions: str = ""
    written_instructions: str = ""
    """The agent's as its file has them: without values of this call, and without what a hook adds."""
    voice: str = ""
    speed: float = 1.0
    tools: tuple[ToolSpec, ...] = ()
    """The client's own; they win over the agent's tools of the same name and go to the client to be run."""
    tool_choice: str = "auto"
    modality: Literal["audio", "text"] = "audio"
    max_tokens: int | None = None
    turn_detection: ServerVad | SemanticVad | None = SemanticVad()
    origin: Origin = Origin()
    variables: dict[str, str] = {}
    """Values of the agent's variables in this call. The texts of `agent` are filled in already."""
    given: dict[str, str] = {}
    """Values that the hook gave, also for variables that only an agent has who may take the call over."""
    secret_variables: frozenset[str] = frozenset()
    """Names of those that no record holds: they stand in headers, so they may be keys."""
    began: str = ""
    """When the call began, as its model is told (`variables.moment_of`); empty: it is not told."""

    @property
    def most_tokens(self) -> int | None:
        """Tokens of a reply, at most: the client's limit or the agent's, whichever is less; None: neither has one."""
        return min((limit for limit in (self.max_tokens, self.agent.max_tokens) if limit), default=None)

    @classmethod
    def of(cls, agent: Agent, origin: Origin = NOWHERE, variables: Mapping[str, str] | None = None) -> "CallSettings":
        """The settings of a call whose client has changed nothing."""
        return cls(agent, agent.instructions, agent.instructions, agent.voice, agent.speed, origin=origin,
                   variables=dict(variables or {}))  # fmt: skip

    @property
    def told_variables(self) -> dict[str, str]:
        """Values that records may hold."""
        return {name: value for name, value in self.variables.items() if name not in self.secret_variables}

    def handed_to(self, other: "CallSettings") -> "CallSettings":
        """These settings once the agent of `other` has taken over. A client's own tools, and how turns and replies are
        made, stay, but for what that agent locks."""
        locked = {LOCKS[part]: getattr(other, LOCKS[part]) for part in other.agent.locked if part in LOCKS}
        return msgspec.structs.replace(
            self, agent=other.agent, instructions=other.instructions, voice=other.voice, speed=other.speed,
            variables=other.variables, secret_variables=other.secret_variables, began=other.began,
            written_instructions=other.written_instructions, tool_choice="auto", **locked,
        )  # fmt: skip
