"""What calls ask of the engines, and when."""

from itertools import takewhile

import pytest

from voicepipe.bench.load import LATER, TRAFFIC, CallTurn, turns
from voicepipe.sizing.traffic import LATER_PHRASE_S


def of(call: int, seconds: float, seed: int = 1) -> list[CallTurn]:
    return list(takewhile(lambda turn: turn.at < seconds, turns(call, seed)))


def test_turns_are_those_of_calls() -> None:
    calls, seconds = 8, 400.0
    all_turns = [turn for call in range(calls) for turn in of(call, seconds)]
    wanted = calls * seconds / TRAFFIC.turn_s
    assert len(all_turns) == pytest.approx(wanted, rel=0.1)
    assert sum(turn.guess_s is not None for turn in all_turns) == pytest.approx(
        (TRAFFIC.silences - 1) * wanted, rel=0.25
    )
    assert sum(turn.spoken_s for turn in all_turns) == pytest.approx(TRAFFIC.speaking * calls * seconds, rel=0.1)
    assert of(3, seconds) == of(3, seconds) != of(3, seconds, seed=2)
    for turn, following in zip(of(3, seconds), of(3, seconds)[1:], strict=False):
        assert turn.at + turn.spoken_s < following.at


def test_calls_begin_at_random_phases_and_one_ends_a_turn_soon() -> None:
    ends = [of(call, 20)[0].at + of(call, 20)[0].spoken_s for call in range(8)]
    assert ends[0] < 3
    assert len({round(end, 2) for end in ends}) == 8
    assert max(ends) < 2 * TRAFFIC.turn_s


def test_a_reply_is_as_long_as_the_plan_reckons() -> None:
    """As nearly as whole phrases allow."""
    spoken_s = TRAFFIC.phrase.speech_s + LATER * LATER_PHRASE_S
    assert spoken_s == pytest.approx(TRAFFIC.spoken * TRAFFIC.turn_s, rel=0.3)
