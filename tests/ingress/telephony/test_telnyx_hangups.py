"""Telnyx's calls that have to be hung up: with another call, after a PoP has died, and until it is done."""

import asyncio
from base64 import b64decode, b64encode
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest

from tests.ingress.fake_predecessor import FakePredecessor
from tests.ingress.telephony.telnyx_provider import APPLICATION, CALL, call, post, streaming, telnyx
from tests.support import virtual_time
from tests.support.ports import free_port
from tests.support.waiting import until
from voicepipe.base.errors import TransferFailed
from voicepipe.config import Config, HttpConfig, PopConfig
from voicepipe.ingress.telephony.telnyx_api import ActiveCall, CommandFailed, TelnyxApi
from voicepipe.ingress.telephony.telnyx_hangups import LONGEST_S, MOST, WITHIN_S, HangUps, PopRun, TransferLegs


class Failing:
    """Telnyx's API, which fails so many times."""

    def __init__(self, times: int) -> None:
        self.left = times
        self.at: list[float] = []

    async def command(self, call_id: str, action: str) -> None:
        assert action == "hangup"
        self.at.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        self.left -= 1
        if self.left >= 0:
            raise CommandFailed("hangup: Telnyx answers HTTP 500")


def attempts(api: Failing) -> list[float]:
    """Seconds of all that are made within an hour, since the first."""

    async def main() -> None:
        made = HangUps(cast(Any, api))
        await made.hang_up(CALL)
        await asyncio.sleep(3600)
        assert not made._again

    virtual_time.run(main())
    return [at - api.at[0] for at in api.at]


def test_it_is_tried_until_it_is_done(caplog: pytest.LogCaptureFixture) -> None:
    assert attempts(Failing(4)) == pytest.approx([0, 1, 3, 7, 15])
    assert caplog.text.count("is not hung up") == 1


def test_it_is_not_tried_for_ever_and_the_log_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    tried = attempts(Failing(10**6))
    pauses = [later - one for one, later in pairwise(tried)]
    assert max(pauses) == pytest.approx(LONGEST_S) and sorted(pauses) == pytest.approx(pauses)
    assert WITHIN_S - LONGEST_S < tried[-1] <= WITHIN_S + 1
    assert caplog.text.count("is not hung up") == 2


def test_only_so_many_calls_are_tried_again() -> None:
    async def main() -> None:
        made = HangUps(cast(Any, Failing(10**6)))
        for n in range(MOST + 10):
            await made.hang_up(f"v3:{n}")
            await made.hang_up(f"v3:{n}")
        assert len(made._again) == MOST
        await made.close()
        await made.hang_up("v3:late")
        assert not made._again

    virtual_time.run(main())


async def test_a_caller_is_not_left_in_silence_by_one_failure() -> None:
    async with telnyx() as (pop, api, address):
        api.status["hangup"] = 500, {}
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
        await until(lambda: api.did("hangup"))
        api.status.clear()
        await until(lambda: len(api.did("hangup")) == 2)


@pytest.mark.parametrize("ends", ["by itself", "with the server"])
async def test_nothing_is_tried_once_the_call_or_the_server_has_ended(
    ends: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with telnyx() as (pop, api, address):
        api.status["hangup"] = 500, {}
        await call(address)
        async with streaming(address, api):
            await until(lambda: pop.calls)
        await until(lambda: "it is tried again" in caplog.text)
        if ends == "by itself":
            await post(address, "call.hangup")
    assert (f"not hung up when the server ended: {CALL}" in caplog.text) == (ends == "with the server")


def config(port: int = 8080, id: str = "local") -> Config:
    return msgspec.structs.replace(Config(), http=HttpConfig(port=port), pop=PopConfig(id=id))


def leg(call_id: str, state: str | None, session: str = "") -> dict[str, Any]:
    """As Telnyx lists it."""
    return {"call_control_id": call_id, "call_session_id": session or call_id, "client_state": state,
            "call_leg_id": "l", "call_duration": 50, "record_type": "call"}  # fmt: skip


def everybodys(port: int) -> list[dict[str, Any]]:
    """Calls of one application, of which "dead" and "alone" were left behind."""
    dead = PopRun(config(port), "before")
    placed = b64encode(f"{dead.mark} 1 v3:c".encode()).decode()
    return [
        leg("dead", dead.state),
        leg("none", None),
        leg("other program", b64encode(b"voicepipe").decode()),
        leg("no base64", "%%"),
        leg("another pop", PopRun(config(port, "fra2"), "x").state),
        leg("another process", PopRun(config(port + 1), "x").state),
        leg("through", dead.state, "session"),
        leg("to them", placed, "session"),
        leg("alone", placed),
    ]


async def test_calls_of_an_earlier_run_end_at_the_start_and_no_others() -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port), application_id=APPLICATION) as (_, api, _):
        await until(lambda: len(api.hung_up) == 2)
        assert api.hung_up == ["dead", "alone"]


