"""Access to all HTTP endpoints: whose key it is, which agent is meant, and the answers to those who are refused."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from voicepipe.agent import Agent
from voicepipe.base.cpu_metering import Metered, Payer
from voicepipe.base.error_texts import shown
from voicepipe.base.errors import (
    CallFull,
    ConfigError,
    Declined,
    Draining,
    EngineDown,
    NoPop,
    NoPort,
    OverShare,
    PopFull,
    PopLate,
    Reason,
    RecordsFailing,
    Refused,
    SessionMissing,
    TenantFull,
    TooManySecrets,
    Unauthorized,
    UnknownCall,
    UpgradeFailed,
)
from voicepipe.base.foreign_json import decode
from voicepipe.base.tasks import ended
from voicepipe.call_api import Alternate, DoorKind, Grant, KeyHolders, PopApi, Refusal, Tenant, Tokens
from voicepipe.config import LimitsConfig
from voicepipe.ingress.api_keys import Caller, SecretRequest, ShortLived, caller, key_of, offered
from voicepipe.ingress.asgi_scope import pays, visit_of
from voicepipe.ingress.loop_share import AGAIN_S, KeyLoopShare
from voicepipe.ingress.refusal_log import RefusalLog
from voicepipe.ingress.wire_errors import WireError, error_body, wire_error
from voicepipe.rtp.sdp_text import SdpError

logger = logging.getLogger(__name__)

T = TypeVar("T")

BODY_BYTES = 16 * 1024
"""Largest body, in bytes, of a request that brings no session and no offer."""


class UnknownModel(Refused):
    """The key's owner has no agent of this name."""

    reason = "unknown_agent"


class UnknownTurn(Refused):
    """No turn that is kept has this id."""


class UnknownRecord(Refused):
    """No call of this id is kept."""


class CallGoesOn(Refused):
    """The record of a call cannot be deleted before the call has ended."""


class NotPermitted(Refused):
    """The resource exists, but the holder of this key may not do this with it."""


class Gone(Refused):
    """The sender of the request has closed the connection: nobody reads the answer."""


class UnknownPath(Refused):
    """There is no endpoint at this path."""


UNKNOWN_RECORD = "record_not_found"
_ANSWERS: dict[type[Refused], tuple[int, str, dict[str, str]]] = {
    Unauthorized: (401, "invalid_api_key", {"WWW-Authenticate": "Bearer"}),
    Declined: (403, "call_declined", {}),
    UnknownModel: (404, "model_not_found", {}),
    TooManySecrets: (429, "too_many_client_secrets", {"Retry-After": "60"}),
    OverShare: (429, "rate_limit_exceeded", {"Retry-After": str(AGAIN_S)}),
    UnknownCall: (404, "call_id_not_found", {}),
    UnknownTurn: (404, "turn_not_found", {}),
    UnknownRecord: (404, UNKNOWN_RECORD, {}),
    CallGoesOn: (409, "call_in_progress", {}),
    UpgradeFailed: (409, "upgrade_failed", {}),
    NotPermitted: (403, "not_permitted", {}),
    UnknownPath: (404, "not_found", {}),
    Gone: (400, "client_gone", {}),
    PopFull: (503, "pop_full", {"Retry-After": "2"}),
    PopLate: (503, "pop_full", {"Retry-After": "2"}),
    TenantFull: (503, "pop_full", {"Retry-After": "2"}),
    CallFull: (503, "call_full", {"Retry-After": "2"}),
    NoPop: (503, "no_pop", {"Retry-After": "2"}),
    SessionMissing: (503, "not_briefed", {"Retry-After": "2"}),
    NoPort: (503, "no_port", {"Retry-After": "2"}),
    Draining: (503, "draining", {"Retry-After": "30"}),
    RecordsFailing: (503, "records_failing", {"Retry-After": "10"}),
    EngineDown: (503, "engine_down", {"Retry-After": "10"}),
}
"""HTTP status, code and headers for each reason."""
NO_ROOM = (PopFull, NoPort, Draining, EngineDown)
"""Reasons for which another PoP may still admit the same caller."""


def retry_after(error: Refused) -> str:
    """Seconds after which a caller who was refused may try again."""
    _, _, headers = _answer(error)
    return headers.get("Retry-After", "2")


def _answer(error: Refused) -> tuple[int, str, dict[str, str]]:
    return _ANSWERS.get(type(error), (503, "refused", {"Retry-After": "2"}))


