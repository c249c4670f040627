"""A directory that is stopped: calls that it relays may end."""

import asyncio

import pytest

from voicepipe.base.errors import Draining
from voicepipe.directory.server.leaving import Leaving

pytestmark = pytest.mark.virtual_time


async def took(leaving: Leaving, drain_s: float) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await leaving.over(drain_s)
    return round(loop.time() - began, 3)


async def relay(leaving: Leaving, seconds: float) -> None:
    with leaving.call():
        await asyncio.sleep(seconds)


async def test_it_ends_with_the_last_call_that_it_relays() -> None:
    leaving = Leaving()
    calls = [asyncio.create_task(relay(leaving, seconds)) for seconds in (1, 5, 3)]
    await asyncio.sleep(0)
    assert leaving.calls == 3
    assert await took(leaving, 60) == 5
    assert leaving.calls == 0 and all(call.done() for call in calls)


async def test_no_new_call_is_relayed_meanwhile() -> None:
    leaving = Leaving()
    going_on = asyncio.create_task(relay(leaving, 5))
    ending = asyncio.create_task(leaving.over(60))
    await asyncio.sleep(1)
    with pytest.raises(Draining, match="relays no new calls"):
        await relay(leaving, 1)
    assert leaving.calls == 1 and not going_on.done()
    await ending


async def test_calls_that_go_on_for_too_long_are_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    leaving = Leaving()
    call = asyncio.create_task(relay(leaving, 600))
    await asyncio.sleep(0)
    assert await took(leaving, 60) == 60
    assert "calls still relayed after 60 s: 1; ending them" in caplog.text
    call.cancel()


async def test_without_calls_it_ends_at_once() -> None:
    leaving = Leaving()
    await relay(leaving, 1)
    assert await took(leaving, 60) == 0


async def test_a_call_that_fails_has_ended() -> None:
    leaving = Leaving()
    with pytest.raises(ZeroDivisionError), leaving.call():
        raise ZeroDivisionError
    assert await took(leaving, 60) == 0
