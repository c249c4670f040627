"""What is kept of calls, for their tenant's programs and for the operator: GET /v1/records, /v1/records/{id}."""

from collections.abc import Sequence

import msgspec
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from voicepipe.call_api import PopApi, RecordQuery, RecordsApi, Tenant
from voicepipe.errors import Unauthorized
from voicepipe.ingress.doors import Doors, UnknownRecord
from voicepipe.ingress.keys import Caller, brings_token, key_of
from voicepipe.ingress.mistakes import WireError
from voicepipe.ingress.scope import pays

RECORDS = "/v1/records"
MOST, USUAL = 1000, 100
"""Calls in one answer: at most, and where nobody says how many."""
OPERATOR = "(operator)"
"""On whose account those ask who may see everything."""
QUERY = ("limit", "before", "since", "until", "agent", "caller", "reason")


class _List(msgspec.Struct, frozen=True):
    data: Sequence[msgspec.Struct]
    has_more: bool
    """`before=` the last one's id gives the rest."""
    object: str = "list"


class RecordsHttp:
    """The endpoints."""

    def __init__(self, pop: PopApi, doors: Doors) -> None:
        self._pop = pop
        self._doors = doors

    def routes(self) -> list[BaseRoute]:
        return [Route(RECORDS, self.list), Route(f"{RECORDS}/{{call_id}}", self.one)]

    async def list(self, request: Request) -> Response:
        """GET: calls, the newest first."""
        viewer = self._viewer(request)
        asked = query(request.query_params, viewer)
        return await self._doors.carry_out(_account(viewer), self._listed(asked))

    async def one(self, request: Request) -> Response:
        """GET: all that is kept of a call; while it goes on, so far."""
        viewer = self._viewer(request)
        return await self._doors.carry_out(_account(viewer), self._found(request.path_params["call_id"], viewer))

    async def _listed(self, asked: RecordQuery) -> Response:
        rows = await self._records().listed(asked)
        return _json(_List(rows[: asked.limit - 1], len(rows) == asked.limit))

    async def _found(self, call_id: str, viewer: str | None) -> Response:
        record = await self._records().found(call_id, viewer)
        if record is None:
            raise UnknownRecord(f"No record of a call {call_id[:200]!r} is kept here.")
        return _json(record)

    def _viewer(self, request: Request) -> str | None:
        """Whose records may be seen; None: everyone's. Raises Unauthorized."""
        if not brings_token(request):
            viewer = self._pop.viewer(key_of(request.headers.get("authorization"), []))
            pays(request)
            return viewer
        who = self._doors.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key or a call's token cannot read records: use the tenant's own.")
        return who.tenant.name

    def _records(self) -> RecordsApi:
        if self._pop.records is None:
            raise UnknownRecord("This PoP keeps no records of calls: its operator has set no records.folder.")
        return self._pop.records


def query(asked: QueryParams, tenant: str | None) -> RecordQuery:
    """One more call than `limit`, by which it is known whether there are more. Raises WireError."""
    for name in asked:
        if name not in QUERY and name != "token":
            said = f"Unknown parameter {name[:100]!r}: expected one of {', '.join(QUERY)}."
            raise WireError("unknown_parameter", said, name[:100])
    try:
        limit = int(asked.get("limit", USUAL))
    except ValueError:
        limit = 0
    if not 1 <= limit <= MOST:
        raise WireError("invalid_value", f"limit must be a whole number from 1 to {MOST}.", "limit")
    return RecordQuery(
        tenant=tenant, limit=limit + 1, before=asked.get("before", ""), since=_time(asked, "since"),
        until=_time(asked, "until"), agent=asked.get("agent", ""), caller=asked.get("caller", ""),
        reason=asked.get("reason", ""),
    )  # fmt: skip


def _time(asked: QueryParams, name: str) -> float | None:
    if name not in asked:
        return None
    try:
        return float(asked[name])
    except ValueError:
        raise WireError("invalid_value", f"{name} must be a Unix time in seconds.", name) from None


def _account(viewer: str | None) -> Caller:
    return Caller(Tenant(OPERATOR if viewer is None else viewer))


def _json(answer: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json", headers={"Cache-Control": "no-store"})
