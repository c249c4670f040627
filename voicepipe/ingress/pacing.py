"""Pacing by a timer of the line's own."""

import asyncio

from voicepipe.line import Pump


async def by_timer(pump: Pump, wake: asyncio.Event) -> None:
    """As `Line.pace`."""
    while True:
        delay = pump()
        if delay is not None:
            await asyncio.sleep(delay)
        else:
            wake.clear()
            await wake.wait()
