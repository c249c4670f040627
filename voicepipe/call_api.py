"""What an ingress may ask of a call and of a PoP. Protocols only, so that neither side imports the other."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import msgspec

from voicepipe.agent import Agent, Part, ToolSpec
from voicepipe.base.errors import Reason
from voicepipe.base.takeover import PredecessorApi, SuccessorApi, TakeoverParts
from voicepipe.call_settings import NOWHERE, CallSettings, Origin
from voicepipe.config import Config
from voicepipe.config.rereads import Rereads
from voicepipe.conversation.events import CallEvent, Item
from voicepipe.health import Health, Status
from voicepipe.line import Line
from voicepipe.operator_views import DashboardApi, MetricsApi, RecordsApi

NO_TENANT = "local"
"""The tenant of all calls at a PoP without tenants, and of phone calls to one that leaves keys to its directory."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """The owner of a key, on whose behalf calls are made."""

    name: str
    agents: tuple[str, ...] = ()
    """Names of the agents that may be called; empty: all."""
    slots: int | None = None
    """Calls at a time; None: as many as the PoP has."""


TOKEN = "vp_"
"""Prefix of a directory's token, where it stands in for a key: so the kind of key can be seen."""


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one token of a directory allows its bearer to do at a PoP."""

    id: str
    """Id of the call's placement ("call_...", as `Placement.placement_id`), or of the one request ("ask_..."), that the
    token is for. The call itself gets an id of its own at its PoP ("rtc_POP....": `CallSlot.call_id`)."""
    tenant: str
    agents: tuple[str, ...] = ()
    """Names of the agents that may be called; empty: all."""
    kind: str = ""
    """Kind of the call that may begin, "websocket" or "webrtc"; empty: any."""
    slots: int | None = None
    """Calls of the tenant at a time, at one PoP."""
    begins: bool = True
    """A call may begin with it. If not, a directory passes on one request of its bearer's with it."""
    holder: str = ""
    """Id of the `ek_` key that its bearer holds; empty: the bearer has a tenant's own key."""
    agent: str = ""
    """The agent that answers the holder of the `ek_` key."""
    locked: tuple[Part, ...] = ()
    """Parts of their session that the holder of the `ek_` key cannot change."""
    briefed: bool = False
    """The `ek_` key has a session; the directory sends it to the PoP by the bus."""
    network: str = ""
    """The network from which the call comes, as the directory knows it (`networks.network_of`), or its provider's name
    and region:
    the PoP tells directories how far it is from there. Empty: nothing is to be learned from it."""
    operator: bool = False
    """The directory's operator asks, who may read and delete all records."""


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """A reply that the client asks for. None means: as the call's settings say."""

    instructions: str | None = None
    tools: tuple[ToolSpec, ...] | None = None
    tool_choice: str | None = None
    modality: Literal["audio", "text"] | None = None
    max_tokens: int | None = None
    voice: str | None = None
    metadata: dict[str, str] | None = None
    conversation: Literal["auto", "none"] = "auto"
    """"none": the reply is made beside the conversation and leaves nothing in it."""
    input: tuple[Item, ...] | None = None
    """What the model reads in place of the conversation."""


class Size(NamedTuple):
    """The size of a conversation."""

    items: int
    bytes: int
    """Size of the items' text in UTF-8."""


class CallControl(Protocol):
    """The control of one call, as its ingress sees it. Events may be emitted before a method returns. Implemented by
    `Call`.
    """

    id: str

    @property
    def settings(self) -> CallSettings:
        """The present settings; only `configure` changes them."""

    def voice_for(self, asked: str) -> str:
        """The name of the voice that speaks where `asked` is asked for: the default voice's if there is none of that
        name, or no name."""

    def items(self) -> Sequence[Item]:
        """The conversation, in order."""

    def size(self) -> Size:
        """The size of the conversation that `items` returns."""

    def item(self, item_id: str) -> Item:
        """Raises ItemUnknown."""

    def configure(self, settings: CallSettings) -> None:
        """Lay new settings over the call, effective from the next *prepare*."""

    def commit_input(self) -> None:
        """End the caller's turn here. Raises InputEmpty: less than 100 ms of audio since the last commit."""

    def clear_input(self) -> None:
        """Forget the audio since the last commit."""

    def add_item(self, item: Item, previous_id: str | None) -> None:
        """Put an item behind another ("root": first; None: last). Raises ItemExists, ItemUnknown (previous)."""

    def delete_item(self, item_id: str) -> None:
        """Raises ItemUnknown."""

    def truncate(self, item_id: str, audio_end_ms: int) -> None:
        """The caller heard only so much of an assistant's audio; stops it if it still plays.

        Raises ItemUnknown, ItemMismatch.
        """

    def respond(self, request: ReplyRequest) -> None:
        """Make a reply now. Raises ReplyActive."""

    def cancel_reply(self, response_id: str | None) -> None:
        """Stop the reply being made, and drop all sound that waits to be played. None: whichever reply it is, also one
        that was asked for and has not begun. Raises NoReply."""

    def press(self, key: str) -> None:
        """The caller pressed a key of their telephone: "0" to "9", "*", "#", "A" to "D"."""

    def transfer(self, target: str) -> None:
        """Begin to send the caller to `target`: the call ends ("transferred") once somebody there has taken it. If
        nobody does, the agent says so and the call goes on. Raises TransferFailed: it cannot be begun."""

    async def run(self) -> None:
        """Run the call until somebody hangs up. `CallEnded` is the last event."""

    def close(self) -> None:
        """Release everything: the call has run, or never will. Safe to call twice."""


