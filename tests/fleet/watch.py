"""Looks at a fleet while something is done to it, by what its directories hear: a PoP answers its own machine alone."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import httpx

from tests.fleet.history import Health, History
from tests.fleet.rig import Rig


@asynccontextmanager
async def watched(rig: Rig, history: History, every_s: float) -> AsyncIterator[None]:
    """What PoPs say of themselves goes into the history meanwhile."""
    watching = asyncio.create_task(watch(rig, history, every_s))
    try:
        yield
    finally:
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching


async def watch(rig: Rig, history: History, every_s: float) -> None:
    """What each PoP reports, until cancelled."""
    while True:
        for directory in rig.directories:
            with suppress(httpx.HTTPError, ValueError):
                rows = await rig.rows(directory)
                history.health += [Health(time.monotonic(), row["pop"], row["status"], row["calls"]) for row in rows]
        await asyncio.sleep(every_s)
