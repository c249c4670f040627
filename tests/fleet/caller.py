"""One caller, who does as the contract of a directory says, and writes down what happened.

They ask a directory where to call, and another one if it does not answer. They try the candidates in their order, each
with its token. If all refuse they ask again and say which ones they tried. Then they hold the call for a while, see
that it lives, and hang up.
"""

import asyncio
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Generic, Literal, TypeVar

import httpx
import websockets
from msgspec import Struct, field
from websockets.asyncio.client import ClientConnection

from tests.fleet.history import HUNG_UP, LET_IN, LOST, REFUSED, SILENT, Call, Candidate, Placement, Try

BEAT_S = 1.0
"""They look so often whether the call lives."""
CLEAR = json.dumps({"type": "input_audio_buffer.clear"})
"""What costs next to nothing, and is answered by the call itself."""


class Order(Struct, kw_only=True):
    """A load of calls that somebody is to place."""

    name: str
    out: str
    """The file for their history: a line for each call when it is over, and when it begins, an empty one at the end."""
    directories: dict[str, str]
    """Their URLs by their names, in the order in which they are asked."""
    spread: bool = False
    """Each call begins with another directory."""
    kind: Literal["websocket", "relayed", "sip", "twilio", "telnyx"] = "websocket"
    """By which they call."""
    pops: dict[str, str] = field(default_factory=dict)
    """By telephone: the name of the PoP at each address."""
    key: str
    zone: str = ""
    """To which the key's owner is bound."""
    region: str
    place: list[float] = field(default_factory=list)
    """Latitude and longitude, as they say."""
    avoid: list[str] = field(default_factory=list)
    """PoPs that they say they have tried, so that they get others."""
    count: int = 1
    per_second: float = 0.0
    """0: all at once."""
    hold_s: list[float] = field(default_factory=lambda: [1.0, 1.0])
    """A call lasts from the one to the other, or until it is told to hang up."""
    patience_s: float = 3.0
    """For an answer of a directory, and of a candidate,"""
    alive_s: float = 20.0
    """and for an event in a call."""
    seed: int = 0


L = TypeVar("L")
"""What a caller has of a call that has begun."""


