"""Calls in progress of any kind, for their tenant's programs: list them, hang one up, transfer its caller, send it
keys."""

import re
from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from voicepipe.base.errors import KeysFailed, TransferFailed, Unauthorized
from voicepipe.call_api import PopApi
from voicepipe.conversation.own_tools import is_target
from voicepipe.ingress.access import AccessControl, body, decoded
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.wire_errors import WireError

CALLS = "/v1/realtime/calls"
Endpoint = Callable[[Request], Awaitable[Response]]
DIGITS = re.compile(r"[0-9*#A-D]{1,40}")


class _Refer(msgspec.Struct):
    """Body of POST /refer."""

    target_uri: str


class _DtmfRequest(msgspec.Struct):
    """Body of POST /dtmf."""

    digits: str


class CallsInProgress:
    """The HTTP endpoints for calls in progress."""

    def __init__(self, pop: PopApi, access: AccessControl, calls: Calls) -> None:
        self._pop = pop
        self._access = access
        self._calls = calls

    def routes(self) -> list[BaseRoute]:
        return [
            Route(CALLS, self.list, methods=["GET"]),
            Route(f"{CALLS}/{{call_id}}", self._where_it_is(self.hang_up), methods=["DELETE"]),
            Route(f"{CALLS}/{{call_id}}/hangup", self._where_it_is(self.hang_up), methods=["POST"]),
            Route(f"{CALLS}/{{call_id}}/refer", self._where_it_is(self.refer), methods=["POST"]),
            Route(f"{CALLS}/{{call_id}}/dtmf", self._where_it_is(self.dtmf), methods=["POST"]),
        ]

    def _where_it_is(self, endpoint: Endpoint) -> Endpoint:
        """An endpoint about one call, which the process before this one answers if it has the call."""

        async def answered(request: Request) -> Response:
            before = self._pop.predecessor
            if before and self._calls.is_elsewhere(request.path_params["call_id"]):
                return await before.ask(request, await body(request))
            return await endpoint(request)

        return answered

    async def list(self, request: Request) -> Response:
        """GET: the tenant's calls that a program can follow (`?call_id=`), the one that lasts longest first."""
        return JSONResponse({"object": "list", "data": self._calls.rows(self._owner(request).tenant)})

    async def hang_up(self, request: Request) -> Response:
        """DELETE, or POST to /hangup: end the call. 200 also while it is ending; 404 once it has ended. A token that
        began a call may also end it."""
        who = self._access.caller(request, spent=True)
        self._calls.find(request.path_params["call_id"], who).end("agent")
        return Response()

    async def refer(self, request: Request) -> Response:
        """POST {"target_uri": "sip:..." or "tel:..."}: 200 once the transfer has begun, 400 where it cannot be."""
        call = self._calls.find(request.path_params["call_id"], self._owner(request))
        target = _target(await body(request))
        try:
            call.transfer(target)
        except TransferFailed as error:
            raise WireError("transfer_failed", f"The call was not transferred: {error}.") from None
        return Response()

    async def dtmf(self, request: Request) -> Response:
        """POST {"digits": "12#"}: 200, and the keys are pressed one after another, a quarter of a second each, instead
        of the agent's speech meanwhile; 400 where no keys can be sent."""
        call = self._calls.find(request.path_params["call_id"], self._owner(request))
        digits = _digits(await body(request))
        try:
            call.send_keys(digits)
        except KeysFailed as error:
            raise WireError("dtmf_failed", str(error)) from None
        return Response()

    def _owner(self, request: Request) -> Caller:
        """The tenant that asks. Raises Unauthorized for an `ek_` key: whoever reads it in a browser could see who
        calls, and dial any number at the tenant's cost."""
        who = self._access.caller(request)
        if who.secret:
            raise Unauthorized("An ek_ key or a call's token cannot list or transfer calls, nor send them keys: use "
                               "the tenant's own.")  # fmt: skip
        return who


def _target(sent: bytes) -> str:
    target = decoded(sent, _Refer).target_uri
    if ":" not in target or not is_target(target):
        raise WireError("invalid_value", "Invalid value for 'target_uri': expected an address like "
                        "sip:ann@example.com, or tel:+14155550123.", "target_uri")  # fmt: skip
    return target


def _digits(sent: bytes) -> str:
    digits = decoded(sent, _DtmfRequest).digits
    if not DIGITS.fullmatch(digits):
        raise WireError("invalid_value", "Invalid value for 'digits': expected 1 to 40 of 0 to 9, *, # and A to D.",
                        "digits")  # fmt: skip
    return digits
