"""Relays WebSockets of clients that can neither ask where to call nor follow a redirect: stock SDKs, and browsers.

Their messages pass through, both ways. A call that can choose goes to its PoP directly.
"""

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import cast
from urllib.parse import urlencode

from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException
from websockets.http11 import Response as Said
from websockets.typing import Subprotocol

from voicepipe.base.errors import Refused
from voicepipe.base.tasks import TaskGroup
from voicepipe.base.trust import refusal
from voicepipe.config import LimitsConfig
from voicepipe.directory.directory import PopToken, WhyBounced
from voicepipe.directory.server.call_placement import CallPlacing
from voicepipe.directory.server.relay_drain import RelayDrain
from voicepipe.directory.server.request_proxy import RequestProxy, forwarded_for, is_for_next, last_word
from voicepipe.ingress.access import AccessControl
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.trace_context import HEADERS

logger = logging.getLogger(__name__)

SUBPROTOCOL = "realtime"
OPEN_S = 3.0
"""Seconds in which a candidate has to accept a caller."""
MESSAGE_BYTES = LimitsConfig().message_bytes
"""Bytes of a client's largest message; a PoP that is configured for less refuses it."""
GONE, GONE_REASON = 1012, "The PoP does not answer any more: call again."
"""Close code and reason where the PoP is gone without closing the connection; a caller who calls again gets another
PoP."""
LOOK_S = 1.0
"""Seconds between looks at whether anything has come from the PoP."""
PING_LOOKS = 5
"""Looks without anything until the PoP is pinged."""
SILENT_LOOKS = 10
"""Looks without anything until its host counts as gone. Counting looks, the PoP is not blamed for seconds in which the
directory itself stood still."""
READ_BYTES = 200_000
"""Bytes of a client's data that a PoP reads between two looks, at least. It answers a ping after all that came
before."""


class _NotLetIn(Exception):
    """The PoP did not accept the WebSocket; this is its answer."""

    def __init__(self, answer: Response) -> None:
        super().__init__(answer.status_code)
        self.answer = answer


class _Direct(connect):
    """Connects to the address in the directory's list, and follows no redirects."""

    def process_redirect(self, exc: Exception) -> Exception | str:
        return exc


class Relay:
    """The WebSocket endpoint that relays calls to PoPs."""

    def __init__(
        self,
        access: AccessControl,
        placement: CallPlacing,
        proxy: RequestProxy,
        relay_drain: RelayDrain,
        tls: ssl.SSLContext,
    ) -> None:
        self._tls = tls
        """For PoPs whose address is wss."""
        self._access = access
        self._placement = placement
        self._proxy = proxy
        self._relay_drain = relay_drain

    async def websocket(self, socket: WebSocket) -> None:
        """GET /v1/realtime, as at a PoP."""
        try:
            with self._relay_drain.call():
                await self._relay(socket)
        except _NotLetIn as refused:
            await socket.send_denial_response(refused.answer)
        except Refused as error:
            await socket.send_denial_response(self._access.refuse(socket, error))

    async def _relay(self, socket: WebSocket) -> None:
        """Relay one call. Raises _NotLetIn, Refused: the caller has no answer yet."""
        who = self._access.caller(socket)
        candidates = await self._access.carry_out(who, self._candidates(who, socket))
        async with self._let_in(socket, candidates) as pop:
            await socket.accept(SUBPROTOCOL if SUBPROTOCOL in socket.scope["subprotocols"] else None)
            await relay_messages(socket, pop)

    async def _candidates(self, who: Caller, socket: WebSocket) -> list[PopToken]:
        call_id, model = socket.query_params.get("call_id"), socket.query_params.get("model")
        if call_id is None:  # Its way leads through us, wherever the caller is: their network counts for nothing.
            return list((await self._placement.place_named(who, "websocket", model)).offers)
        there = self._proxy.with_call(who, call_id)
        return [PopToken(there.pop, f"ws{there.url.removeprefix('http')}/v1/realtime", there.token)]

    @asynccontextmanager
    async def _let_in(self, socket: WebSocket, candidates: list[PopToken]) -> AsyncIterator[ClientConnection]:
        """The connection to the first candidate that accepts the caller. Raises _NotLetIn."""
        asked = socket.query_params.multi_items()
        query = urlencode([(key, value) for key, value in asked if key in ("model", "call_id")])
        trace = {name: value for name in HEADERS if (value := socket.headers.get(name))}
        refused: Response | None = None
        for there in candidates:
            headers = {"Authorization": f"Bearer {there.token}", **forwarded_for(socket), **trace}
            try:
                pop = await _Direct(
                    f"{there.url}?{query}" if query else there.url, additional_headers=headers,
                    subprotocols=[cast(Subprotocol, SUBPROTOCOL)], compression=None, open_timeout=OPEN_S,
                    max_size=None, ping_interval=None, proxy=None,
                    ssl=self._tls if there.url.startswith("wss:") else None,
                )  # fmt: skip
            except InvalidStatus as error:
                logger.info("%s does not let a call in: %s", there.pop, error)
                status = error.response.status_code
                if status >= 400:  # Anything else is no answer to a WebSocket.
                    refused = _answer_of(error.response)
                    if not is_for_next(status):
                        break
                self._bounced(socket, there, "refused")
            except (OSError, TimeoutError, WebSocketException) as error:
                self._bounced(socket, there, "no_answer")
                if why := refusal(error):
                    logger.warning("%s does not let a call in: %s", there.pop, why)
                else:
                    logger.info("%s does not let a call in (%r): the next candidate is tried", there.pop, error)
            else:
                async with pop:
                    yield pop
                return
        raise _NotLetIn(last_word(refused))

    def _bounced(self, socket: WebSocket, there: PopToken, why: WhyBounced) -> None:
        if "call_id" not in socket.query_params:  # Else it was placed before, and is there or nowhere.
            self._placement.bounced(there.pop, why)


