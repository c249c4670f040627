"""The records of calls over HTTP, for their tenant's programs and for the operator."""

import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Literal

import msgspec
from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import Unauthorized
from voicepipe.call_api import PopApi
from voicepipe.ingress.access import AccessControl, CallGoesOn, NotPermitted, UnknownRecord, uncached, viewer
from voicepipe.ingress.api_keys import account, brings_token
from voicepipe.ingress.wire_errors import WireError
from voicepipe.operator_views import CallSelection, CostQuery, KeptCall, RecordQuery, RecordsApi

RECORDS, COSTS = "/v1/records", "/v1/costs"
MOST, USUAL = 1000, 100
"""Calls in one answer: the most, and the default."""
QUERY = ("limit", "before", "since", "until", "tenant", "agent", "caller", "reason")
DELETION = ("caller", "tenant", "since", "until")
COST_QUERY = ("since", "until", "by")
BY: dict[str, Literal["agent", "tenant"]] = {"agent": "agent", "tenant": "tenant"}
DAY_S = 86_400.0


class RecordList(msgspec.Struct, frozen=True, kw_only=True):
    """Body of GET /v1/records."""

    object: str = "list"
    data: Sequence[KeptCall]
    next: str | None
    """The value of `before=` with which the list goes on; None: there is nothing more."""


class RecordDeleted(msgspec.Struct, frozen=True, kw_only=True):
    """Body of DELETE /v1/records/{id}."""

    id: str
    object: str = "record.deleted"
    deleted: bool = True


class RecordsDeleted(msgspec.Struct, frozen=True, kw_only=True):
    """Body of DELETE /v1/records."""

    object: str = "records.deleted"
    caller: str = ""
    """The number, as it was read; empty: any."""
    tenant: str = ""
    """The tenant that was named; empty: none was."""
    since: float | None = None
    until: float | None = None
    deleted: int = 0
    """Calls that were deleted."""
    in_progress: int = 0
    """Such calls that are still kept, since they go on."""
    calls_in_progress: Sequence[str] = ()
    """Their ids."""
    not_permitted: int = 0
    """Calls from this number that are still kept, since the key may not delete them: they are no tenant's."""
    complete: bool = True
    """Nothing is left of such calls, as far as the server can know."""


