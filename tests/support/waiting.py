"""Waiting for what happens elsewhere, however slow the machine."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from latency_probes.own_server import COMMAND

PATIENT_POP = (*COMMAND, "--pop", str(Path(__file__).parent / "patient_pop.toml"))
"""Starts a PoP that never refuses a call because it answered others late."""


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """`condition()` holds. Raises TimeoutError: not within `seconds`, more than the slowest machine needs."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
