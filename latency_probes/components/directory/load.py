"""The load of `resolve.py`, in a process of its own: so many requests a second, whatever the answers do.

`python -m latency_probes.components.directory.load SPEC`: a JSON object as `RequestLoad`; it prints one as `Answers`.
Each request has a moment at which it is due, and its answer time counts from then on: what this process itself is late
by is in it.
"""

import asyncio
import json
import random
import resource
import sys
import time
from collections import Counter, deque
from typing import NamedTuple, cast

import msgspec
import uvloop

from latency_probes.components.directory.cities import CALLERS
from latency_probes.components.directory.simulated import on_globe

BODIES = 200
"""Different requests, over and over."""
ANSWER_S = 5.0
"""Who waits longer has gone away."""
TOKENS = 3
"""In a whole answer, where so many PoPs are there."""


class RequestLoad(msgspec.Struct, frozen=True):
    """What is asked, and how often."""

    host: str
    port: int
    key: str
    rate: int
    """Requests a second."""
    seconds: float
    connections: int
    """That are kept open, at least; a request that finds none free opens one more."""
    pops: tuple[str, ...]
    """Whose round trips callers tell: three each."""
    forwarded: bool = False
    """Each request says by `X-Forwarded-For` that it is another caller's, as behind a proxy."""


class Answers(msgspec.Struct, frozen=True):
    """What came. Times in ms."""

    asked: int
    times: list[float]
    """From when each request was due to the last byte of its answer, of whole answers: status 200 and a token for each
    of three PoPs, or of all that there are; in order of size."""
    late: list[float]
    """From when each was due to when it was sent; in order of size."""
    statuses: dict[int, int]
    """Other answers than 200, by HTTP status."""
    short: int
    """Answers of status 200 with fewer tokens."""
    lost: int
    """Requests without an answer: the connection broke, or it took over `ANSWER_S`."""
    connections: int
    cpu_share: float
    """Of one core, that this process took."""


class RequestAnswer(NamedTuple):
    """Of one request."""

    status: int
    tokens: int


class Connection(asyncio.Protocol):
    """Kept open; one request at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[RequestAnswer] | None = None
        self._got = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one, and does not say so.

    @property
    def is_open(self) -> bool:
        """Servers close connections that nobody uses."""
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, request: bytes) -> "asyncio.Future[RequestAnswer]":
        """Its answer, once all of it has come. It raises ConnectionError: the connection broke."""
        assert self._transport
        self._answer = asyncio.get_running_loop().create_future()
        self._got.clear()
        self._transport.write(request)
        return self._answer

    def data_received(self, data: bytes) -> None:
        self._got += data
        end = self._got.find(b"\r\n\r\n") + 4
        if end < 4 or self._answer is None or self._answer.done():
            return
        head = bytes(self._got[:end]).lower()
        if len(self._got) >= end + int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or 0):
            self._answer.set_result(RequestAnswer(int(head.split(b" ", 2)[1]), self._got.count(b'"token":', end)))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_exception(ConnectionError("it was closed"))


class Generator:
    """Sends a load and keeps what comes."""

    def __init__(self, load: RequestLoad) -> None:
        self._load = load
        self._requests = requests(load)
        self._free: deque[Connection] = deque()
        self._times: list[float] = []
        self._late: list[float] = []
        self._statuses: Counter[int] = Counter()
        self._short = 0
        self._lost = 0
        self._connections = 0

    async def run(self) -> Answers:
        """All of it."""
        self._free.extend([await self._connect() for _ in range(self._load.connections)])
        cpu, began = processor_s(), time.monotonic()
        count = round(self._load.rate * self._load.seconds)
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                due = began + number / self._load.rate
                if (wait := due - time.monotonic()) > 0:
                    await asyncio.sleep(wait)
                group.create_task(self._ask(number, due))
        share = (processor_s() - cpu) / (time.monotonic() - began)
        return Answers(count, sorted(self._times), sorted(self._late), dict(self._statuses), self._short, self._lost,
                       self._connections, share)  # fmt: skip

    async def _connection(self) -> Connection:
        while self._free:
            connection = self._free.pop()  # The one that was used last: those that nobody needs are closed in time.
            if connection.is_open:
                return connection
        return await self._connect()

    async def _connect(self) -> Connection:
        self._connections += 1
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(Connection, self._load.host, self._load.port)
        return connection

    async def _ask(self, number: int, due: float) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                connection = await self._connection()
                self._late.append(1000 * (time.monotonic() - due))
                answer = await connection.ask(self._requests[number % BODIES])
        except (OSError, TimeoutError):
            self._lost += 1
            return
        if answer.status != 200:
            self._statuses[answer.status] += 1
        elif answer.tokens < min(TOKENS, len(self._load.pops)):
            self._short += 1
        else:
            self._times.append(1000 * (time.monotonic() - due))
        self._free.append(connection)


def requests(load: RequestLoad) -> list[bytes]:
    """Whole HTTP requests, of callers in many places."""
    lots = random.Random(1)
    made = []
    for number in range(BODIES):
        place = lots.choice([*CALLERS.values(), on_globe(lots)])
        told = {pop: round(lots.uniform(15, 120), 1) for pop in lots.sample(load.pops, min(3, len(load.pops)))}
        body = json.dumps(
            {"kind": "websocket", "rtt_ms": told, "place": {"latitude": place.latitude, "longitude": place.longitude}}
        ).encode()
        forwarded = f"X-Forwarded-For: 198.51.100.{number}\r\n" if load.forwarded else ""
        head = (
            f"POST /v1/calls HTTP/1.1\r\nHost: {load.host}:{load.port}\r\nAuthorization: Bearer {load.key}\r\n"
            f"{forwarded}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        made.append(head.encode() + body)
    return made


def processor_s() -> float:
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def main(load: RequestLoad) -> None:
    """Ask, and print what came."""
    print(msgspec.json.encode(await Generator(load).run()).decode(), flush=True)


if __name__ == "__main__":
    uvloop.run(main(msgspec.json.decode(sys.argv[1], type=RequestLoad)))
