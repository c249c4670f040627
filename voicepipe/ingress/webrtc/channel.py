"""The data channel `oai-events` as a client of a call."""

import asyncio
import logging
import time

from voicepipe.base.tasks import TaskGroup
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.rights import Rights
from voicepipe.ingress.wire_errors import WireError
from voicepipe.rtp.sctp import DataChannel, Sctp

logger = logging.getLogger(__name__)

LABEL = "oai-events"
UNSENT = 256 * 1024
"""Bytes that the channel may hold; more stay in the outbox, which has a limit."""
OPENING_S, OPEN_S = 1.0, 30.0
"""Seconds: a caller is not greeted before their channel is open, or the first has passed; after the second it is given
up."""


class ChannelClient:
    """A WebRTC data channel as a client of its call: events both ways, from the moment at which the peer has opened the
    channel until the call or the channel ends."""

    def __init__(self, clients: RealtimeClients, sctp: Sctp, rights: Rights) -> None:
        self._rights = rights
        self._clients = clients
        self._call = call = clients.call
        self._sctp = sctp
        sctp.on_overlong = self._overlong
        self._outbox = clients.join(lambda: call.end("caller"), rights)
        self._asked: asyncio.Queue[tuple[str | bytes, float]] = asyncio.Queue()
        """Messages that wait, as long as SCTP's window allows: a client that sends more than can be carried out is held
        up."""
        self._channel: asyncio.Future[DataChannel] = asyncio.get_running_loop().create_future()

    def opened(self, channel: DataChannel) -> None:
        """The peer opened a channel; ours is the first of that name."""
        if channel.label == LABEL and not self._channel.done():
            channel.on("message", self._message)
            self._channel.set_result(channel)

    def _message(self, message: str | bytes) -> None:
        self._sctp.reserve(message)
        self._asked.put_nowait((message, time.monotonic()))

    def _overlong(self) -> None:
        """The client sends a message that is too long: it gets an error, and is disconnected."""
        most = self._sctp.message_bytes
        logger.warning("%s: hung up, for a message of over %d bytes on its data channel", self._call.id, most)
        too_long = f"A message on the data channel may have {most} bytes (a=max-message-size): send less at a time."
        self._clients.send_error(self._outbox, WireError("message_too_long", too_long))
        self._call.end("caller")

    def send_error(self, error: WireError) -> None:
        """Send an error about what the peer does wrong."""
        self._clients.send_error(self._outbox, error)

    async def opening(self) -> None:
        """Returns when the channel is open, or the time to wait for it has passed."""
        await asyncio.wait({self._channel}, timeout=OPENING_S)

    async def run(self) -> None:
        """Returns when the call is over and the peer has all its events, or its channel is closed. A peer that
        acknowledges nothing is waited for without end: the caller sets a limit."""
        async with TaskGroup() as tasks:
            reader = tasks.create_task(self._read())
            try:
                await self._write()
            finally:
                self._clients.leave(self._outbox)
            reader.cancel()

    async def _read(self) -> None:
        await self._call.running.wait()
        while True:
            message, arrived = await self._asked.get()
            self._sctp.release(message)
            await self._clients.handle(message, arrived, self._outbox, self._rights)

    async def _write(self) -> None:
        await asyncio.wait({self._channel}, timeout=OPEN_S)
        if not self._channel.done():
            return  # Its caller wants sound alone.
        channel = self._channel.result()
        while (message := await self._outbox.get()) is not None:
            await _drained(channel, UNSENT)
            if channel.readyState != "open":
                return
            try:
                channel.send(message.decode())
            except ValueError:
                too_long = f"An event of {len(message)} bytes is longer than this peer takes (a=max-message-size)."
                self._clients.send_error(self._outbox, WireError("event_too_long", too_long, kind="server_error"))
        await _drained(channel, 0)


async def _drained(channel: DataChannel, most: int) -> None:
    """Returns when at most so many bytes wait to be sent, or the channel is closed."""
    if channel.bufferedAmount > most and channel.readyState == "open":
        low = asyncio.Event()
        channel.bufferedAmountLowThreshold = most
        for event in ("bufferedamountlow", "close"):
            channel.on(event, low.set)
        await low.wait()
        for event in ("bufferedamountlow", "close"):
            if low.set in channel.listeners(event):
                channel.remove_listener(event, low.set)