def refusal(error: Refused, alternates: Sequence[Alternate] = ()) -> JSONResponse:
    """The HTTP answer to a caller who is refused. `alternates`: PoPs that may admit them instead."""
    status, code, headers = _answer(error)
    said = error_body(code, shown(error, "a request"))
    if alternates:
        said["alternates"] = [{"pop": other.pop, "url": other.url} for other in alternates]
    return JSONResponse(said, status, headers)


def mistake(error: WireError) -> JSONResponse:
    """The answer to what a client did wrong."""
    return JSONResponse(error_body(error.code, error.message, error.param), 400)


def uncached(answer: Any, status: int = 200) -> Response:
    """A JSON answer that no cache may keep, for what changes from moment to moment."""
    return Response(msgspec.json.encode(answer), status, {"Cache-Control": "no-store"}, "application/json")


async def _mistaken(request: Request, error: Exception) -> Response:
    assert isinstance(error, WireError)
    return mistake(error)


async def _failed(request: Request, error: Exception) -> Response:
    said = shown(error, f"{request.method} {request.scope['path'][:200]}")
    return JSONResponse(error_body("server_error", said, kind="server_error"), 500)


async def nowhere(scope: Scope, receive: Receive, send: Send) -> None:
    """The ASGI application for paths of the API at which there is no endpoint. Raises UnknownPath."""
    raise UnknownPath(f"There is no {scope.get('method', 'WebSocket')} {scope['path'][:200]}: correct the address.")


class _ModelName(msgspec.Struct):
    """The part of a session that names the agent; all other fields are skipped."""

    model: Any = None


def agent_of(asked: SecretRequest) -> str | None:
    """The agent's name in the session of a key. Raises WireError."""
    model = decoded(asked.session, _ModelName, "session").model
    return model if isinstance(model, str) else None


def find_agent(pop: PopApi, tenant: Tenant, name: str | None) -> Agent:
    """The agent that a client means. Stock SDKs insist on a model name of their own: those mean the default agent.

    Raises UnknownModel: the agent exists but not for this tenant.
    """
    try:
        agent = pop.agent(name) if name else _default_agent(pop, tenant)
    except ConfigError:
        agent = _default_agent(pop, tenant)
        logger.info("no agent is called %r: %s answers", name[:100] if name else name, agent.name)
    if tenant.agents and agent.name not in tenant.agents:
        raise UnknownModel(f"The key's owner has no agent {agent.name!r}.")
    return agent


def _default_agent(pop: PopApi, tenant: Tenant) -> Agent:
    default = pop.agent(None)
    if not tenant.agents or default.name in tenant.agents:
        return default
    for agent in pop.agents():
        if agent.name in tenant.agents:
            return agent
    raise UnknownModel(f"None of the agents of the key's owner is here: {', '.join(tenant.agents)}.")


def viewer(pop: PopApi, request: Request) -> str | None:
    """The tenant whose calls the sender of a request may see; None: all tenants. Raises Unauthorized."""
    found = pop.viewer(key_of(request.headers.get("authorization"), []))
    pays(request)
    return found


class Attempt:
    """A call that a client asks the PoP for, and the tenant and agent as soon as they are known."""

    def __init__(self, pop: PopApi, door: DoorKind) -> None:
        self._pop = pop
        self._door = door
        self._tenant = self._agent = ""
        self._is_told = False

    def by(self, tenant: Tenant, agent: Agent | None = None) -> None:
        """Record whose call it is, and which agent is to answer."""
        self._tenant, self._agent = tenant.name, agent.name if agent else ""

    def refused(self, reason: Reason, status: int) -> None:
        """Count the call as refused: its caller gets this `status`, as in `Refusal`. Only the first reason counts."""
        if self._is_told:
            return
        self._is_told = True
        self._pop.refused(Refusal(reason, self._door, self._tenant, self._agent, status))


@contextmanager
def attempt(pop: PopApi, door: DoorKind) -> Iterator[Attempt]:
    """A call that is asked for by HTTP; an exception within the context refuses it."""
    asked = Attempt(pop, door)
    try:
        yield asked
    except Gone:  # Nobody wants it any more.
        raise
    except Refused as error:
        asked.refused(error.reason, _answer(error)[0])
        raise
    except WireError:
        asked.refused("bad_request", 400)
        raise
    except SdpError:
        asked.refused("not_acceptable", 400)
        raise
    except Exception:
        asked.refused("error", 500)
        raise


