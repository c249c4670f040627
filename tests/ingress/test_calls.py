"""Calls that are found by an id, and adopted from the requests for them."""

import asyncio
from contextlib import ExitStack

import pytest

from tests.ingress.fake_pop import FakePop
from tests.ingress.test_calls_api import PhoneCall, PhoneLine, line
from tests.support.waiting import until
from voicepipe.base.errors import Draining, UnknownCall
from voicepipe.base.round_robin import owner
from voicepipe.call_api import Grant, Tenant
from voicepipe.call_settings import Origin
from voicepipe.ingress.api_keys import Caller
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.rtp.clock import MediaClock

ACME, OTHER = Tenant("acme"), Tenant("other")
ORIGIN = Origin("+4930123456", "+4930999", {"X-Account": "42"})


@pytest.fixture
def pop() -> FakePop:
    return FakePop(keys={"sk-acme": ACME, "sk-other": OTHER})


async def test_an_ek_key_finds_only_the_calls_that_were_placed_with_it(pop: FakePop) -> None:
    """Whoever learns a call's id, such as Twilio's, could otherwise listen in on a stranger's call, or end it."""
    calls, placed = Calls(), PhoneCall(pop, PhoneLine(PcmFormat(), PcmFormat()), ORIGIN).hosted
    mine, another = (Caller(ACME, "front-desk", secret=secret) for secret in ("ek_1", "ek_2"))
    with calls.known(mine, placed, "CA1") as call_id:
        for who in (mine, Caller(ACME)):
            assert calls.find(call_id, who) is calls.find("CA1", who) is placed
        for who in (another, Caller(OTHER)):
            with pytest.raises(UnknownCall):
                calls.find("CA1", who)
    with calls.known(Caller(ACME), placed) as call_id, pytest.raises(UnknownCall):
        calls.find(call_id, mine)


async def test_a_call_that_cannot_even_end_ends_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """All adopted calls hang on one group of tasks."""
    pop, calls = FakePop(), Calls()
    running = asyncio.create_task(calls.run())
    await asyncio.sleep(0)
    broken, well = PhoneCall(pop, line(), ORIGIN), PhoneCall(pop, line(), ORIGIN)
    place = ExitStack()
    place.callback(lambda: 1 / 0)
    calls.adopt(broken, Caller(ACME), place)
    calls.adopt(well, Caller(ACME), ExitStack())
    await asyncio.sleep(0.01)
    broken.hosted.end("agent")
    await until(lambda: "failed" in caplog.text)
    assert not running.done()
    assert calls.find(well.hosted.id, Caller(ACME)) is well.hosted
    running.cancel()
    await asyncio.wait({running})


class Logged(PhoneCall):
    """Notes whose work its task does, as lines of the log tell it."""

    owner = ""

    async def run(self, clock: MediaClock) -> None:
        await asyncio.create_task(self._note())

    async def _note(self) -> None:
        self.owner = owner()


async def test_the_tasks_of_a_held_call_know_whose_they_are() -> None:
    pop, calls = FakePop(), Calls()
    running = asyncio.create_task(calls.run())
    await asyncio.sleep(0)
    held = [Logged(pop, line(), ORIGIN) for _ in range(2)]
    for call in held:
        calls.adopt(call, Caller(ACME), ExitStack())
    await until(lambda: all(call.owner for call in held))
    assert [call.owner for call in held] == [call.hosted.id for call in held] and owner() == ""
    running.cancel()
    await asyncio.wait({running})


async def test_a_call_with_a_token_is_found_by_that_token_alone(pop: FakePop) -> None:
    calls, placed = Calls(), PhoneCall(pop, line(), ORIGIN).hosted

    def by(call: str) -> Caller:
        return Caller(ACME, grant=Grant(id=call, tenant="acme"))

    with calls.known(by("call_1"), placed):
        assert calls.find(placed.id, by("call_1")) is calls.find(placed.id, Caller(ACME)) is placed
        with pytest.raises(UnknownCall):
            calls.find(placed.id, by("call_2"))


async def test_a_providers_id_is_forgotten_with_the_call(pop: FakePop) -> None:
    calls, placed = Calls(), PhoneCall(pop, line(), ORIGIN).hosted
    with calls.known(Caller(ACME), placed, "CA1"):
        [row] = calls.rows(ACME)
        assert (row["id"], row["kind"], row["agent"], row["caller"]) == (placed.id, "sip", "front-desk", "+4930123456")
        assert calls.rows(OTHER) == []
    for call_id in (placed.id, "CA1"):
        with pytest.raises(UnknownCall, match=f"No call has the id '{call_id}'"):
            calls.find(call_id, Caller(ACME))
    assert calls.rows(ACME) == []


async def test_no_call_is_adopted_before_or_after_it_runs(pop: FakePop) -> None:
    calls, placed = Calls(), PhoneCall(pop, line(), ORIGIN)
    with pytest.raises(Draining):
        calls.adopt(placed, Caller(ACME), ExitStack())
    running = asyncio.create_task(calls.run())
    await asyncio.sleep(0)
    over: list[str] = []
    with ExitStack() as place:
        place.callback(lambda: over.append("place"))
        call_id = calls.adopt(placed, Caller(ACME), place)
    assert calls.find(call_id, Caller(ACME)) is placed.hosted and not over, "the place is the call's now"
    await asyncio.sleep(0.01)
    running.cancel()
    await asyncio.wait({running})
    assert over == ["place"] and pop.ends == ["shutdown"]
    with pytest.raises(Draining):
        calls.adopt(PhoneCall(pop, line(), ORIGIN), Caller(ACME), ExitStack())
