"""Requests that a directory forwards, so that clients which know only one address can do what they do at a PoP.

A call's id names its PoP. What is not about a call any PoP can answer that could take the caller's calls. Sound never
comes by here: a WebRTC call's goes straight to the PoP that has answered the offer.
"""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlencode

import httpx
from msgspec.structs import asdict, replace
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base import call_ids
from voicepipe.base.errors import NoPop, Unauthorized, UnknownCall
from voicepipe.base.trust import refusal
from voicepipe.config import LimitsConfig
from voicepipe.directory.directory import Directory, PopToken, WhyBounced
from voicepipe.directory.report import CALLS
from voicepipe.directory.server.call_placement import CallPlacing, CallRequest, askable, network_of_client
from voicepipe.directory.server.operator import OperatorAccess
from voicepipe.directory.server.pop_lists import PopList, PopRecords, merged, not_answered, read, says_unknown
from voicepipe.ingress.access import AccessControl, UnknownRecord, body
from voicepipe.ingress.api_keys import Caller, account
from voicepipe.ingress.asgi_scope import pays
from voicepipe.ingress.trace_context import HEADERS
from voicepipe.ingress.webrtc import offer
from voicepipe.operator_api.records_http import COSTS, RECORDS, RecordsDeleted, cost_query, deletion, query

logger = logging.getLogger(__name__)

PATIENCE_S = 3.0
"""Seconds that a PoP has to answer what another one could answer as well."""
ALONE_S = 30.0
"""Seconds that a PoP has to answer about its own calls."""
TIMEOUT = httpx.Timeout(ALONE_S, connect=PATIENCE_S)
MOST_AT_ONE = 64
"""Requests in progress at one PoP. One beyond that counts as not answered, so that a PoP that was stopped keeps no more
of a directory's connections than these."""
PASSED_ON = ("content-type", "accept", *HEADERS)
HANDED_BACK = ("content-type", "location", "retry-after", "cache-control")
"""Headers of a PoP's answer that clients get."""
EVENT_BYTES = LimitsConfig().event_bytes
NOT_SENT = httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol, httpx.InvalidURL
"""Errors before a request is sent."""
T = TypeVar("T")


class _Unreached(NoPop):
    """The request did not reach the PoP."""


