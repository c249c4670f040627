"""Plans: everything once, by seed, and what may end a call said last."""

from collections import Counter

import pytest

from latency_probes import clips
from latency_probes.plan import OVERLAYS, OWN, TURNS, make_plan, size

SPOKEN = ("finished", "unfinished", "pause_inside", "pause_between")


def test_every_utterance_is_said_once() -> None:
    plan = make_plan(OWN, seed=1)
    said = Counter(turn.id for call in plan.calls for turn in call.turns)
    assert set(said.values()) == {1}
    visits = Counter((call.guest.name, call.voice) for call in plan.calls if call.guest)
    assert set(visits.values()) == {1}
    assert len(said) + len(visits) == sum(map(size, OWN))


def test_a_seed_draws_the_same_plan_and_another_seed_another() -> None:
    assert make_plan(OWN, 1) == make_plan(OWN, 1)
    assert make_plan(OWN, 1) != make_plan(OWN, 2)


def test_a_call_is_one_caller_in_one_room_and_not_too_long() -> None:
    for call in make_plan(SPOKEN, seed=1).calls:
        assert 1 <= len(call.turns) <= TURNS
        assert {(turn.utterance.voice, turn.utterance.noise) for turn in call.turns} == {
            (call.turns[0].utterance.voice, call.noise)
        }


def test_what_may_end_a_call_is_said_last() -> None:
    for call in make_plan(SPOKEN, seed=3).calls:
        assert not any(clips.intents()[turn.utterance.intent].closing for turn in call.turns[:-1])


@pytest.mark.parametrize("calls", [1, 7, 500])
def test_so_many_calls_as_asked_for(calls: int) -> None:
    plan = make_plan(["finished", "overlay"], 1, calls)
    assert len(plan.calls) == calls
    numbers = [call.number for call in (*plan.references, *plan.calls)]
    assert numbers == list(range(1, len(numbers) + 1))


def test_interrupted_questions_have_a_reference_and_enough_overlays() -> None:
    plan = make_plan(["overlay", "barge_in"], 1)
    references = {call.turns[0].utterance.id for call in plan.references}
    assert {call.turns[0].utterance.id for call in plan.calls} == references
    assert len(references) == len(plan.references) <= 24
    assert sum(OVERLAYS.values()) >= 100
