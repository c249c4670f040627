"""Telnyx's calls to those whom a caller is put through to: who hangs up whom."""

from base64 import b64decode

import pytest

from voicepipe.base.errors import TransferFailed
from voicepipe.ingress.telephony.telnyx_legs import Legs

CALLER = "v3:caller"


async def test_each_attempt_has_a_state_of_its_own() -> None:
    legs = Legs("voicepipe pop1")
    states = [legs.begin(CALLER).state for _ in range(3)]
    assert [b64decode(state).decode() for state in states] == [
        f"voicepipe pop1 {number} {CALLER}" for number in (1, 2, 3)
    ]


async def test_somebody_takes_the_call_and_their_hanging_up_ends_the_callers() -> None:
    legs = Legs("m")
    leg = legs.begin(CALLER)
    legs.bridged("v3:other", leg.state)
    legs.bridged(CALLER, "")
    assert leg.taken.done() and leg.taken.exception() is None
    assert legs.hung_up("v3:other", leg.state, "normal_clearing") == CALLER
    assert legs.hung_up("v3:other", leg.state, "") == "", "once"


async def test_the_callers_own_side_may_tell_that_somebody_has_taken_it() -> None:
    legs = Legs("m")
    first, last = legs.begin(CALLER), legs.begin(CALLER)
    legs.bridged(CALLER, "state of the caller's own leg")
    assert last.bridged and not first.bridged
    legs.bridged("v3:somebody else", "")
    assert not first.bridged


@pytest.mark.parametrize(("cause", "said"), [("user_busy", "user_busy"), ("", "no reason given")])
async def test_nobody_takes_it_and_the_caller_is_not_hung_up(cause: str, said: str) -> None:
    legs = Legs("m")
    leg = legs.begin(CALLER)
    assert legs.hung_up("v3:other", leg.state, cause) == ""
    with pytest.raises(TransferFailed, match=rf"nobody took the call \({said}\)"):
        await leg.taken
    assert not legs.keep(CALLER, transferred=True), "that attempt is over"


async def test_an_attempt_that_was_not_even_dialled_is_forgotten() -> None:
    legs = Legs("m")
    leg = legs.begin(CALLER)
    legs.forget(leg)
    assert legs.hung_up("v3:other", leg.state, "busy") == "" and not leg.taken.done()


async def test_when_the_caller_hangs_up_their_attempts_are_over_and_no_others() -> None:
    legs = Legs("m")
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
    legs = Legs("m")
    leg = legs.begin(CALLER)
    if bridged:
        legs.bridged(CALLER, leg.state)
    assert legs.keep(CALLER, transferred=transferred) is kept
    if kept:
        assert legs.hung_up("v3:other", leg.state, "timeout") == CALLER, "nobody is left in silence"
    assert not legs.keep("v3:nobody", transferred=True)