class RequestProxy:
    """The HTTP endpoints that a directory forwards to PoPs."""

    def __init__(
        self, access: AccessControl, directory: Directory, placement: CallPlacing, client: httpx.AsyncClient,
        operators: OperatorAccess,
    ) -> None:  # fmt: skip
        self._access = access
        self._operators = operators
        self._directory = directory
        self._placement = placement
        self._client = client
        self._under_way = Counter[str]()
        """Requests in progress, by PoP."""

    def routes(self) -> list[BaseRoute]:
        callers = partial(self._endpoint, self._access.caller)
        owners = partial(self._endpoint, self._owner)
        return [
            Route(CALLS, self.create, methods=["POST"]),
            Route(CALLS, owners(self.calls), methods=["GET"]),
            Route(f"{CALLS}/{{call_id}}", self.about_call, methods=["DELETE"]),
            *(Route(f"{CALLS}/{{call_id}}/{what}", self.about_call, methods=["POST"])
              for what in ("hangup", "refer", "dtmf")),
            Route(RECORDS, owners(self.records), methods=["GET"]),
            Route(RECORDS, self.delete_caller, methods=["DELETE"]),
            Route(f"{RECORDS}/{{call_id}}", owners(self.record), methods=["GET", "DELETE"]),
            Route(COSTS, owners(self.costs)),
            Route("/v1/models", callers(self.models)),
            *(Route(path, callers(self.ask_any)) for path in
              ("/v1/realtime/ice-servers", "/v1/models/{model_id}", "/v1/voices")),
        ]  # fmt: skip

    def _endpoint(
        self, whose: Callable[[Request], Caller], answer: Callable[[Caller, Request], Coroutine[Any, Any, Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """An endpoint whose `answer` is made on the account of the caller that `whose` finds."""

        async def endpoint(request: Request) -> Response:
            who = whose(request)
            return await self._access.carry_out(who, answer(who, request))

        return endpoint

    async def create(self, request: Request) -> Response:
        """POST: an offer, as at a PoP. The answer is that of the first candidate that accepts the caller."""
        who = self._access.caller(request)
        sent = await self._access.carry_out(who, body(request, offer.OFFER_BYTES + EVENT_BYTES))
        return await self._access.carry_out(who, self._placed(who, request, sent))

    async def _placed(self, who: Caller, request: Request, sent: bytes) -> Response:
        asked = await offer.read(request.headers, sent, EVENT_BYTES)
        named = asked.session.get("model")
        model = named if isinstance(named, str) else request.query_params.get("model")
        placement = await self._placement.place_named(who, "webrtc", model, network_of_client(request))
        targets = [(candidate, candidate.url) for candidate in placement.offers]
        return await self.first(request, targets, sent, self._directory.bounced)

    async def about_call(self, request: Request) -> Response:
        """Forward a request about one call to the PoP that has it."""
        who = self._access.caller(request)
        there = self.with_call(who, request.path_params["call_id"])
        sent = await self._access.carry_out(who, body(request))
        answer = await self._access.carry_out(who, self.sent(request, _address(there, request), there, sent, ALONE_S))
        # An `ek_` key has few rights, so there a 401 may be meant.
        return answer if who.secret else last_word(answer)

    def with_call(self, who: Caller, call_id: str) -> PopToken:
        """The PoP that has this call. Raises UnknownCall; NoPop: it is silent, and the call may go on."""
        pop = call_ids.pop_of(call_id)
        if pop is None or not self._directory.knows(pop):
            raise UnknownCall(f"No call has the id {call_id[:200]!r}.")
        return self._directory.request_token(self._placement.grant(who), pop)

    async def calls(self, who: Caller, request: Request) -> Response:
        """GET: the tenant's calls at all PoPs; `missing` names PoPs that did not answer."""
        lists = await self._everyones(who, request, PopList)
        rows = sorted(chain(*(its.data for its in lists.values() if its)), key=lambda row: row["since"])
        return JSONResponse({"object": "list", "data": rows, "missing": not_answered(lists)})

    def _owner(self, request: Request) -> Caller:
        """The tenant that asks. Raises Unauthorized, as at a PoP, which this directory does not ask then."""
        if self._operators.tenants and self._operators.admits(request):
            raise Unauthorized("At a directory, records are for tenants. The operator asks each PoP, with the key of "
                               "its http.operator_key_env.")  # fmt: skip
        who = self._access.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key cannot list calls: use the tenant's own.")
        return who

    def _missing(self, answers: Mapping[str, object]) -> list[str]:
        """PoPs whose records are missing from these answers: they did not answer, or are silent or gone, for up to a
        day."""
        silent = self._directory.keepers() - answers.keys()
        return sorted(silent | set(not_answered(answers)))

    async def _everyones(
        self, who: Caller, request: Request, shape: type[T], none: T | None = None, within_s: float = PATIENCE_S,
        for_operator: bool = False,
    ) -> dict[str, T | None]:  # fmt: skip
        """The answers of all PoPs, as `pop_lists.read`."""
        tokens = self._tokens(who, (seen.pop for seen in self._directory.pops()), for_operator)
        answers = await self._answers(request, tokens, within_s)
        return await asyncio.to_thread(
            lambda: {there.pop: read(answer, shape, none) for there, answer in zip(tokens, answers, strict=True)}
        )

    async def records(self, who: Caller, request: Request) -> Response:
        """GET: records of the tenant's calls at all PoPs, the newest first; `missing` as in `calls`."""
        limit = query(request.query_params, None).limit - 1
        lists = await self._everyones(who, request, PopRecords, none=PopRecords())
        return Response(
            await asyncio.to_thread(merged, lists, limit, self._missing(lists)), media_type="application/json"
        )

    async def record(self, who: Caller, request: Request) -> Response:
        """GET, DELETE: one record, at the PoP that keeps it. Raises NoPop: that one is silent or gone, for up to a
        day."""
        pop = call_ids.pop_of(request.path_params["call_id"])
        if pop not in self._directory.keepers():
            raise UnknownRecord("No record of such a call is kept by a PoP that this directory has heard of.")
        there = self._directory.request_token(self._placement.grant(who), pop)
        answer = last_word(await self.sent(request, _address(there, request), there, b"", ALONE_S))
        if answer.status_code == 404 and not says_unknown(answer):
            _silent(there)
        return answer

    async def delete_caller(self, request: Request) -> Response:
        """DELETE: records of all calls from one number, at all PoPs; `missing` as in `records`: their records of the
        caller still exist. For the operator nothing is deleted: the answer names the PoPs that keep any."""
        if (for_operator := self._operators.admits(request)) and self._operators.tenants:
            pays(request)
            who = account(None)
        else:
            who = self._owner(request)
        number = deletion(request.query_params)
        return await self._access.carry_out(who, self._deleted(who, request, number, for_operator))

    async def _deleted(self, who: Caller, request: Request, number: str, for_operator: bool) -> Response:
        nothing = RecordsDeleted(caller=number)
        answers = await self._everyones(who, request, RecordsDeleted, nothing, ALONE_S, for_operator)
        there = {pop: its for pop, its in answers.items() if its}
        total = replace(
            nothing,
            deleted=sum(its.deleted for its in there.values()),
            in_progress=sum(its.in_progress for its in there.values()),
            not_permitted=sum(its.not_permitted for its in there.values()),
        )
        not_permitted_at = sorted(pop for pop, its in there.items() if its.not_permitted)
        return JSONResponse({**asdict(total), "not_permitted_at": not_permitted_at, "missing": self._missing(answers)})

    async def costs(self, who: Caller, request: Request) -> Response:
        """GET: the cost of the tenant's calls, at each PoP."""
        cost_query(request.query_params, None, time.time())
        lists = await self._everyones(who, request, PopList, none=PopList([]))
        rows = list(chain(*(its.data for its in lists.values() if its)))
        return JSONResponse({"object": "list", "data": rows, "missing": self._missing(lists)})

    async def models(self, who: Caller, request: Request) -> Response:
        """GET: the agents that the caller may call, at whichever PoP they are."""
        answers = await self._answers(request, self._askable(who))
        lists = [its.data for its in (read(answer, PopList) for answer in answers) if its]
        if not lists:
            return last_word(next((answer for answer in reversed(answers) if answer), None))
        rows: dict[str, Any] = {}
        for row in chain(*lists):
            rows.setdefault(row["id"], row)
        return JSONResponse({"object": "list", "data": list(rows.values())})

    async def ask_any(self, who: Caller, request: Request) -> Response:
        """Forward a request that any PoP can answer which may take the caller's calls."""
        return await self._first_of(request, self._askable(who, about=request.path_params.get("model_id", "")), b"")

    async def to_any(self, who: Caller, request: Request, sent: bytes, model: str | None) -> Response:
        """The first answer of the PoPs that may take a call by which `model` is named. Raises NoPop."""
        return await self._first_of(request, self._askable(who, model), sent)

    def _askable(self, who: Caller, model: str | None = None, about: str = "") -> list[PopToken]:
        """The PoPs to ask. Raises NoPop."""
        wanted = self._placement.wanted(who, CallRequest(kind="", require=self._placement.named(model)))
        return self._tokens(who, (seen.pop for seen in askable(self._directory.pops(), wanted, about)))

    def _tokens(self, who: Caller, pops: Iterable[str], for_operator: bool = False) -> list[PopToken]:
        grant = replace(self._placement.grant(who), operator=for_operator)
        return [self._directory.request_token(grant, pop) for pop in pops]

    async def _first_of(self, request: Request, tokens: Sequence[PopToken], sent: bytes) -> Response:
        return await self.first(request, [(there, _address(there, request)) for there in tokens], sent)

    async def first(
        self, request: Request, targets: Sequence[tuple[PopToken, str]], sent: bytes,
        bounced: Callable[[str, WhyBounced], None] = lambda pop, why: None, unsure: Callable[[], None] = lambda: None,
    ) -> Response:  # fmt: skip
        """The first answer that does not leave the request to the next PoP; `bounced` is called for PoPs that do, and
        `unsure` for one that may have got the request and has not answered it. Raises NoPop."""
        answer: Response | None = None
        for there, url in targets:
            try:
                answer = await self.sent(request, url, there, sent, PATIENCE_S)
            except NoPop as error:
                bounced(there.pop, "no_answer")
                if not isinstance(error, _Unreached):
                    unsure()
                continue
            if not is_for_next(answer.status_code):
                return answer
            bounced(there.pop, "refused")
            logger.info("%s answers with %d: the next PoP is tried", there.pop, answer.status_code)
        return last_word(answer)

    async def _answers(
        self, request: Request, tokens: Sequence[PopToken], within_s: float = PATIENCE_S
    ) -> list[Response | None]:
        """The answers of all of them, asked at once. None: no answer."""

        async def of(there: PopToken) -> Response | None:
            try:
                return await self.sent(request, _address(there, request), there, b"", within_s)
            except NoPop:
                return None

        return await asyncio.gather(*map(of, tokens))

    async def sent(self, request: Request, url: str, there: PopToken, sent: bytes, within_s: float) -> Response:
        """This PoP's answer to the same request. Raises NoPop."""
        query = urlencode([(key, value) for key, value in request.query_params.multi_items() if key != "token"])
        said = {name: value for name in PASSED_ON if (value := request.headers.get(name))}
        said |= {"Authorization": f"Bearer {there.token}", **forwarded_for(request)}
        headers = {name.encode(): value.encode("latin-1") for name, value in said.items()}  # The bytes that came.
        try:
            with self._counted(there):
                async with asyncio.timeout(within_s):
                    answer = await self._client.request(
                        request.method, url, params=query or None, content=sent, headers=headers
                    )
        except (httpx.RequestError, httpx.InvalidURL, TimeoutError) as error:
            if why := refusal(error):
                logger.warning("%s is not asked: %s", there.pop, why)
            else:
                logger.info("%s does not answer: %r", there.pop, error)
            _silent(there, _Unreached if isinstance(error, NOT_SENT) else NoPop)
        if answer.is_redirect:  # No PoP sends anybody elsewhere.
            _silent(there)
        kept = {name: value for name in HANDED_BACK if (value := answer.headers.get(name))}
        return Response(answer.content, answer.status_code, kept)

    @contextmanager
    def _counted(self, there: PopToken) -> Iterator[None]:
        """Count a request in progress there. Raises NoPop: there are too many already."""
        if self._under_way[there.pop] >= MOST_AT_ONE:
            _silent(there, _Unreached)
        self._under_way[there.pop] += 1
        try:
            yield
        finally:
            self._under_way[there.pop] -= 1


def is_for_next(status: int) -> bool:
    """Whether the next PoP is to be tried after such an answer. With 401 a PoP refuses this directory's token: the
    caller's own key is good, as the directory has checked."""
    return status in (401, 429) or status >= 500


def last_word(answer: Response | None) -> Response:
    """The answer for the caller, made of the last one that a PoP gave. Raises NoPop."""
    if answer is None or answer.status_code == 401:
        raise NoPop("No PoP answers at present; try again later.")
    return answer


def _address(there: PopToken, request: Request) -> str:
    return f"{there.url}{request.url.path}"


def forwarded_for(request: Any) -> Mapping[str, str]:
    """The headers by which a PoP that trusts this directory (`http.proxies`) sees the request's client."""
    return {"X-Forwarded-For": request.client.host} if request.client else {}


def _silent(there: PopToken, kind: type[NoPop] = NoPop) -> NoReturn:
    raise kind(f"The PoP {there.pop!r} does not answer at present; try again later.")