class RecordsHttp:
    """The HTTP endpoints for records."""

    def __init__(self, pop: PopApi, access: AccessControl) -> None:
        self._pop = pop
        self._access = access

    def routes(self) -> list[BaseRoute]:
        return [
            Route(RECORDS, self._endpoint(self._list), methods=["GET"]),
            Route(RECORDS, self._endpoint(self._delete_matching), methods=["DELETE"]),
            Route(f"{RECORDS}/{{call_id}}", self._endpoint(self._one), methods=["GET"]),
            Route(f"{RECORDS}/{{call_id}}", self._endpoint(self._delete), methods=["DELETE"]),
            Route(COSTS, self._endpoint(self._costs)),
        ]

    def _endpoint(
        self, answer: Callable[[Request, str | None], Coroutine[Any, Any, msgspec.Struct]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for who may read records; it counts on their account. The second argument of `answer` is the
        tenant whose records these are, as in `PopApi.viewer`."""

        async def endpoint(request: Request) -> Response:
            tenant = self._viewer(request)

            async def answered() -> Response:
                return uncached(await answer(request, tenant))  # Encoding counts, too.

            return await self._access.carry_out(account(tenant), answered())

        return endpoint

    async def _list(self, request: Request, tenant: str | None) -> RecordList:
        """GET: calls, the newest first."""
        asked = query(request.query_params, tenant)
        rows = await self._records().listed(asked)
        shown = rows[: asked.limit - 1]
        more = cursor(shown[-1].began, shown[-1].id) if len(rows) == asked.limit else None
        return RecordList(data=shown, next=more)

    async def _costs(self, request: Request, tenant: str | None) -> msgspec.Struct:
        """GET: the cost of calls, by agent or by tenant; of the last day by default."""
        asked = cost_query(request.query_params, tenant, time.time())
        return await self._records().costs(asked)

    async def _one(self, request: Request, tenant: str | None) -> msgspec.Struct:
        """GET: the record of a call; while it goes on, what there is so far."""
        call_id = request.path_params["call_id"]
        record = await self._records().found(call_id, tenant)
        if record is None:
            raise _unknown(call_id)
        return record

    async def _delete(self, request: Request, tenant: str | None) -> RecordDeleted:
        """DELETE: the record of a call; 409 while it goes on, 403 where it is no tenant's and a tenant asks."""
        call_id = request.path_params["call_id"]
        records, shown = self._pop.records, self._pop.dashboard
        deleted = await records.delete(call_id, tenant) if records else shown.delete(call_id, tenant)
        if deleted.in_progress:
            raise CallGoesOn(
                f"The call {call_id[:200]!r} goes on: wait for its end or hang up, then delete its record."
            )
        if deleted.not_permitted:
            raise NotPermitted(
                f"The call {call_id[:200]!r} belongs to no tenant, so it is still kept: only the operator can delete "
                "it, with the key of http.operator_key_env, at the directory or at the PoP."
            )
        if not deleted.ids:
            self._records()  # Who keeps none says so.
            raise _unknown(call_id)
        return RecordDeleted(id=call_id)

    async def _delete_matching(self, request: Request, tenant: str | None) -> RecordsDeleted:
        """DELETE: the records of all calls from one number, of one tenant, or of a time, except those that go on."""
        asked, records = deletion(request.query_params, tenant), self._pop.records
        # A PoP without records shows its last turns on its dashboard.
        its = await records.delete_matching(asked) if records else self._pop.dashboard.delete_matching(asked)
        return replace(nothing_deleted(request.query_params), deleted=len(its.ids), in_progress=len(its.in_progress),
                       calls_in_progress=its.in_progress, not_permitted=its.not_permitted,
                       complete=not its.in_progress and not its.not_permitted)  # fmt: skip

    def _viewer(self, request: Request) -> str | None:
        """The tenant whose records the sender of a request may read and delete; None: everyone's. Raises
        Unauthorized."""
        if not brings_token(request):
            return viewer(self._pop, request)
        who = self._access.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key or a call's token cannot read records: use the tenant's own.")
        return None if who.grant and who.grant.operator else who.tenant.name

    def _records(self) -> RecordsApi:
        if self._pop.records is None:
            raise UnknownRecord("This PoP keeps no records of calls: its operator has set no records.folder.")
        return self._pop.records


def _unknown(call_id: str) -> UnknownRecord:
    return UnknownRecord(f"No record of a call {call_id[:200]!r} is kept here.")


def cursor(began: float, call_id: str) -> str:
    """The cursor with which a list goes on after this call."""
    return f"{began!r}_{call_id}"


def _position(cursor: str) -> tuple[float, str] | None:
    """The position in a list that a cursor gives. Raises WireError."""
    if not cursor:
        return None
    began, _, call_id = cursor.partition("_")
    try:
        return float(began), call_id
    except ValueError:
        raise WireError("invalid_value", "before must be what a list gave as next.", "before") from None


def query(asked: QueryParams, tenant: str | None) -> RecordQuery:
    """The query of a request. It asks for one call more than `limit`, which shows whether there are more. Raises
    WireError."""
    _check_names(asked, QUERY)
    try:
        limit = int(asked.get("limit", USUAL))
    except ValueError:
        limit = 0
    if not 1 <= limit <= MOST:
        raise WireError("invalid_value", f"limit must be a whole number from 1 to {MOST}.", "limit")
    return RecordQuery(
        tenant=_whose(asked, tenant), limit=limit + 1, before=_position(asked.get("before", "")),
        since=_time(asked, "since"), until=_time(asked, "until"), agent=asked.get("agent", ""),
        caller=_number(asked), reason=asked.get("reason", ""),
    )  # fmt: skip


def deletion(asked: QueryParams, tenant: str | None) -> CallSelection:
    """The calls that are to be deleted. Raises WireError: it does not say which, or names an empty number, since then
    not all calls are meant; NotPermitted."""
    _check_names(asked, DELETION)
    if not any(asked.get(name) for name in DELETION) or "" in (asked.get(name) for name in DELETION):
        raise WireError("missing_required_parameter", "Say which calls are to be deleted: DELETE "
                        f"{RECORDS}?caller=%2B4930123456, the whole number; or those of a tenant=, or of a time, "
                        f"since= and until=. One call: DELETE {RECORDS}/ID.", "caller")  # fmt: skip
    return CallSelection(tenant=_whose(asked, tenant), caller=_number(asked), since=_time(asked, "since"),
                         until=_time(asked, "until"))  # fmt: skip


def nothing_deleted(asked: QueryParams) -> RecordsDeleted:
    """The answer to such a request before anything is deleted. Raises WireError."""
    return RecordsDeleted(caller=_number(asked), tenant=asked.get("tenant", ""), since=_time(asked, "since"),
                          until=_time(asked, "until"))  # fmt: skip


def _whose(asked: QueryParams, tenant: str | None) -> str | None:
    """The tenant whose calls are asked for; None: everyone's. `tenant`: who asks, None: the operator. Raises
    NotPermitted."""
    named = asked.get("tenant", "")
    if named and tenant not in (None, named):
        raise NotPermitted(f"This key reads and deletes the calls of tenant {tenant!r} alone: leave tenant= out.")
    return named or tenant


def cost_query(asked: QueryParams, tenant: str | None, now: float) -> CostQuery:
    """The query of a request for costs. Raises WireError."""
    _check_names(asked, COST_QUERY)
    since, until = _time(asked, "since"), _time(asked, "until")
    by: Literal["agent", "tenant"] | None = BY.get(asked.get("by", "agent"))
    if by is None:
        raise WireError("invalid_value", 'by must be "agent" or "tenant".', "by")
    until = now if until is None else until
    since = until - DAY_S if since is None else since
    if since >= until:
        raise WireError("invalid_value", "since must be before until.", "since")
    return CostQuery(tenant=tenant, since=since, until=until, by=by)


def _check_names(asked: QueryParams, allowed: Sequence[str]) -> None:
    for name in asked:
        if name not in allowed and name != "token":
            said = f"Unknown parameter {name[:100]!r}: expected one of {', '.join(allowed)}."
            raise WireError("unknown_parameter", said, name[:100])


def _number(asked: QueryParams) -> str:
    """A calling number. A "+" that was not escaped arrives as a space, and is meant as "+"."""
    number = asked.get("caller", "")
    return f"+{number[1:]}" if number.startswith(" ") else number


def _time(asked: QueryParams, name: str) -> float | None:
    if name not in asked:
        return None
    try:
        when = float(asked[name])
    except ValueError:
        when = math.nan
    if not math.isfinite(when):
        raise WireError("invalid_value", f"{name} must be a Unix time in seconds.", name)
    return when