async def test_a_pop_whose_port_changes_ends_nothing() -> None:
    """It cannot know whether it is the same one."""
    async with telnyx(active=everybodys(0), application_id=APPLICATION) as (_, api, address):
        assert await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing") == 200
        assert await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing") == 200
        assert not api.hung_up


async def test_without_the_applications_number_its_first_webhook_says_it() -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port)) as (_, api, address):
        assert await post(address, "call.initiated", direction="outgoing") == 200
        assert not api.hung_up
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        await until(lambda: len(api.hung_up) == 2)
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        api.active[:] = [leg("through", PopRun(config(port), "before").state)]
        placed = everybodys(port)[-1]["client_state"]
        await post(address, "call.hangup", connection_id=APPLICATION, call_control_id="x", client_state=placed)
        await until(lambda: len(api.hung_up) == 3)
        assert api.hung_up == ["dead", "alone", "through"], "once whom they were put through to has hung up"


async def test_a_list_that_fails_is_asked_for_again(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port)[:1]) as (_, api, address):
        api.status["active_calls"] = 500, {}
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        await until(lambda: "left behind are not hung up: active_calls: Telnyx answers HTTP 500" in caplog.text)
        api.status.clear()
        await post(address, "call.initiated", connection_id=APPLICATION, direction="outgoing")
        await until(lambda: api.hung_up == ["dead"])


async def test_a_call_that_an_earlier_run_had_answered_is_taken_up() -> None:
    port = free_port()
    dead = PopRun(config(port), "before")
    async with telnyx(port=port, active=[leg(CALL, dead.state)]) as (pop, api, address):
        await post(address, "call.answered", connection_id=APPLICATION, client_state=dead.state)
        async with streaming(address, api):
            await until(lambda: pop.calls)
        await until(lambda: not pop.live)
        assert api.did("streaming_start")[0]["client_state"] != dead.state


async def test_a_call_that_is_taken_up_while_the_start_tidies_up_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    port, listed, go_on, original = free_port(), asyncio.Event(), asyncio.Event(), TelnyxApi.active_calls

    async def slowly(api: TelnyxApi, application: str) -> list[ActiveCall]:
        found = await original(api, application)
        listed.set()
        await go_on.wait()
        return found

    monkeypatch.setattr(TelnyxApi, "active_calls", slowly)
    dead = PopRun(config(port), "before")
    active = [leg(CALL, dead.state), leg("dead", dead.state)]
    async with telnyx(port=port, active=active, application_id=APPLICATION) as (pop, api, address):
        await listed.wait()
        await post(address, "call.answered", client_state=dead.state)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            go_on.set()
            await until(lambda: "dead" in api.hung_up)
            assert api.hung_up == ["dead"] and pop.live == 1


async def test_a_live_calls_state_is_not_dead() -> None:
    port = free_port()
    async with telnyx(port=port) as (_, api, address):
        await call(address, connection_id=APPLICATION)
        state = api.did("answer")[0]["client_state"]
        assert PopRun(config(port), "another").is_dead(state)
        api.active[:] = [leg(CALL, state)]
        await post(address, "call.answered", connection_id="999", client_state=state)
        assert not api.hung_up and len(api.did("streaming_start")) == 1


