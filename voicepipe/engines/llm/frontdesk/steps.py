"""Work in small steps, so that others get the loop in between however much a client has sent."""

import asyncio
from collections.abc import Generator
from time import perf_counter
from typing import TypeVar

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Yields where the work can be left for a while, returns what it comes to. A step takes a few milliseconds at most."""

BREATH_S = 0.002
"""After so long the others get their turn. Most replies take less."""


async def unhurried(work: Steps[T]) -> T:
    """The result of `work`, done with pauses for other tasks."""
    began = perf_counter()
    while True:
        try:
            next(work)
        except StopIteration as done:
            result: T = done.value
            return result
        if perf_counter() - began >= BREATH_S:
            await asyncio.sleep(0)
            began = perf_counter()