def _answer_of(said: Said) -> Response:
    """A PoP's refusal, as the caller gets it."""
    kept = {name: said.headers[name] for name in ("content-type", "retry-after") if name in said.headers}
    return Response(bytes(said.body or b""), said.status_code, kept)


async def relay_messages(socket: WebSocket, pop: ClientConnection) -> None:
    """Relay all messages both ways until one side closes; then the other side is closed as well."""
    line = _PopLine()
    async with TaskGroup() as tasks:
        there = tasks.create_task(_to_pop(socket, pop, line))
        back = tasks.create_task(_to_client(socket, pop, line))
        watch = tasks.create_task(_drop_if_silent(pop, line))
        await asyncio.wait({there, back}, return_when=asyncio.FIRST_COMPLETED)
        for task in (there, back, watch):
            task.cancel()
    code = _code(pop.close_code, GONE)
    with suppress(WebSocketDisconnect, RuntimeError):  # The client has hung up, perhaps just now.
        await socket.close(code, pop.close_reason or (GONE_REASON if code == GONE else ""))


@dataclass(slots=True)
class _PopLine:
    """The state of the connection to the PoP."""

    heard: bool = False
    """Something has come since the last look."""
    delivering: bool = False
    """What has come is on its way to the client. Until the client has taken it, no more is read from the PoP."""
    unread: int = 0
    """Bytes that the PoP may still have to read."""

    def mark_heard(self, _: object = None) -> None:
        self.heard = True


async def _drop_if_silent(pop: ClientConnection, line: _PopLine) -> None:
    """Close the connection if the PoP's host is gone, which nobody would notice otherwise. The pings of websockets
    would also close it where the client reads too slowly for a pong to be read, or the PoP, for a ping."""
    quiet = unsent = 0
    with suppress(ConnectionClosed):
        while quiet < SILENT_LOOKS:
            await asyncio.sleep(LOOK_S)
            before, unsent = unsent, pop.transport.get_write_buffer_size()
            line.unread = max(0, line.unread - READ_BYTES)
            quiet = 0 if line.heard or line.delivering or line.unread or unsent < before else quiet + 1
            line.heard = False
            if quiet == PING_LOOKS and not unsent:  # Behind what is unsent it would wait, and its pong would be late.
                pong = asyncio.ensure_future(await pop.ping())
                pong.add_done_callback(line.mark_heard)
        pop.transport.abort()


async def _to_pop(socket: WebSocket, pop: ClientConnection, line: _PopLine) -> None:
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            await pop.close(_code(message.get("code"), 1000), message.get("reason") or "")
            return
        text = message.get("text")
        data = message["bytes"] if text is None else text
        line.unread += len(data)
        try:
            await pop.send(data)
        except ConnectionClosed:
            return


async def _to_client(socket: WebSocket, pop: ClientConnection, line: _PopLine) -> None:
    try:
        async for message in pop:
            line.heard = line.delivering = True
            if isinstance(message, str):
                await socket.send_text(message)
            else:
                await socket.send_bytes(message)
            line.delivering = False
    except (ConnectionClosed, WebSocketDisconnect, RuntimeError):  # Either side has hung up.
        return


def _code(code: int | None, none: int) -> int:
    """A close code that may be sent: 1005 and 1006 stand for none (RFC 6455, 7.4.1)."""
    return code if code and code not in (1005, 1006) else none
