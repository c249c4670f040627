"""Nothing of a phone call that has ended waits for Python's cycle collector, however it ended."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.freed import freed
from tests.ingress.sip.peer import Phone, phone, sip

pytestmark = pytest.mark.usefixtures("hasty")

End = Callable[[Phone, FakePop], Awaitable[None]]


async def hangs_up(ann: Phone, pop: FakePop) -> None:
    await ann.dial()
    await asyncio.sleep(0.1)
    assert (await ann.hang_up()).code == 200


async def is_hung_up(ann: Phone, pop: FakePop) -> None:
    await ann.dial()
    await pop.calls[-1].line.hang_up()
    await ann.got("BYE")


async def vanishes(ann: Phone, pop: FakePop) -> None:
    """Without a word, and nobody answers our BYE."""
    await ann.dial()
    ann.close()


async def acknowledges_nothing(ann: Phone, pop: FakePop) -> None:
    ann.invite()
    await ann.final("INVITE")
    ann.close()


@pytest.mark.parametrize("end", [hangs_up, is_hung_up, vanishes, acknowledges_nothing])
async def test_an_ended_call_is_freed_without_the_garbage_collector(end: End) -> None:
    pop = FakePop(sip(silent_ms=500))

    async def one() -> None:
        async with phone(pop) as ann:
            await end(ann, pop)

    async with serving(pop):
        await freed(pop, one)