Observer = Callable[[CallEvent], None]
"""Watches a call: gets each of its events as it happens, on the event loop, and must not wait. The Realtime convention,
the dashboard and admission each are one."""


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent's `hooks.before_call`, or the program of its `hooks.incoming_call`, says of a call that is to be
    answered. Empty: nothing, as where there is neither."""

    agent: str = ""
    """Name of the agent that answers in place of the one that was called."""
    greeting: str | None = None
    """Replaces the agent's; empty: the caller speaks first."""
    instructions: str = ""
    """Stand behind the agent's own."""
    variables: dict[str, str] = {}
    """Values that replace those of the agent's file."""
    session: bytes = b""
    """The session of the Realtime convention, as JSON, with which a program has accepted the call; empty: none has."""


NO_ANSWER = HookAnswer()


HookOutcome = Literal["answered", "timeout", "error", "invalid"]


class HookRun(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent's `hooks.before_call` or `hooks.incoming_call` has answered about a call, for the call's record."""

    agent: str
    """The agent that was called, whose hook it is: another one may have answered the call."""
    outcome: HookOutcome
    """"timeout": no answer in time; "error": none, since the hook failed or cannot be reached; "invalid": one that
    cannot be used. After these three the agent answers as its file says."""
    ms: float
    why: str = ""
    """What was wrong, for who runs the PoP."""


class CallSlot(Protocol):
    """An admitted caller's slot in a PoP; released when the context of `PopApi.admit` ends. Implemented by
    `pop._AdmittedCall`.
    """

    @property
    def call_id(self) -> str:
        """The id that the call has once it is opened."""

    @property
    def owner(self) -> str:
        """The name of the tenant who has the slot."""

    def hook_has_run(self, run: HookRun) -> None:
        """Note how the agent's hook has answered; the record of the call says so."""

    def open(self, line: Line, settings: CallSettings, observer: Observer) -> CallControl:
        """Make the call, which `observer` watches beside the PoP's own observers, after them."""

    def ended(self, reason: str) -> None:
        """Note why the call is over, as its door says: as `CallEnded.reason`, or the door's own ("max_length", ...)."""


class IncomingCall(NamedTuple):
    """A phone call that rings until a program accepts or rejects it."""

    id: str
    """The id that the call has once it is answered."""
    owner: str
    """The name of its tenant."""
    agent: Agent
    """The agent that was called."""
    origin: Origin


class IncomingCallsApi(Protocol):
    """The phone calls that ring until a program accepts or rejects them. Implemented by `IncomingCalls`."""

    def find(self, call_id: str, tenant: Tenant) -> IncomingCall:
        """The call of this id, if it is this tenant's. Raises UnknownCall: none of this id rings any more."""

    def accept(self, call: IncomingCall, said: HookAnswer) -> None:
        """The call is to be answered so. Raises UnknownCall."""

    def reject(self, call: IncomingCall, sip_code: int) -> None:
        """The call is to be refused; callers by SIP get this code. Raises UnknownCall."""


DoorKind = Literal["websocket", "webrtc", "sip", "twilio", "telnyx"]


class Refusal(msgspec.Struct, frozen=True):
    """A call that was refused. What is unknown, since the caller was turned away before, is empty."""

    reason: Reason
    door: DoorKind
    """The door that refused it."""
    tenant: str = ""
    agent: str = ""
    status: int = 0
    """The caller's answer: an HTTP status, a SIP code or a WebSocket's close code; 0: none of these."""


class KeyHolders(Protocol):
    """The owners of the keys with which callers authenticate."""

    def tenant(self, key: str | None) -> Tenant:
        """The owner of this key. Raises Unauthorized. Without tenants every caller is the tenant "local"."""


class Alternate(NamedTuple):
    """Another PoP, to which a caller can go whom one PoP turns away."""

    pop: str
    url: str
    """Base URL of the PoP, such as "https://fra1.example.com"."""


class Tokens(Protocol):
    """The tokens of directories, as a PoP checks and uses them. Implemented by `Membership`."""

    def read(self, token: str, spent: bool = False) -> Grant:
        """What the token allows; reading does not use it up. `spent`: a call's token will do although a call began with
        it, and however long ago. Raises Unauthorized."""

    def use(self, grant: Grant) -> None:
        """Use the token up: what it is for begins. Raises Unauthorized: it was used before."""

    def came(self, placement_id: str) -> None:
        """Note that a call has begun that a directory placed here, as in `Grant.id`, by a door that takes no tokens.
        Directories are notified; it lets nobody in."""

    def owner(self, placement_id: str) -> str:
        """The tenant for whom a directory has placed this call, which brings no token. Empty: none is known."""

    async def session(self, grant: Grant) -> bytes:
        """The session of a briefed grant, as JSON; it may still be on its way. It uses no token up. Raises
        SessionMissing: it does not come."""

    def alternates(self) -> Sequence[Alternate]:
        """The PoPs to which a caller may go who is turned away here; the nearest first."""


class PopApi(KeyHolders, Protocol):
    """A PoP, as its ingresses see it. Implemented by `Pop`."""

    config: Config
    rereads: Rereads[Config]
    """What is read again while it runs."""
    takeover_parts: TakeoverParts
    """What is handed over to the process that replaces this one."""

    @property
    def successor(self) -> SuccessorApi:
        """The process that may replace this one."""

    serving: asyncio.Event
    """Set by the HTTP server once callers get in."""

    @property
    def predecessor(self) -> PredecessorApi | None:
        """The process before this one; None: this one has replaced none, or that has ended."""

    @property
    def tokens(self) -> Tokens | None:
        """None: no directory sends calls here."""

    @property
    def dashboard(self) -> DashboardApi:
        """The calls and turns that operators see."""

    @property
    def incoming(self) -> IncomingCallsApi:
        """The phone calls that ring until a program accepts or rejects them."""

    @property
    def metrics(self) -> MetricsApi:
        """The metrics that Prometheus scrapes."""

    @property
    def records(self) -> RecordsApi | None:
        """None: none are kept."""

    def agent(self, name: str | None) -> Agent:
        """The agent of this name, None: the default. Raises ConfigError, which names the agents there are."""

    def agents(self) -> Sequence[Agent]:
        """All agents, the default first."""

    def settings(self, agent: Agent, origin: Origin = NOWHERE, said: HookAnswer = NO_ANSWER) -> CallSettings:
        """The settings with which `agent` answers a call from there: its texts are filled in. `said`: the answer of its
        hook."""

    async def ask_hook(
        self, slot: CallSlot, agent: Agent, origin: Origin, door: DoorKind, limit_ms: int | None = None
    ) -> HookAnswer:
        """Ask the agent's `hooks.before_call` about a call that has this slot; about a phone call, the program of its
        `hooks.incoming_call`. Takes `hooks.before_call_ms` (`incoming_call_ms`) at most, and no longer than `limit_ms`,
        for which the door's caller may wait, whatever happens: a hook that fails says nothing, and log and record say
        so. Where the agent has neither, it returns at once. Raises Declined: the call is to be refused."""

    def lacks(self, agent: Agent) -> str:
        """What keeps the PoP from answering this agent's callers, and what helps; empty: nothing."""

    def voices(self) -> Mapping[str, str]:
        """Name of each voice -> the language that it speaks."""

    def voice_for(self, asked: str, language: str = "") -> str:
        """As `CallControl.voice_for`, for callers who speak `language`."""

    def viewer(self, key: str | None) -> str | None:
        """The tenant whose calls the holder of this key may see; None: everyone's. Raises Unauthorized."""

    def may_scrape(self, key: str | None) -> bool:
        """Whether the holder of this key may read the metrics. None: programs of this machine may, without one."""

    def admit(self, tenant: Tenant, agent: Agent, replaced: CallSlot | None = None) -> AbstractContextManager[CallSlot]:
        """A slot for one call. `replaced`: the slot of a call that it replaces, and which does not count.

        Raises PopFull, of which TenantFull and PopLate are kinds, Draining, EngineDown. The door answers its caller,
        and calls `refused`.
        """

    def refused(self, refusal: Refusal) -> None:
        """Note that a call was refused, by the PoP or by its door. The door calls it once for each; it costs a
        counter."""

    @property
    def status(self) -> Status:
        """Whether calls are taken, and why not."""

    def health(self) -> Health:
        """The status, and the figures behind it."""
