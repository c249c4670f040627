"""One caller at Telnyx, which does as its documents say: it tells the application's webhook of the call, and the
failover URL if that does not answer; it carries out what it is told by its API, sends the call's webhooks where the
answer says, and streams the call until the caller hangs up, or the far end. A call has begun once the caller hears
something."""

import asyncio
import json
import secrets
import time
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

import httpx
import websockets
from websockets.asyncio.client import ClientConnection

from tests.fleet.caller import BEAT_S, Caller, Order
from tests.fleet.history import HUNG_UP, LET_IN, LOST, Candidate, Placement, Try
from tests.fleet.telnyx_side import Command, Line, TelnyxSide
from tests.ingress.telephony.telnyx_provider import start, webhook

PATH = "/telnyx/voice"
WEBHOOK_S = 15.0
"""A webhook that is not answered by then goes to the failover URL."""
TOKEN = "x-telnyx-streaming-auth-token"


class TelnyxCaller(Caller[ClientConnection]):
    """As `Caller`. What a directory answers says nothing; who has taken the call says so by the API of `telnyx`."""

    bound = True
    knows = 2

    def __init__(
        self, telnyx: TelnyxSide, order: Order, number: int, client: httpx.AsyncClient, hang_up: asyncio.Event
    ) -> None:
        super().__init__(order, number, client, hang_up)
        self._call_id = f"v3:{secrets.token_hex(8)}"
        self._line = telnyx.lines[self._call_id] = Line()

    async def _asked(self, placement: Placement) -> None:
        url = self._order.directories[placement.directory] + PATH
        placement.code = await self._post(url, "call.initiated", direction="incoming")
        if placement.code:
            return
        try:
            async with asyncio.timeout(self._order.patience_s):
                action, said = await self._line.commands.get()
        except TimeoutError:
            placement.code = "nobody says what becomes of the call"
            return
        if action != "answer":
            self._line.over = True
            placement.status, placement.code, placement.retry_after = 503, action, "the busy tone"
            return
        where = urlsplit(said["webhook_url"])
        placement.status = 200
        placement.candidates = [Candidate(self._order.pops.get(where.hostname or "", ""), where.netloc)]
        self._tokens = [said["webhook_url"]]

    async def _try(self, placement: Placement, candidate: Candidate, token: str) -> ClientConnection | None:
        """`token`: the webhook's address."""
        placement.tries.append(one := Try(candidate.pop, time.monotonic()))
        self._webhooks = token
        socket: ClientConnection | None = None
        try:
            async with asyncio.timeout(self._order.patience_s):
                await self._tell("call.answered")
                socket = await self._streamed(*await self._line.commands.get())
                while json.loads(await socket.recv())["event"] != "media":
                    pass
            one.status = LET_IN
        except websockets.InvalidStatus as error:
            one.status, one.why = error.response.status_code, "not let in"
        except (OSError, TimeoutError, websockets.WebSocketException, EOFError) as error:
            one.why = str(error) or type(error).__name__
        one.ended = time.monotonic()
        if one.status == LET_IN and socket:
            self.call.pop, self.call.began = candidate.pop, one.ended
            return socket
        await self._ends(socket)
        return None

    async def _streamed(self, action: str, said: dict[str, Any]) -> ClientConnection:
        """The stream that this command asks for. Raises ConnectionError: it asks for something else."""
        if action != "streaming_start":
            raise ConnectionError(f"told to {action}")
        socket = await websockets.connect(
            said["stream_url"], additional_headers={TOKEN: said["stream_auth_token"]}, proxy=None, open_timeout=None,
            ping_interval=None, compression=None, close_timeout=2,
        )  # fmt: skip
        await socket.send(json.dumps({"event": "connected", "version": "1.0.0"}))
        await socket.send(start(self._call_id, said))
        return socket

    async def _hold(self, line: ClientConnection) -> None:
        call = self.call
        over = [asyncio.create_task(self._listen(line)), asyncio.create_task(self._told_to_hang_up())]
        until = time.monotonic() + self._hold_s
        while (left := until - time.monotonic()) > 0 and not self._hang_up.is_set() and not any(map(_done, over)):
            await self._pause(min(BEAT_S, left))
        call.end = LOST if any(map(_done, over)) else HUNG_UP
        call.ended = time.monotonic()
        for task in over:
            task.cancel()
        await self._ends(line)

    async def _listen(self, line: ClientConnection) -> None:
        """Until the far end closes."""
        with suppress(websockets.ConnectionClosed):
            while True:
                await line.recv()

    async def _told_to_hang_up(self) -> Command:
        command = await self._line.commands.get()
        while command[0] != "hangup":
            command = await self._line.commands.get()
        return command

    async def _ends(self, socket: ClientConnection | None) -> None:
        """The stream stops, and the call."""
        self._line.over = True
        if socket:
            with suppress(websockets.ConnectionClosed):
                await socket.send(json.dumps({"event": "stop", "stream_id": "S1"}))
            await socket.close()
        await self._tell("call.hangup", hangup_cause="normal_clearing")

    async def _tell(self, event: str, **more: str) -> None:
        """Where the answer has said; the application's own URLs if nobody answers there."""
        for url in (self._webhooks, *(one + PATH for one in list(self._order.directories.values())[: self.knows])):
            if not await self._post(url, event, client_state=self._line.client_state, **more):
                return

    async def _post(self, url: str, event: str, **more: str) -> str:
        """A webhook; why it was not taken."""
        about = {"call_control_id": self._call_id, "connection_id": "1", "from": "+1555", "to": "+4930123"}
        body, headers = webhook(event, about | more)
        try:
            async with asyncio.timeout(WEBHOOK_S):
                answer = await self._client.post(url, content=body, headers=headers)
        except (httpx.HTTPError, TimeoutError) as error:
            return type(error).__name__
        return "" if answer.is_success else f"HTTP {answer.status_code}"


def _done(task: "asyncio.Task[Any]") -> bool:
    return task.done()
