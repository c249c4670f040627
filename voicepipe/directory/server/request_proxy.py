"""Requests that a directory forwards, so that clients which know only one address can do what they do at a PoP.

A call's id names its PoP. What is not about a call any PoP can answer that could take the caller's calls. Sound never
comes by here: a WebRTC call's goes straight to the PoP that has answered the offer.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NoReturn, TypeVar
from urllib.parse import urlencode

import httpx
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
from voicepipe.directory.server.pop_lists import PopList, not_answered, read
from voicepipe.ingress.access import BODY_BYTES, AccessControl, body
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.trace_context import HEADERS
from voicepipe.ingress.webrtc import offer

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
        self, access: AccessControl, directory: Directory, placement: CallPlacing, client: httpx.AsyncClient
    ) -> None:
        self._access = access
        self._directory = directory
        self._placement = placement
        self._client = client
        self._under_way = Counter[str]()
        """Requests in progress, by PoP."""

    def routes(self) -> list[BaseRoute]:
        callers = partial(self._endpoint, self._access.caller)
        return [
            Route(CALLS, self.create, methods=["POST"]),
            Route(CALLS, self._endpoint(self.owner, self.calls), methods=["GET"]),
            Route(f"{CALLS}/{{call_id}}", self.about_call, methods=["DELETE"]),
            *(Route(f"{CALLS}/{{call_id}}/{what}", self.about_call, methods=["POST"])
              for what in ("accept", "reject", "hangup", "refer", "dtmf")),
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
        most = EVENT_BYTES if request.url.path.endswith("/accept") else BODY_BYTES
        sent = await self._access.carry_out(who, body(request, most))
        answer = await self._access.carry_out(who, self.sent(request, _address(there, request), there, sent, ALONE_S))
        # An `ek_` key has few rights, so there a 401 may be meant.
        return answer if who.secret else last_word(answer)

    def with_call(self, who: Caller, call_id: str) -> PopToken:
        """The PoP that has this call. Raises UnknownCall; NoPop: it is silent, and the call may go on."""
        pop = call_ids.pop_of(call_id)
        if pop is None or not self._directory.knows(pop):
            raise UnknownCall(f"No call has the id {call_id[:200]!r}.")
        return self.token(who, pop)

    async def calls(self, who: Caller, request: Request) -> Response:
        """GET: the tenant's calls at all PoPs; `missing` names PoPs that did not answer."""
        lists = await self.everyones(who, request, PopList)
        rows = sorted(chain(*(its.data for its in lists.values() if its)), key=lambda row: row["since"])
        return JSONResponse({"object": "list", "data": rows, "missing": not_answered(lists)})

    def owner(self, request: Request) -> Caller:
        """The tenant that asks. Raises Unauthorized, as at a PoP, which this directory does not ask then."""
        who = self._access.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key cannot list calls: use the tenant's own.")
        return who

    async def everyones(
        self, who: Caller, request: Request, shape: type[T], none: T | None = None, within_s: float = PATIENCE_S,
        *, lost: bool = False,
    ) -> dict[str, T | None]:  # fmt: skip
        """The answers of all PoPs, as `pop_lists.read`. `lost`: also of those that fell silent within a day."""
        pops = self._directory.heard() if lost else self._directory.pops()
        tokens = [self.token(who, seen.pop, lost=lost) for seen in pops]
        answers = await self._answers(request, tokens, within_s)
        return await asyncio.to_thread(
            lambda: {there.pop: read(answer, shape, none) for there, answer in zip(tokens, answers, strict=True)}
        )

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
        return [self.token(who, seen.pop) for seen in askable(self._directory.pops(), wanted, about)]

    def token(self, who: Caller, pop: str, *, lost: bool = False) -> PopToken:
        """As `Directory.request_token`."""
        return self._directory.request_token(self._placement.grant(who), pop, lost=lost)

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
            silent(there, _Unreached if isinstance(error, NOT_SENT) else NoPop)
        if answer.is_redirect:  # No PoP sends anybody elsewhere.
            silent(there)
        kept = {name: value for name in HANDED_BACK if (value := answer.headers.get(name))}
        return Response(answer.content, answer.status_code, kept)

    @contextmanager
    def _counted(self, there: PopToken) -> Iterator[None]:
        """Count a request in progress there. Raises NoPop: there are too many already."""
        if self._under_way[there.pop] >= MOST_AT_ONE:
            silent(there, _Unreached)
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


def silent(there: PopToken, kind: type[NoPop] = NoPop) -> NoReturn:
    """Raise NoPop: this PoP does not answer."""
    raise kind(f"The PoP {there.pop!r} does not answer at present; try again later.")
