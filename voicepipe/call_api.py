"""What an ingress may ask of a call and of a PoP. Protocols only, so that neither side imports the other."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import msgspec

from voicepipe.agent import Agent, CallSettings, Part, ToolSpec
from voicepipe.base.errors import Reason
from voicepipe.config import Config
from voicepipe.conversation.events import CallEvent, Item
from voicepipe.health import Health, Status
from voicepipe.line import Line

NO_TENANT = "local"
"""Whose all calls are at a PoP without tenants, also phone calls to one that leaves keys to its directory."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """Who calls: the owner of a key."""

    name: str
    agents: tuple[str, ...] = ()
    """Names of the agents that may be called; empty: all."""
    slots: int | None = None
    """Calls at a time; None: as many as the PoP has."""


TOKEN = "vp_"
"""Before a directory's token, where it stands in for a key: what kind of key it is can be told at sight."""


class Grant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What one token allows."""

    id: str
    """Of what it is for: a call, or one request."""
    tenant: str
    agents: tuple[str, ...] = ()
    """That may be called; empty: all."""
    kind: str = ""
    """Of the call that may begin, "websocket" or "webrtc"; empty: any."""
    slots: int | None = None
    """Calls of the tenant at a time, at one PoP."""
    begins: bool = True
    """A call may begin with it. If not, a directory passes on one request of its bearer's with it."""
    holder: str = ""
    """The `ek_` key of whom it was made for, by its id; empty: a tenant's own key."""
    agent: str = ""
    """The one that answers who has an `ek_` key."""
    locked: tuple[Part, ...] = ()
    """What they cannot change of their session."""
    briefed: bool = False
    """The `ek_` key has a session; the directory sends it to the PoP by the bus."""
    network: str = ""
    """From which the call comes, as the directory knows it (`networks.network_of`), or its provider's name and place:
    the PoP tells directories how far it is from there. Empty: nothing is to be learned from it."""
    operator: bool = False
    """The directory's operator asks: they may know how many calls all tenants have."""


@dataclass(frozen=True, slots=True)
class ReplyRequest:
    """A reply that the client asks for. None: as the call's settings say."""

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
    """Of a conversation."""

    items: int
    bytes: int
    """Of their text, in UTF-8."""


class CallControl(Protocol):
    """One call, seen from its ingress. Events may be emitted before a method returns."""

    id: str

    @property
    def settings(self) -> CallSettings:
        """As they are now; changed by `configure` alone."""

    def voice_for(self, asked: str) -> str:
        """The name of the voice that speaks where this one is asked for: the default voice's where there is none of
        that name, or no name."""

    def items(self) -> Sequence[Item]:
        """The conversation, in order."""

    def size(self) -> Size:
        """Of the conversation as `items` has it."""

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
        """Stop the reply being made (None: whichever it is, also one that was asked for and has not begun). Raises
        NoReply."""

    def press(self, key: str) -> None:
        """The caller pressed a key of their telephone: "0" to "9", "*", "#", "A" to "D"."""

    def transfer(self, target: str) -> None:
        """Begin to send the caller to `target`: the call ends ("transferred") once somebody there has taken it. If
        nobody does, the agent says so and the call goes on. Raises TransferFailed: it cannot be begun."""

    async def run(self) -> None:
        """Live until somebody hangs up. `CallEnded` is the last event."""

    def close(self) -> None:
        """Let go of everything: it has run, or never will. Safe to call twice."""


Observer = Callable[[CallEvent], None]
"""Watches a call: gets each of its events as it happens, on the event loop, and must not wait. The Realtime convention,
the dashboard and admission each are one."""


class CallSlot(Protocol):
    """An admitted caller's place in a PoP; given back when the context of `PopApi.admit` ends."""

    @property
    def owner(self) -> str:
        """The name of the tenant who has it."""

    def open(self, line: Line, settings: CallSettings, observer: Observer) -> CallControl:
        """Make the call, which `observer` watches beside the PoP's own observers, after them."""

    def ended(self, reason: str) -> None:
        """Why its door says that the call is over: as `CallEnded.reason`, or the door's own ("max_length", ...)."""


class DashboardApi(Protocol):
    """What one PoP shows of its calls. `tenant`: whose; None: everyone's."""

    def view(self, tenant: str | None, minutes: int) -> msgspec.Struct:
        """The last `minutes`, ready to be encoded."""

    def turn(self, tenant: str | None, turn_id: str) -> msgspec.Struct | None:
        """One turn in full, ready to be encoded; None if it is not kept any more, or not `tenant`'s."""

    def delete(self, call_id: str, tenant: str | None) -> "Deleted":
        """What is shown of one call, unless it goes on: for PoPs that keep no records."""


DoorKind = Literal["websocket", "webrtc", "sip", "twilio", "telnyx"]


class Refusal(msgspec.Struct, frozen=True):
    """A call that was not taken. What is unknown, since the caller was turned away before, is empty."""

    reason: Reason
    door: DoorKind
    """At which it was refused."""
    tenant: str = ""
    agent: str = ""
    status: int = 0
    """What the caller was given: an HTTP status, a SIP code or a WebSocket's close code; 0: none of these."""


class KeyHolders(Protocol):
    """Whose keys open a door."""

    def tenant(self, key: str | None) -> Tenant:
        """Whose key this is. Raises Unauthorized. Without tenants every caller is the tenant "local"."""


