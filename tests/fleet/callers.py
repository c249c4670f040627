"""A process full of callers: `python -m tests.fleet.callers`. An open loop: they come when they come, however the fleet
does.

Each line of the standard input is an `Order`, or the name of one whose calls are to be hung up.
"""

import asyncio
import random
import sys
import time
from typing import Any, TextIO

import httpx
import msgspec
import uvloop

from tests.fleet.caller import Caller, Order, ProgramCaller
from tests.fleet.phone_caller import PhoneCaller
from tests.fleet.twilio_caller import TwilioCaller

CONNECTIONS = httpx.Limits(max_connections=400, max_keepalive_connections=100, keepalive_expiry=30)
KINDS: dict[str, type[Caller[Any]]] = {"websocket": ProgramCaller, "sip": PhoneCaller, "twilio": TwilioCaller}


class Callers:
    """All orders of this process."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
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
            await asyncio.sleep(max(0.0, at - time.monotonic()))
            caller = KINDS[order.kind](order, number, self._client, self._hang_up[order.name])
            tasks.create_task(_told(caller, out))
            at += lots.expovariate(order.per_second) if order.per_second else 0.0


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
    async with httpx.AsyncClient(limits=CONNECTIONS, timeout=None, trust_env=False) as client:
        callers, tasks = Callers(client), set[asyncio.Task[None]]()
        print("callers are ready", flush=True)
        while line := (await reader.readline()).decode().strip():
            tasks.add(asyncio.create_task(callers.take(line)))


if __name__ == "__main__":
    uvloop.run(main())
