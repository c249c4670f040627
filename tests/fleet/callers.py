"""A process full of callers: `python -m tests.fleet.callers ADDRESS`, where Telnyx's API is to be. An open loop: they
come when they come, however the fleet does.

Each line of the standard input is an `ReplyOrder`, or the name of one whose calls are to be hung up.
"""

import asyncio
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, TextIO

import httpx
import msgspec
import uvloop

from tests.fleet.caller import Caller, Order, ProgramCaller, RelayedCaller
from tests.fleet.network import API_PORT
from tests.fleet.phone_caller import PhoneCaller
from tests.fleet.telnyx_caller import TelnyxCaller
from tests.fleet.telnyx_side import TelnyxSide
from tests.fleet.twilio_caller import TwilioCaller

CONNECTIONS = httpx.Limits(max_connections=400, max_keepalive_connections=100, keepalive_expiry=30)


class Callers:
    """All orders of this process. `telnyx` is what its callers at Telnyx use."""

    def __init__(self, client: httpx.AsyncClient, telnyx: TelnyxSide) -> None:
        self._client = client
        self._kinds: dict[str, Callable[..., Caller[Any]]] = {
            "websocket": ProgramCaller,
            "relayed": RelayedCaller,
            "sip": PhoneCaller,
            "twilio": TwilioCaller,
            "telnyx": partial(TelnyxCaller, telnyx),
        }
        self._hang_up: dict[str, asyncio.Event] = {}

    async def take(self, line: str) -> None:
        """Until it is carried out."""
        if not line.startswith("{"):
            self._hang_up[line].set()
            return
        order = msgspec.json.decode(line, type=Order)
        self._hang_up[order.name] = asyncio.Event()
        with open(order.out, "w", buffering=1) as out:  # noqa: ASYNC230  # Lines of a few hundred bytes.
            async with asyncio.TaskGroup() as tasks:
                await self._come(order, tasks, out)
            out.write("\n")

    async def _come(self, order: Order, tasks: asyncio.TaskGroup, out: TextIO) -> None:
        lots = random.Random(f"{order.seed} {order.name}")
        at = time.monotonic()
        for number in range(order.count):
            at += lots.expovariate(order.per_second) if order.per_second else 0.0
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            caller = self._kinds[order.kind](order, number, self._client, self._hang_up[order.name])
            tasks.create_task(_told(caller, out))


async def _told(caller: Caller[Any], out: TextIO) -> None:
    """Write a line when the call begins, if it does, and its history when it is over."""
    running = asyncio.create_task(caller.run())
    beginning = asyncio.create_task(caller.up.wait())
    await asyncio.wait({running, beginning}, return_when=asyncio.FIRST_COMPLETED)
    beginning.cancel()
    if caller.up.is_set():
        out.write(f"up {caller.call.pop}\n")
    out.write(msgspec.json.encode(await running).decode() + "\n")


async def main() -> None:
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    telnyx = TelnyxSide()
    async with (
        await asyncio.start_server(telnyx.serve, sys.argv[1], API_PORT),
        httpx.AsyncClient(limits=CONNECTIONS, timeout=None, trust_env=False) as client,
    ):
        callers, tasks = Callers(client, telnyx), set[asyncio.Task[None]]()
        print("callers are ready", flush=True)
        while line := (await reader.readline()).decode().strip():
            tasks.add(asyncio.create_task(callers.take(line)))


if __name__ == "__main__":
    uvloop.run(main())
