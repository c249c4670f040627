"""Records of calls at a directory: asked of all PoPs, or of the one that had the call, for a tenant and for the
operator. A deletion names every PoP that may still keep something."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from itertools import chain
from typing import Any, Literal

from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base import call_ids
from voicepipe.directory.directory import Directory
from voicepipe.directory.server.operator import OperatorAccess
from voicepipe.directory.server.pop_lists import PopCosts, PopRecords, merged, not_answered, says_unknown
from voicepipe.directory.server.request_proxy import ALONE_S, RequestProxy, last_word, silent
from voicepipe.ingress.access import AccessControl, UnknownRecord
from voicepipe.ingress.api_keys import Caller, account, viewer_of
from voicepipe.ingress.asgi_scope import pays
from voicepipe.operator_api.records_http import (
    COSTS,
    RECORDS,
    RecordsDeleted,
    cost_query,
    deletion,
    nothing_deleted,
    query,
)

Answer = Callable[[Caller, Request], Coroutine[Any, Any, Response]]


class RecordsProxy:
    """The HTTP endpoints for records at a directory, which `proxy` passes on to PoPs."""

    def __init__(
        self, access: AccessControl, directory: Directory, operators: OperatorAccess, proxy: RequestProxy
    ) -> None:
        self._access = access
        self._directory = directory
        self._operators = operators
        self._proxy = proxy

    def routes(self) -> list[BaseRoute]:
        return [
            Route(RECORDS, self._endpoint(self.records), methods=["GET"]),
            Route(RECORDS, self._endpoint(self.delete_matching), methods=["DELETE"]),
            Route(f"{RECORDS}/{{call_id}}", self._endpoint(self.record), methods=["GET", "DELETE"]),
            Route(COSTS, self._endpoint(self.costs)),
        ]

    def _endpoint(self, answer: Answer) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint for a tenant or the operator, on whose account `answer` is made."""

        async def endpoint(request: Request) -> Response:
            if self._operators.admits(request):
                pays(request)
                who = account(None)
            else:
                who = self._proxy.owner(request)
            return await self._access.carry_out(who, answer(who, request))

        return endpoint

    async def records(self, who: Caller, request: Request) -> Response:
        """GET: records of the calls at all PoPs, the newest first; `missing` names PoPs that did not answer, and those
        that are silent or gone."""
        limit = query(request.query_params, viewer_of(who)).limit - 1
        lists = await self._proxy.everyones(who, request, PopRecords, none=PopRecords())
        return Response(
            await asyncio.to_thread(merged, lists, limit, self._missing(lists)), media_type="application/json"
        )

    async def record(self, who: Caller, request: Request) -> Response:
        """GET, DELETE: one record, at the PoP that keeps it. Raises NoPop: that one is silent or gone."""
        pop = call_ids.pop_of(request.path_params["call_id"])
        if pop not in self._directory.keepers():
            raise UnknownRecord("No record of such a call is kept by a PoP that this directory has heard of.")
        there = self._proxy.token(who, pop, lost=request.method == "DELETE")
        answer = last_word(await self._proxy.sent(request, f"{there.url}{request.url.path}", there, b"", ALONE_S))
        if answer.status_code == 404 and not says_unknown(answer):
            silent(there)
        return answer

    async def delete_matching(self, who: Caller, request: Request) -> Response:
        """DELETE: records of all calls from one number, of one tenant, or of a time, at all PoPs, also at those that
        fell silent."""
        deletion(request.query_params, viewer_of(who))
        nothing = nothing_deleted(request.query_params)
        answers = await self._proxy.everyones(who, request, RecordsDeleted, nothing, ALONE_S, lost=True)
        return JSONResponse(_total(nothing, answers, self._missing(answers), self._unsure()))

    async def costs(self, who: Caller, request: Request) -> Response:
        """GET: the cost of the calls, at each PoP."""
        cost_query(request.query_params, viewer_of(who), time.time())
        lists = await self._proxy.everyones(who, request, PopCosts, none=PopCosts([]))
        there = [its for its in lists.values() if its]
        answer: dict[str, Any] = {"object": "list", "data": list(chain(*(its.data for its in there)))}
        for name in ("host_cost", "idle_cost"):
            known = [cost for its in there if (cost := getattr(its, name)) is not None]
            answer[name] = sum(known) if known else None
        return JSONResponse({**answer, "missing": self._missing(lists)})

    def _missing(self, answers: Mapping[str, object]) -> list[str]:
        """PoPs whose records are missing from these answers: they did not answer, or are silent or gone."""
        away = self._directory.keepers() - answers.keys()
        return sorted(away | set(not_answered(answers)))

    def _unsure(self) -> Literal["", "cut_off", "forgets"]:
        """Why there may be PoPs that keep records and that this directory does not know of."""
        if self._directory.is_cut_off:
            return "cut_off"
        return "" if self._directory.known else "forgets"


def _total(
    nothing: RecordsDeleted, answers: Mapping[str, RecordsDeleted | None], missing: list[str], unsure: str
) -> dict[str, Any]:
    """The body of the answer to a deletion at all PoPs."""
    there = {pop: its for pop, its in answers.items() if its}
    total = replace(
        nothing,
        deleted=sum(its.deleted for its in there.values()),
        in_progress=sum(its.in_progress for its in there.values()),
        calls_in_progress=sorted(chain(*(its.calls_in_progress for its in there.values()))),
        not_permitted=sum(its.not_permitted for its in there.values()),
        complete=not missing and not unsure and all(its.complete for its in there.values()),
    )
    return {
        **asdict(total),
        "deleted_at": {pop: its.deleted for pop, its in sorted(there.items()) if its.deleted},
        "not_permitted_at": sorted(pop for pop, its in there.items() if its.not_permitted),
        "missing": missing,
        "unsure": unsure,
    }