class Caller(ABC, Generic[L]):
    """`client` is shared by all; `hang_up` is set when calls have to end."""

    rounds = 1
    """They ask so often."""
    knows = 9
    """They can be told of so many directories."""
    elsewhere: tuple[int, ...] = ()
    """Refusals by a directory after which they ask the next one, as after none."""
    bound = False
    """Once a PoP has taken the call, no other can."""

    def __init__(self, order: Order, number: int, client: httpx.AsyncClient, hang_up: asyncio.Event) -> None:
        self.call = Call(number, order.region, order.zone, bound=self.bound)
        self.up = asyncio.Event()
        """Set once the call has begun."""
        self._order = order
        self._client = client
        self._hang_up = hang_up
        self._tokens: Sequence[str] = ()
        self._hold_s = random.Random(f"{order.seed} {order.name} {number}").uniform(*order.hold_s)

    async def run(self) -> Call:
        """From the first question to the end."""
        try:
            line = await self._set_up()
            if line:
                self.up.set()
                await self._hold(line)
        except Exception as error:  # A history without its end would be told as one that never ended.
            self.call.end = f"a mistake of this caller's: {error!r}"
        self.call.ended = self.call.ended or time.monotonic()
        return self.call

    async def _set_up(self) -> L | None:
        """A call that has begun; None: it is told why not."""
        for _ in range(self.rounds):
            placement = await self._ask()
            if placement.status == 503:
                self.call.end = REFUSED
                return None
            if placement.status != 200:
                self.call.end = f"no directory answers ({placement.status} {placement.code})"
                return None
            for candidate, token in zip(placement.candidates, self._tokens, strict=True):
                if line := await self._try(placement, candidate, token):
                    return line
        self.call.end = f"turned away {self.call.bounced} times"
        return None

    async def _ask(self) -> Placement:
        """The last question's answer."""
        names = list(self._order.directories)[: self.knows]
        if self._order.spread:
            first = self.call.number % len(names)
            names = names[first:] + names[:first]
        tried = self._order.avoid + [one.pop for placement in self.call.placements for one in placement.tries]
        for name in names:
            self.call.placements.append(placement := Placement(name, time.monotonic(), tried=tried))
            await self._asked(placement)
            placement.answered = time.monotonic()
            if placement.status not in (0, *self.elsewhere):
                break
        return placement

    @abstractmethod
    async def _asked(self, placement: Placement) -> None:
        """What the directory answers is in `placement`, and in `_tokens` what each candidate wants."""

    @abstractmethod
    async def _try(self, placement: Placement, candidate: Candidate, token: str) -> L | None:
        """Call it; None: it does not let the caller in."""

    @abstractmethod
    async def _hold(self, line: L) -> None:
        """The call, until it ends."""

    async def _pause(self, seconds: float) -> None:
        """Or until calls have to end."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hang_up.wait(), seconds)


class ProgramCaller(Caller[ClientConnection]):
    """By WebSocket."""

    rounds = 4

    async def _asked(self, placement: Placement) -> None:
        body: dict[str, Any] = {"kind": "websocket", "tried": placement.tried}
        if self._order.place:
            body["place"] = dict(zip(("latitude", "longitude"), self._order.place, strict=True))
        url = f"{self._order.directories[placement.directory]}/v1/calls"
        try:
            headers = {"Authorization": f"Bearer {self._order.key}"}
            async with asyncio.timeout(self._order.patience_s):
                answer = await self._client.post(url, json=body, headers=headers)
        except (httpx.HTTPError, TimeoutError) as error:
            placement.code = type(error).__name__
            return
        placement.status, said = answer.status_code, answer.json()
        placement.retry_after = answer.headers.get("retry-after", "")
        if placement.status == 200:
            placement.candidates = [Candidate(row["pop"], row["url"]) for row in said["candidates"]]
            self._tokens = [row["token"] for row in said["candidates"]]
        else:
            placement.code = said["error"]["code"]

    async def _try(self, placement: Placement, candidate: Candidate, token: str) -> ClientConnection | None:
        placement.tries.append(one := Try(candidate.pop, time.monotonic()))
        socket: ClientConnection | None = None
        try:
            async with asyncio.timeout(self._order.patience_s):
                socket = await websockets.connect(f"{candidate.url}?token={token}", proxy=None, ping_interval=None,
                                                  open_timeout=None, compression=None, close_timeout=2)  # fmt: skip
                await socket.recv()  # session.created
            one.status = LET_IN
        except websockets.InvalidStatus as error:
            one.status, one.why = error.response.status_code, _code(error.response.body)
        except (OSError, TimeoutError, websockets.WebSocketException, EOFError) as error:
            one.why = type(error).__name__
        one.ended = time.monotonic()
        if one.status == LET_IN and socket:
            self.call.pop, self.call.began = candidate.pop, one.ended
            return socket
        if socket:
            _drop(socket)
        return None

    async def _hold(self, line: ClientConnection) -> None:
        call, order = self.call, self._order
        until = time.monotonic() + self._hold_s
        try:
            while (left := until - time.monotonic()) > 0 and not self._hang_up.is_set():
                await line.send(CLEAR)
                await asyncio.wait_for(line.recv(), order.alive_s)
                call.events += 1
                await self._pause(min(BEAT_S, left))
            call.end, call.ended = HUNG_UP, time.monotonic()
            await line.close()
        except TimeoutError:
            call.end, call.ended = SILENT, time.monotonic()
            _drop(line)
        except websockets.ConnectionClosed:
            call.ended = call.ended or time.monotonic()
            call.end = call.end or LOST


class RelayedCaller(ProgramCaller):
    """By a WebSocket to the directory itself, as stock SDKs call: it is relayed, and the caller never learns where to.
    The directories are addresses of one name."""

    elsewhere = (503,)
    _line: ClientConnection | None = None

    async def _set_up(self) -> ClientConnection | None:
        placement = await self._ask()
        if self._line:
            self.call.began = placement.answered
        else:
            nobody = f"no directory lets it in ({placement.status} {placement.code})"
            self.call.end = REFUSED if placement.status == 503 else nobody
        return self._line

    async def _asked(self, placement: Placement) -> None:
        url = self._order.directories[placement.directory].replace("http", "ws", 1)
        headers = {"Authorization": f"Bearer {self._order.key}"}
        try:
            async with asyncio.timeout(self._order.patience_s):
                self._line = await websockets.connect(
                    f"{url}/v1/realtime", additional_headers=headers, proxy=None, ping_interval=None,
                    open_timeout=None, compression=None, close_timeout=2,
                )  # fmt: skip
                await self._line.recv()  # session.created
            placement.status = 200
        except websockets.InvalidStatus as error:
            placement.status, placement.code = error.response.status_code, _code(error.response.body)
            placement.retry_after = error.response.headers.get("retry-after", "")
        except (OSError, TimeoutError, websockets.WebSocketException, EOFError) as error:
            placement.code = type(error).__name__
            if self._line:
                _drop(self._line)
                self._line = None


def _code(body: bytes | bytearray) -> str:
    """Of a refusal."""
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, KeyError, TypeError):
        return body[:80].decode(errors="replace")


def _drop(socket: ClientConnection) -> None:
    """Without a farewell, for which a PoP that is stopped has no answer."""
    socket.transport.abort()