async def test_calls_of_a_process_that_goes_on_are_its_own_business() -> None:
    port = free_port()
    dead = PopRun(config(port), "before")
    async with telnyx(port=port, active=everybodys(port), application_id=APPLICATION) as (pop, api, address):
        await until(lambda: len(api.hung_up) == 2)
        api.hung_up.clear()
        pop.predecessor = before = FakePredecessor()
        for event in ("call.bridged", "call.hangup", "streaming.failed"):
            assert await post(address, event, connection_id=APPLICATION, client_state=dead.state) == 202
        assert [path for path, _ in before.asked] == ["/telnyx/voice"] * 3
        api.active[:] = [leg(CALL, dead.state)]
        await post(address, "call.answered", connection_id=APPLICATION, client_state=dead.state)
        async with streaming(address, api):
            await until(lambda: pop.calls)
            assert not api.hung_up
        pop.predecessor = None
        await post(address, "call.hangup", connection_id=APPLICATION, client_state=dead.state)
        assert len(before.asked) == 3


async def test_what_a_process_has_left_is_hung_up_once_it_is_gone() -> None:
    port = free_port()
    async with telnyx(port=port, active=everybodys(port), application_id=APPLICATION, replaces=True) as (pop, api, _):
        assert isinstance(pop.predecessor, FakePredecessor)
        await asyncio.sleep(0.2)
        assert not api.hung_up
        pop.predecessor.gone.set()
        await until(lambda: len(api.hung_up) == 2)


CALLER = "v3:caller"


async def test_each_attempt_has_a_state_of_its_own() -> None:
    legs = TransferLegs("voicepipe pop1")
    states = [legs.begin(CALLER).state for _ in range(3)]
    assert [b64decode(state).decode() for state in states] == [
        f"voicepipe pop1 {number} {CALLER}" for number in (1, 2, 3)
    ]


async def test_somebody_takes_the_call_and_their_hanging_up_ends_the_callers() -> None:
    legs = TransferLegs("m")
    leg = legs.begin(CALLER)
    legs.bridged("v3:other", leg.state)
    legs.bridged(CALLER, "")
    assert leg.taken.done() and leg.taken.exception() is None
    assert legs.hung_up("v3:other", leg.state, "normal_clearing") == CALLER
    assert legs.hung_up("v3:other", leg.state, "") == "", "once"


async def test_the_callers_own_side_may_tell_that_somebody_has_taken_it() -> None:
    legs = TransferLegs("m")
    first, last = legs.begin(CALLER), legs.begin(CALLER)
    legs.bridged(CALLER, "state of the caller's own leg")
    assert last.bridged and not first.bridged
    legs.bridged("v3:somebody else", "")
    assert not first.bridged


@pytest.mark.parametrize(("cause", "said"), [("user_busy", "user_busy"), ("", "no reason given")])
async def test_nobody_takes_it_and_the_caller_is_not_hung_up(cause: str, said: str) -> None:
    legs = TransferLegs("m")
    leg = legs.begin(CALLER)
    assert legs.hung_up("v3:other", leg.state, cause) == ""
    with pytest.raises(TransferFailed, match=rf"nobody took the call \({said}\)"):
        await leg.taken
    assert not legs.keep(CALLER, transferred=True), "that attempt is over"


async def test_an_attempt_that_was_not_even_dialled_is_forgotten() -> None:
    legs = TransferLegs("m")
    leg = legs.begin(CALLER)
    legs.forget(leg)
    assert legs.hung_up("v3:other", leg.state, "busy") == "" and not leg.taken.done()


async def test_when_the_caller_hangs_up_their_attempts_are_over_and_no_others() -> None:
    legs = TransferLegs("m")
    leg, other = legs.begin(CALLER), legs.begin("v3:another caller")
    assert legs.hung_up(CALLER, "", "normal_clearing") == ""
    legs.bridged("v3:other", leg.state)
    legs.bridged("v3:other", other.state)
    assert not leg.bridged and other.bridged


@pytest.mark.parametrize(
    ("bridged", "transferred", "kept"),
    [(False, False, False), (False, True, True), (True, False, True), (True, True, True)],
)
async def test_a_call_whose_stream_has_ended_goes_on_if_it_was_taken_or_may_yet_be(
    bridged: bool, transferred: bool, kept: bool
) -> None:
    legs = TransferLegs("m")
    leg = legs.begin(CALLER)
    if bridged:
        legs.bridged(CALLER, leg.state)
    assert legs.keep(CALLER, transferred=transferred) is kept
    if kept:
        assert legs.hung_up("v3:other", leg.state, "timeout") == CALLER, "nobody is left in silence"
    assert not legs.keep("v3:nobody", transferred=True)