class Alternate(NamedTuple):
    """Another PoP, for who is turned away by one."""

    pop: str
    url: str
    """Its base, as "https://fra1.example.com"."""


class Tokens(Protocol):
    """What a PoP takes of directories."""

    def read(self, token: str, spent: bool = False) -> Grant:
        """What the token allows; it is not used up by that. `spent`: a call's token will do although a call began with
        it, and however long ago. Raises Unauthorized."""

    def use(self, grant: Grant) -> None:
        """What it is for begins. Raises Unauthorized: it did before."""

    def came(self, call: str) -> None:
        """A call has begun that a directory placed here under this id, by a door that takes no tokens. Directories are
        told; it lets nobody in."""

    async def session(self, grant: Grant) -> bytes:
        """Of a briefed one, as JSON; it may still be on its way. Raises Unauthorized: it does not come."""

    def alternates(self) -> Sequence[Alternate]:
        """Where a caller may go who is turned away here; the nearest first."""


class MetricsApi(Protocol):
    """What Prometheus scrapes."""

    def read(self, accept: str) -> Callable[[], tuple[bytes, str]]:
        """Reads what is true now. What is returned writes the figures, in the format that the header `Accept` asks for,
        and says its content type: some milliseconds of Python, so not for the event loop."""


class RecordQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which calls are asked for, the newest first."""

    tenant: str | None = None
    """None: everyone's."""
    limit: int = 100
    before: tuple[float, str] | None = None
    """The list goes on after the call that began at this Unix second and has this id."""
    since: float | None = None
    """Calls that began at this Unix second or later, ..."""
    until: float | None = None
    """... and before this one."""
    agent: str = ""
    caller: str = ""
    """A calling number, or the end of one."""
    reason: str = ""


class KeptCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is kept. What else is known of it, its records say."""

    id: str
    began: float
    """The Unix second at which it was answered."""


class CostQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Whose calls, of which time (Unix seconds), told apart by what."""

    tenant: str | None = None
    """None: everyone's."""
    since: float
    until: float
    by: Literal["agent", "tenant"] = "agent"


class Deleted(NamedTuple):
    """What has become of calls that were to be deleted."""

    ids: Sequence[str] = ()
    """Of those of which nothing is kept any more."""
    in_progress: int = 0
    """Those that are kept, since they go on."""
    not_permitted: int = 0
    """Those that are kept, since they are not the tenant's. Only what the tenant may know of is counted: calls of no
    tenant, never another's."""


class RecordsApi(Protocol):
    """What is kept of a PoP's calls. `tenant`: whose; None: everyone's."""

    async def listed(self, query: RecordQuery) -> Sequence[KeptCall]:
        """The newest first, ready to be encoded."""

    async def costs(self, query: CostQuery) -> msgspec.Struct:
        """What calls have cost, ready to be encoded."""

    async def found(self, call_id: str, tenant: str | None) -> msgspec.Struct | None:
        """One call in full, ready to be encoded; None: there is none, it is not kept any more, or not `tenant`'s."""

    async def delete(self, call_id: str, tenant: str | None) -> Deleted:
        """One call, unless it goes on. Raises RecordsFailing."""

    async def delete_caller(self, caller: str, tenant: str | None, *, for_operator: bool = False) -> Deleted:
        """All calls from exactly this number that have ended. `for_operator`: calls of other tenants are counted as
        not permitted, too. Raises RecordsFailing."""


class PopApi(KeyHolders, Protocol):
    """One PoP, seen from its ingresses."""

    config: Config
    serving: asyncio.Event
    """Set by the HTTP server once callers get in."""

    @property
    def tokens(self) -> Tokens | None:
        """None: no directory sends calls here."""

    @property
    def dashboard(self) -> DashboardApi:
        """What operators see."""

    @property
    def metrics(self) -> MetricsApi:
        """What Prometheus scrapes."""

    @property
    def records(self) -> RecordsApi | None:
        """None: none are kept."""

    def agent(self, name: str | None) -> Agent:
        """The agent of this name, None: the default. Raises ConfigError, which names the agents there are."""

    def agents(self) -> Sequence[Agent]:
        """All agents, the default first."""

    def lacks(self, agent: Agent) -> str:
        """What keeps the PoP from answering this agent's callers, and what helps; empty: nothing."""

    def voices(self) -> Mapping[str, str]:
        """Name of each voice -> the language that it speaks."""

    def voice_for(self, asked: str, language: str = "") -> str:
        """As `CallControl`, to callers who speak `language`."""

    def viewer(self, key: str | None) -> str | None:
        """Whose calls the holder of this key may see: a tenant's name; None: everyone's. Raises Unauthorized."""

    def may_scrape(self, key: str | None) -> bool:
        """The holder of this key may read the metrics. None: programs of this machine may, without one."""

    def admit(self, tenant: Tenant, agent: Agent, leaving: CallSlot | None = None) -> AbstractContextManager[CallSlot]:
        """A place for one call. `leaving`: a place that is given back for it at once, and so does not count.

        Raises PopFull, of which TenantFull and PopLate are kinds, Draining, EngineDown. The door answers its caller,
        and tells `refused`."""

    def refused(self, refusal: Refusal) -> None:
        """A call was refused, by the PoP or by its door. Told once for each, by the door; it costs a counter."""

    @property
    def status(self) -> Status:
        """Whether calls are taken, and why not."""

    def health(self) -> Health:
        """That, and the numbers behind it."""
