"""A PoP into which a fault is put: what its dashboard says meanwhile, and which alerts fire where the fault goes on."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from latency_probes.own_server import COMMAND, own_server
from tests.observe.recorded import Scrape, firing, scrape


class Watched:
    """A server that is looked at before a fault, while it lasts, and after it."""

    def __init__(self, url: str, folder: Path, key: str = "") -> None:
        self.url = url
        self._folder = folder
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._before: Scrape = {}
        self._meanwhile: list[Scrape] = []

    async def get(self, path: str) -> httpx.Response:
        async with httpx.AsyncClient(base_url=self.url, timeout=60, headers=self._headers) as client:
            return (await client.get(path)).raise_for_status()

    async def begin(self) -> None:
        self._before = await self._scrape()

    async def look(self) -> Scrape:
        """What /metrics says now; alerts are asked for all that was seen, in turn."""
        self._meanwhile.append(await self._scrape())
        return self._meanwhile[-1]

    async def culprits(self) -> dict[str, str]:
        """What the dashboard names, and its sentence."""
        named = (await self.get("/v1/dashboard")).json()["culprits"]
        return {culprit["what"]: culprit["says"] for culprit in named}

    async def fire(self, *alerts: str) -> list[bool]:
        await self.look()
        return await asyncio.to_thread(firing, self._before, self._meanwhile, self._folder, *alerts)

    async def _scrape(self) -> Scrape:
        return scrape((await self.get("/metrics")).text)


@contextmanager
def pop(folder: Path, tables: str) -> Iterator[Watched]:
    """A PoP of its own process."""
    (folder / "pop.toml").write_text(tables)
    with own_server((*COMMAND, "--config", str(folder / "pop.toml"))) as url:
        yield Watched(url, folder)
