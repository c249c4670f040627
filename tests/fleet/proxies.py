"""Ways between regions on one machine, which can be cut: `python -m tests.fleet.proxies`.

While a way is cut its bytes wait, as they do where packets are lost, and who connects hears nothing. The first line of
the standard input has all links, each further one says "cut REGION" or "heal REGION".
"""

import asyncio
import sys
from contextlib import suppress

import msgspec

from tests.fleet.network import Link

AGAIN_S = 1.0
"""What was sent while the way was cut comes so much later than the healing, as what is sent again does."""


class Ways:
    def __init__(self) -> None:
        self._cut: set[str] = set()
        self._changed = asyncio.Condition()

    async def order(self, what: str, region: str) -> None:
        """ "cut" or "heal" it."""
        async with self._changed:
            (self._cut.add if what == "cut" else self._cut.discard)(region)
            self._changed.notify_all()

    def is_cut(self, link: Link) -> bool:
        return (link.regions[0] in self._cut) != (link.regions[1] in self._cut)

    async def open(self, link: Link) -> None:
        """Return once it is."""
        if self.is_cut(link):
            async with self._changed:
                await self._changed.wait_for(lambda: not self.is_cut(link))
            await asyncio.sleep(AGAIN_S)

    async def pass_on(self, link: Link, one: asyncio.StreamReader, other: asyncio.StreamWriter) -> None:
        """Until either end closes."""
        with suppress(OSError):
            while data := await one.read(65536):
                await self.open(link)
                other.write(data)
                await other.drain()
        with suppress(OSError):
            other.close()

    async def serve(self, link: Link) -> None:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self.open(link)
            try:
                there, back = await asyncio.open_connection(*link.leads)
            except OSError:
                writer.transport.abort()
                return
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self.pass_on(link, reader, back))
                tasks.create_task(self.pass_on(link, there, writer))

        await asyncio.start_server(connected, *link.listens)


async def main() -> None:
    stdin = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    ways = Ways()
    links = msgspec.json.decode(await stdin.readline(), type=list[Link])
    for link in links:
        await ways.serve(link)
    print("proxies: ready", flush=True)
    while line := (await stdin.readline()).decode().split():
        await ways.order(*line)
        print(*line, flush=True)


if __name__ == "__main__":
    asyncio.run(main())
