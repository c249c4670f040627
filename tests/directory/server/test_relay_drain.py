"""A directory that is stopped: calls that it relays may end."""

import asyncio

import pytest

from voicepipe.base.errors import Draining
from voicepipe.directory.server.relay_drain import RelayDrain

pytestmark = pytest.mark.virtual_time


async def took(relay_drain: RelayDrain, drain_s: float) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await relay_drain.over(drain_s)
    return round(loop.time() - began, 3)


async def relay(relay_drain: RelayDrain, seconds: float) -> None:
    with relay_drain.call():
        await asyncio.sleep(seconds)


async def test_it_ends_with_the_last_call_that_it_relays() -> None:
    relay_drain = RelayDrain()
    calls = [asyncio.create_task(relay(relay_drain, seconds)) for seconds in (1, 5, 3)]
    await asyncio.sleep(0)
    assert relay_drain.calls == 3
    assert await took(relay_drain, 60) == 5
    assert relay_drain.calls == 0 and all(call.done() for call in calls)


async def test_no_new_call_is_relayed_meanwhile() -> None:
    relay_drain = RelayDrain()
    going_on = asyncio.create_task(relay(relay_drain, 5))
    ending = asyncio.create_task(relay_drain.over(60))
    await asyncio.sleep(1)
    with pytest.raises(Draining, match="relays no new calls"):
        await relay(relay_drain, 1)
    assert relay_drain.calls == 1 and not going_on.done()
    await ending


async def test_calls_that_go_on_for_too_long_are_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    relay_drain = RelayDrain()
    call = asyncio.create_task(relay(relay_drain, 600))
    await asyncio.sleep(0)
    assert await took(relay_drain, 60) == 60
    assert "calls still relayed after 60 s: 1; ending them" in caplog.text
    call.cancel()


async def test_without_calls_it_ends_at_once() -> None:
    relay_drain = RelayDrain()
    await relay(relay_drain, 1)
    assert await took(relay_drain, 60) == 0


async def test_a_call_that_fails_has_ended() -> None:
    relay_drain = RelayDrain()
    with pytest.raises(ZeroDivisionError), relay_drain.call():
        raise ZeroDivisionError
    assert await took(relay_drain, 60) == 0
