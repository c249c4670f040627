"""One caller at Twilio, which does as its documents say: it asks the number's webhook, and the fallback if that does
not answer, in 15 s at most; it streams the call where the answer says, until the caller hangs up. A call has begun once
the caller hears something."""

import asyncio
import json
import secrets
import time
from urllib.parse import urlsplit
from xml.etree import ElementTree

import httpx
import websockets
from websockets.asyncio.client import ClientConnection

from tests.fleet.caller import BEAT_S, Caller
from tests.fleet.history import HUNG_UP, LET_IN, LOST, Candidate, Placement, Try
from tests.fleet.manifests import public_url
from tests.ingress.telephony.twilio_provider import Stream, signed

NUMBER = "+4930123"
WEBHOOK_S = 15.0


class TwilioCaller(Caller[Stream]):
    """As `Caller`. What a directory answers is not a choice of PoPs, but one that has taken the call."""

    bound = True
    knows = 2
    _sid = ""

    async def _asked(self, placement: Placement) -> None:
        self._sid = self._sid or f"CA{secrets.token_hex(16)}"  # The fallback is told of the same call.
        form = {"CallSid": self._sid, "From": "+1555", "To": NUMBER}
        url = f"{self._order.directories[placement.directory]}/twilio/voice"
        try:
            async with asyncio.timeout(WEBHOOK_S):
                answer = await self._client.post(url, data=form, headers=signed(public_url(url), form))
        except (httpx.HTTPError, TimeoutError) as error:
            placement.code = type(error).__name__
            return
        if not answer.is_success:
            placement.code = f"HTTP {answer.status_code}"
            return
        placement.status = answer.status_code
        [verb] = ElementTree.fromstring(answer.text)
        if verb.tag != "Connect":
            placement.status, placement.code, placement.retry_after = 503, verb.tag, "the busy tone"
            return
        stream = verb[0].get("url") or ""
        where = urlsplit(stream)
        placement.candidates = [Candidate(self._order.pops.get(where.hostname or "", ""), where.netloc)]
        self._parameters = {one.get("name", ""): one.get("value", "") for one in verb[0]}
        self._tokens = [stream]

    async def _try(self, placement: Placement, candidate: Candidate, token: str) -> Stream | None:
        """`token`: the stream's address."""
        placement.tries.append(one := Try(candidate.pop, time.monotonic()))
        socket: ClientConnection | None = None
        try:
            async with asyncio.timeout(self._order.patience_s):
                socket = await websockets.connect(token, additional_headers=signed(token), proxy=None,
                                                  open_timeout=None, ping_interval=None, compression=None,
                                                  close_timeout=2)  # fmt: skip
                stream = Stream(socket, self._sid)
                self._listening = asyncio.create_task(stream.listen())
                await stream.start(self._parameters)
                await stream.speaks.wait()
            one.status = LET_IN
        except websockets.InvalidStatus as error:
            one.status, one.why = error.response.status_code, "not let in"
        except (OSError, TimeoutError, websockets.WebSocketException, EOFError) as error:
            one.why = type(error).__name__
        one.ended = time.monotonic()
        if one.status == LET_IN:
            self.call.pop, self.call.began = candidate.pop, one.ended
            return stream
        if socket:
            socket.transport.abort()
        return None

    async def _hold(self, line: Stream) -> None:
        call = self.call
        until = time.monotonic() + self._hold_s
        try:
            while (left := until - time.monotonic()) > 0 and not self._hang_up.is_set() and not line.closed.is_set():
                await self._pause(min(BEAT_S, left))
            call.end = LOST if line.closed.is_set() else HUNG_UP
            call.ended = time.monotonic()
            await line.socket.send(json.dumps({"event": "stop", "streamSid": line.stream_sid}))
            await line.socket.close()
        except websockets.ConnectionClosed:
            call.end = LOST
        finally:
            self._listening.cancel()
