"""A WebSocket as a client of a call: reads, writes, times out. It may carry the call's sound, or only follow the
call."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

from starlette.websockets import WebSocket

from voicepipe.base.cpu_metering import PaidBy
from voicepipe.base.round_robin import owned_by
from voicepipe.base.tasks import TaskGroup
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.socket_sender import SocketSender

logger = logging.getLogger(__name__)


async def converse(
    socket: WebSocket,
    clients: RealtimeClients,
    known: Callable[[HostedCall], AbstractContextManager[str]],
    rights: Rights,
) -> None:
    """Run the call of the accepted WebSocket: returns when the call is over and the socket closed. The call is found by
    its id within the context of `known`."""
    call = clients.call
    client = _Client(socket, clients, rights, call.limits.idle_ms / 1000, on_full=lambda: call.end("closed"))
    with owned_by(call.id):
        await _converse(client, call, known)


async def _converse(
    client: "_Client", call: HostedCall, known: Callable[[HostedCall], AbstractContextManager[str]]
) -> None:
    async with TaskGroup() as tasks:
        writer = tasks.create_task(client.write())
        reader = tasks.create_task(_until_gone(client, call))
        with known(call):
            await call.run()
        reader.cancel()
        await client.sender.flush(writer)


async def _until_gone(client: "_Client", call: HostedCall) -> None:
    call.end(await client.read())


async def listen_in(socket: WebSocket, clients: RealtimeClients, subprotocol: str | None, rights: Rights) -> None:
    """Accept a WebSocket that follows a call beside its caller (`?call_id=`): returns when it is closed. The call goes
    on. The client may send nothing for as long as it likes. Raises CallFull; then it is not accepted."""
    client = _Client(socket, clients, rights, None, on_full=lambda: None)
    try:
        await client.accept(subprotocol)
        with owned_by(clients.call.id):
            await _listen_in(client, clients)
    finally:
        clients.leave(client.outbox)


async def _listen_in(client: "_Client", clients: RealtimeClients) -> None:
    async with TaskGroup() as tasks:
        with PaidBy(clients.share.payer()):  # Each event is written to each of them once more.
            writer = tasks.create_task(client.write())
        reader = tasks.create_task(client.read())
        await asyncio.wait({writer, reader}, return_when=asyncio.FIRST_COMPLETED)
        clients.leave(client.outbox)
        reader.cancel()
        await client.sender.flush(writer)


class _Client:
    def __init__(
        self,
        socket: WebSocket,
        clients: RealtimeClients,
        rights: Rights,
        idle_s: float | None,
        on_full: Callable[[], None],
    ) -> None:
        self._rights = rights
        self._socket = socket
        self.sender = SocketSender(socket)
        self._clients = clients
        self._idle_s = idle_s
        self._on_full = on_full
        self.outbox = clients.join(self._full, rights)

    async def accept(self, subprotocol: str | None) -> None:
        """Accept the WebSocket of a client without sound: its messages are short."""
        self.sender.peer.take_at_most(self._clients.call.limits.event_bytes)
        await self._socket.accept(subprotocol)

    async def read(self) -> str:
        """Carry out what the client asks until it is gone; returns the reason: "caller", "idle" or "closed"."""
        call = self._clients.call
        await call.running.wait()
        while True:
            try:
                async with asyncio.timeout(self._idle_s):
                    message = await self._socket.receive()
            except TimeoutError:
                return "idle"
            if message["type"] == "websocket.disconnect":
                if not (why := self.sender.peer.closed_for):
                    return "caller"
                logger.info("%s: the server has closed its WebSocket: %s", call.id, why)
                return "closed"
            raw = message.get("text") or message.get("bytes") or b""
            await self._clients.handle(raw, self.sender.peer.received_at, self.outbox, self._rights)

    async def write(self) -> None:
        """Send until the outbox is closed and empty, then close the socket."""
        await self.sender.write(self.outbox, lambda: self._clients.goodbye.close)

    def _full(self) -> None:
        logger.warning("a client is dropped that does not take what it is sent")
        self.sender.peer.abort()
        self._on_full()
