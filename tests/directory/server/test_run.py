"""A directory that has just begun turns no caller away for not having heard of the PoPs yet."""

import asyncio

import pytest

from voicepipe.directory.bus import MemoryBus
from voicepipe.directory.reporter import EVERY_S, UNEVEN
from voicepipe.directory.server.run import listened

pytestmark = pytest.mark.virtual_time


class Reached(MemoryBus):
    """From a time on; None: never."""

    def __init__(self, at: float | None) -> None:
        super().__init__()
        self._at = at

    def is_connected(self) -> bool:
        return self._at is not None and asyncio.get_running_loop().time() >= self._at


@pytest.mark.parametrize("after_s", [0.0, 1.0])
async def test_it_answers_once_every_pop_has_had_time_to_report(after_s: float) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await listened(Reached(began + after_s))
    assert EVERY_S * (1 + UNEVEN) <= loop.time() - began - after_s <= 2 * EVERY_S


async def test_it_answers_soon_where_the_bus_cannot_be_reached() -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await listened(Reached(None))
    assert loop.time() - began <= 3.1
