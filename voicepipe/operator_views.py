"""What operators may see of a PoP's calls, and delete. Protocols and queries only."""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec


class CallSelection(msgspec.Struct, frozen=True, kw_only=True):
    """Kept calls that meet all of these conditions."""

    tenant: str | None = None
    """None: everyone's, also those of no tenant."""
    since: float | None = None
    """Calls that began at this Unix second or later, ..."""
    until: float | None = None
    """... and before this one."""
    caller: str = ""
    """A whole calling number, however it is spelled; empty: any."""


class RecordQuery(CallSelection, frozen=True, kw_only=True):
    """A query for kept calls, the newest first. `caller` may also be the end of a number."""

    limit: int = 100
    before: tuple[float, str] | None = None
    """The list goes on after the call that began at this Unix second and has this id."""
    agent: str = ""
    reason: str = ""


class KeptCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call of which records are kept. Everything else about it is in its records."""

    id: str
    began: float
    """The Unix second at which it was answered."""


class CostQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query for the cost of calls: whose, of which time (Unix seconds), and grouped by what."""

    tenant: str | None = None
    """None: everyone's."""
    since: float
    until: float
    by: Literal["agent", "tenant"] = "agent"


class Deleted(NamedTuple):
    """The outcome of a request to delete calls, by their ids."""

    ids: Sequence[str] = ()
    """The calls of which nothing is kept any more."""
    in_progress: Sequence[str] = ()
    """Calls that are kept, since they go on."""
    not_permitted: int = 0
    """Calls that are kept, since they are not the tenant's. Only what the tenant may know of is counted: calls of no
    tenant, never another's."""


class RecordsApi(Protocol):
    """The records that a PoP keeps of its calls. `tenant`: whose calls; None: everyone's. Implemented by `Records`."""

    async def listed(self, query: RecordQuery) -> Sequence[KeptCall]:
        """The calls, the newest first, ready to be encoded."""

    async def costs(self, query: CostQuery) -> msgspec.Struct:
        """What calls have cost, ready to be encoded."""

    async def found(self, call_id: str, tenant: str | None) -> msgspec.Struct | None:
        """One call in full, ready to be encoded; None: there is none, it is not kept any more, or not `tenant`'s."""

    async def delete(self, call_id: str, tenant: str | None) -> Deleted:
        """Delete one call, unless it goes on. Raises RecordsFailing."""

    async def delete_matching(self, query: CallSelection) -> Deleted:
        """Delete those that have ended. A caller's calls of no tenant are not a tenant's. Raises RecordsFailing."""


class DashboardApi(Protocol):
    """What one PoP shows of its calls on the dashboard. `tenant`: whose calls; None: everyone's. Implemented by
    `Dashboard`.
    """

    def view(self, tenant: str | None, minutes: int) -> msgspec.Struct:
        """The calls of the last `minutes`, ready to be encoded."""

    def turn(self, tenant: str | None, turn_id: str) -> msgspec.Struct | None:
        """One turn in full, ready to be encoded; None if it is not kept any more, or not `tenant`'s."""

    def delete(self, call_id: str, tenant: str | None) -> Deleted:
        """Delete what is shown of one call, unless it goes on: for PoPs that keep no records."""

    def delete_matching(self, query: CallSelection) -> Deleted:
        """Delete what is shown of these calls, unless they go on: for PoPs that keep no records."""


class MetricsApi(Protocol):
    """The metrics of a PoP, as Prometheus scrapes them. Implemented by `Metrics`."""

    def read(self, accept: str) -> Callable[[], tuple[bytes, str]]:
        """Read the figures now. The returned function writes them, in the format that the header `Accept` asks for, and
        says its content type: some milliseconds of Python, so not for the event loop."""