class AccessControl:
    """Checks the keys of requests to a PoP or a directory, and answers those that are refused. `client_percent`: as in
    `[limits]`."""

    def __init__(
        self,
        holders: KeyHolders,
        short_lived: ShortLived,
        client_percent: int = LimitsConfig().client_percent,
        tokens: Tokens | None = None,
    ) -> None:
        self._holders = holders
        self._short_lived = short_lived
        self._tokens = tokens
        self._work = KeyLoopShare(client_percent)
        self._refusals = RefusalLog(logger, "HTTP requests")

    def answers(self) -> dict[Any, Callable[[Request, Exception], Awaitable[Response]]]:
        """Exceptions that any HTTP endpoint may raise, with the handler that answers each."""
        return {Refused: self._refused, WireError: _mistaken, Exception: _failed}

    def refuse(self, connection: HTTPConnection, error: Refused) -> JSONResponse:
        """Answer a request or a WebSocket that is refused. The log has a line of it, unless there are too many."""
        answer = refusal(error, self._tokens.alternates() if self._tokens and isinstance(error, NO_ROOM) else ())
        self.log_refusal(connection, answer.status_code, error)
        return answer

    def log_refusal(self, connection: HTTPConnection, status: int, why: object) -> None:
        """Log that a request or a WebSocket was refused, unless there are too many."""
        source = connection.client.host if connection.client else ""
        path = connection.scope["path"][:200]
        self._refusals.log(source, "%r from %s refused with %d: %s", path, source, status, why)

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return self.refuse(request, error)

    def caller(self, connection: HTTPConnection, spent: bool = False) -> Caller:
        """The caller who connects; `spent` as in `Tokens.read`. Raises Unauthorized."""
        found = caller(self._holders, self._tokens, self._short_lived, offered(connection), spent)
        if found.grant and not found.grant.begins:
            self._use(found.grant)
        if visit := visit_of(connection):
            visit.known(found.tenant.name)
        return found

    def begins(self, who: Caller, kind: str) -> None:
        """The call of this caller has a slot. Raises Unauthorized: their token was used meanwhile, or is for another
        kind of call."""
        if not who.grant:
            return
        if who.grant.kind not in ("", kind):
            raise Unauthorized(f"This token is for a call by {who.grant.kind}: ask the directory for one by {kind}.")
        self._use(who.grant)

    async def with_session(self, who: Caller) -> Caller:
        """The caller with the session of their `ek_` key, where a directory has made that: it comes by the bus. It uses
        no token up. Raises SessionMissing: the session does not come."""
        if not (who.grant and who.grant.briefed and self._tokens):
            return who
        return replace(who, session=await self._tokens.session(who.grant))

    def _use(self, grant: Grant) -> None:
        assert self._tokens  # It was read there.
        self._tokens.use(grant)

    async def carry_out(self, who: Caller, asked: Coroutine[Any, Any, T]) -> T:
        """Carry out a request on its key's account. All work that reads a session or begins a call is done here, after
        the body was read, since other requests may have been carried out meanwhile.

        Raises OverShare: the key has used up its share, and the work is not begun."""
        try:
            self._work.check(who, time.monotonic())
        except OverShare:
            asked.close()
            raise
        return await Metered(asked, Payer(lambda took: self._work.took(who, took, time.monotonic()), time.thread_time))


async def unless_gone(connection: Request | WebSocket, asked: Coroutine[Any, Any, T]) -> T:
    """The result of `asked`, for a client whose whole request was read, or whose WebSocket is not accepted yet. Raises
    Gone: the client has closed the connection before; `asked` is cancelled."""
    work, left = asyncio.create_task(asked), asyncio.create_task(_gone(connection))
    try:
        await asyncio.wait({work, left}, return_when=asyncio.FIRST_COMPLETED)
        if work.done():
            return work.result()
        raise Gone("The connection was closed before the call could be answered.")
    finally:
        await ended(left)
        await ended(work)


async def _gone(connection: Request | WebSocket) -> None:
    while not (await connection.receive())["type"].endswith(".disconnect"):
        pass


async def body(request: Request, most: int = BODY_BYTES) -> bytes:
    """The whole body of a request. Raises WireError: it is over `most` bytes; Gone."""
    read = bytearray()
    try:
        async for chunk in request.stream():
            read += chunk
            if len(read) > most:
                too_large = f"The body is over {most} bytes, the most that is taken: shorten it."
                raise WireError("request_too_large", too_large)
    except ClientDisconnect:
        raise Gone("The connection was closed before all of the body had come.") from None
    return bytes(read)


def decoded(said: bytes | msgspec.Raw, shape: type[T], where: str = "") -> T:
    """A client's JSON, decoded. `where` is the path of what is decoded, for errors. Raises WireError."""
    try:
        return decode(said, shape)
    except msgspec.DecodeError as error:
        raise wire_error(error, where) from None
