"""Which PoP a call goes to."""

from collections import Counter
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.directory.reports import FRANKFURT, LONDON, TOKYO, VIRGINIA, seen
from voicepipe.base.errors import NoPop
from voicepipe.base.places import Place
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.router import BAND_MS, CANDIDATES, FARTHEST_MS, PLAYOUT_MS, RankedPops, WantedCall, choose

FRA, LHR = seen("fra", place=FRANKFURT), seen("lhr", place=LONDON, zone="uk")
IAD, NRT = seen("iad", place=VIRGINIA, zone="us"), seen("nrt", place=TOKYO, zone="jp")
ALL = [FRA, LHR, IAD, NRT]


def chosen(pops: list[SeenPop], seed: int = 0, **asked: Any) -> RankedPops:
    return choose(pops, WantedCall(kind="websocket", **{"place": FRANKFURT, **asked}), Random(seed))


def order(choice: RankedPops) -> list[str]:
    return [candidate.seen.pop for candidate in choice.candidates]


def test_the_nearest_takes_the_call_and_the_next_ones_are_alternates() -> None:
    choice = chosen(ALL)
    assert order(choice) == ["fra", "lhr", "iad"]
    assert not choice.degraded


def test_a_round_trip_that_was_measured_counts_before_geography() -> None:
    assert order(chosen(ALL, rtt_ms={"lhr": 9.0}))[0] == "lhr"


def test_without_a_place_what_was_measured_decides() -> None:
    assert order(chosen(ALL, place=None, rtt_ms={"nrt": 80.0}))[0] == "nrt"


def test_a_pop_that_would_answer_late_gives_way_to_one_that_is_in_time() -> None:
    assert order(chosen([seen("fra", predicted_ms=310.0), LHR])) == ["lhr", "fra"]
    assert order(chosen([seen("fra", status="late", predicted_ms=300.0), LHR])) == ["lhr", "fra"]


def test_calls_on_their_way_count_as_load_and_make_answers_later() -> None:
    busy = seen("fra", slots=10, calls=3, pending=6, predicted_ms=290.0)
    candidate = chosen([busy]).candidates[0]
    assert candidate.load == 1.0
    assert candidate.predicted_ms > 300
    assert order(chosen([busy, LHR]))[0] == "lhr"


def test_old_reports_are_trusted_less() -> None:
    assert order(chosen([seen("fra", predicted_ms=295.0, age_s=4.0), LHR]))[0] == "lhr"


def test_if_none_is_in_time_the_nearest_takes_the_call_and_the_answer_says_so() -> None:
    choice = chosen([IAD, NRT])
    assert order(choice) == ["iad", "nrt"]
    assert choice.degraded


def test_a_much_quicker_one_is_better_than_the_nearest_where_none_is_in_time() -> None:
    slow = seen("fra", predicted_ms=900.0)
    assert order(chosen([slow, IAD])) == ["iad", "fra"]


def test_who_probably_refuses_comes_last() -> None:
    late = seen("fra", status="late")
    silent = seen("lhr", place=LONDON, silent=True)
    assert order(chosen([late, silent, NRT])) == ["nrt", "fra", "lhr"]


@pytest.mark.parametrize("status", ["full", "draining", "engine_down", "starting"])
def test_a_pop_that_takes_no_calls_is_no_candidate(status: str) -> None:
    with pytest.raises(NoPop, match="room"):
        chosen([seen("fra", status=status)])


def test_a_pop_whose_places_are_promised_is_no_candidate() -> None:
    with pytest.raises(NoPop, match="room"):
        chosen([seen("fra", slots=4, calls=1, pending=3)])


def test_who_was_full_and_fell_silent_is_asked_rather_than_nobody() -> None:
    full = seen("fra", status="full", calls=36, silent=True)
    busy = seen("iad", place=VIRGINIA, slots=4, pending=9, silent=True)
    assert order(chosen([full, busy])) == ["fra", "iad"]
    assert order(chosen([full, busy, seen("nrt", place=TOKYO, silent=True)])) == ["nrt"]
    with pytest.raises(NoPop, match="room"):
        chosen([seen("fra", status="draining", silent=True), seen("iad", slots=4, pending=4)])


def test_a_call_that_may_not_leave_its_zone_is_refused_rather_than_placed_elsewhere() -> None:
    assert order(chosen(ALL, zone="us")) == ["iad"]
    with pytest.raises(NoPop, match="'eu'"):
        chosen([LHR, IAD, NRT], zone="eu")


@pytest.mark.parametrize(("asked", "said"), [
    ({"agents": ("clinic",)}, "agent 'clinic'"), ({"language": "de"}, "speaks 'de'"), ({"model": "llama"}, "'llama'"),
])  # fmt: skip
def test_who_cannot_do_what_is_asked_gets_no_call(asked: dict[str, Any], said: str) -> None:
    able = seen("nrt", place=TOKYO, agents={"clinic": "de"}, model="llama")
    assert order(chosen([*ALL[:3], able], **asked)) == ["nrt"]
    with pytest.raises(NoPop, match=said):
        chosen(ALL, **asked)


def test_who_cannot_have_all_agents_answer_that_a_hook_may_name_comes_behind_who_can() -> None:
    lacks = ("front-desk", "")
    short, near = seen("fra", incomplete=lacks), seen("lhr", place=LONDON, incomplete=lacks)
    assert order(chosen([short, near, NRT])) == ["nrt", "fra", "lhr"], "however near it is"
    assert order(chosen([short, near, NRT], agents=("front-desk",)))[0] == "nrt"
    assert order(chosen([short, near, NRT], region="fra")) == ["nrt", "fra", "lhr"], "or wished for"
    assert order(chosen([short, near])) == ["fra", "lhr"], "better one that lacks an agent than none"
    late = seen("nrt", place=TOKYO, status="late")
    assert order(chosen([short, late]))[0] == "fra", "better one that lacks an agent than one that refuses"
    other = seen("fra", agents={"front-desk": "en", "clinic": "de"}, incomplete=("clinic",))
    assert order(chosen([other, LHR])) == order(chosen([other, LHR], agents=("front-desk",))) == ["fra", "lhr"]


def test_a_kind_of_call_needs_an_address_for_it() -> None:
    with pytest.raises(NoPop, match="says where telephones reach it: set fleet.sip"):
        choose(ALL, WantedCall(kind="sip"), Random(0))


def test_those_that_were_tried_are_left_out() -> None:
    assert order(chosen(ALL, tried=frozenset({"fra"})))[0] == "lhr"
    with pytest.raises(NoPop, match="tried"):
        chosen([FRA], tried=frozenset({"fra"}))


def test_a_pop_that_fills_shares_with_those_nearly_as_near() -> None:
    filling = [seen("fra1", calls=30), seen("fra2", calls=12), IAD]
    counts = Counter(order(chosen(filling, seed))[0] for seed in range(200))
    assert counts["fra2"] > 100
    assert counts["fra1"] > 0
    assert counts["iad"] == 0
    few = Counter(order(chosen([seen("fra1", calls=12), seen("fra2")], seed))[0] for seed in range(50))
    assert few == {"fra1": 50}


def test_the_last_quarter_of_its_places_is_shared() -> None:
    """Of four places the last one."""
    for calls, shared in ((2, False), (3, True)):
        small = [seen("fra1", slots=4, calls=calls), seen("fra2", slots=4)]
        assert any(order(chosen(small, seed))[0] == "fra2" for seed in range(50)) == shared


def test_pops_share_a_crowd_also_where_none_is_in_time() -> None:
    far = [seen("nrt1", place=TOKYO, calls=30), seen("nrt2", place=TOKYO, calls=12)]
    counts = Counter(order(chosen(far, seed))[0] for seed in range(200))
    assert counts["nrt2"] > 100


def test_pops_of_which_nobody_knows_how_near_they_are_are_in_time_and_share() -> None:
    unknown = [seen("a", place=None, calls=7, slots=8), seen("b", place=None, calls=2, slots=8)]
    choice = chosen(unknown)
    assert not choice.degraded
    assert Counter(order(chosen(unknown, seed))[0] for seed in range(100))["b"] > 50
    assert order(chosen([*unknown, IAD], place=FRANKFURT))[0] != "iad", "which is known to be too far"
    assert order(chosen([*unknown, LHR]))[0] == "lhr"


def test_a_zone_whose_pops_fell_silent_is_gone_while_others_are_heard() -> None:
    silent = seen("fra", silent=True)
    with pytest.raises(NoPop, match="'eu'"):
        chosen([silent, IAD], zone="eu")
    assert order(chosen([silent, seen("iad", zone="us", silent=True)], zone="eu")) == ["fra"], "all are: cut off"


def test_the_agent_that_is_asked_for_speaks_the_language() -> None:
    both = seen("fra", agents={"front-desk": "en", "clinic": "de"})
    assert chosen([both], agents=("clinic",), language="de")
    with pytest.raises(NoPop, match="speaks 'de'"):
        chosen([both], agents=("front-desk",), language="de")


def test_weight_says_how_much_of_a_crowd_one_has() -> None:
    pops = [seen("one", calls=27, weight=0.1), seen("two", calls=27), seen("three", calls=28)]
    counts = Counter(order(chosen(pops, seed))[0] for seed in range(300))
    assert counts["one"] < counts["two"] / 2


def pops(names: tuple[str, ...] = ("a", "b", "c", "d", "e", "f")) -> st.SearchStrategy[list[SeenPop]]:
    return st.tuples(*(st.builds(seen, st.just(name), **FIELDS) for name in names)).map(list)


FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "age_s": st.floats(0, 5),
    "pending": st.integers(0, 4),
    "silent": st.booleans(),
    "slots": st.integers(1, 8),
    "calls": st.integers(0, 8),
    "predicted_ms": st.floats(160, 500),
    "status": st.sampled_from(["ok", "ok", "ok", "late", "full", "draining"]),
    "zone": st.sampled_from(["eu", "us"]),
    "place": st.builds(Place, st.floats(-90, 90), st.floats(-180, 180)),
    "weight": st.floats(0.1, 3),
}


@given(pops(), st.sampled_from(["", "eu"]), st.integers(0, 99))
def test_whatever_is_known_the_choice_keeps_every_promise(known: list[SeenPop], zone: str, seed: int) -> None:
    def has_room(one: SeenPop) -> bool:
        free = one.condition.calls + one.pending < one.condition.slots
        return free and one.condition.status in ("ok", "late") and zone in ("", one.condition.zone)

    def may_have_room(one: SeenPop) -> bool:
        return one.silent and one.condition.status != "draining" and zone in ("", one.condition.zone)

    able = has_room if any(map(has_room, known)) else may_have_room
    in_zone = [one for one in known if zone in ("", one.condition.zone)]
    zone_gone = all(one.silent for one in in_zone) and not all(one.silent for one in known)
    try:
        choice = chosen(known, seed, zone=zone)
    except NoPop:
        assert zone_gone or not any(map(able, known))
        return
    assert not zone_gone
    first, *others = choice.candidates
    assert len({candidate.seen.pop for candidate in choice.candidates}) == len(choice.candidates) <= CANDIDATES
    assert all(able(candidate.seen) for candidate in choice.candidates)
    assert len(choice.candidates) == min(CANDIDATES, sum(map(able, known)))
    assert choice.degraded is not first.in_time
    every = [choose([one], WantedCall(kind="websocket", place=FRANKFURT), Random(0)).candidates[0] for one in known
             if able(one)]  # fmt: skip
    in_time = [candidate.near_ms for candidate in every if candidate.in_time]
    assert choice.degraded is not bool(in_time)
    if in_time:
        assert first.near_ms <= min(in_time) + BAND_MS
        assert first.near_ms <= FARTHEST_MS
    assert all(candidate.near_ms >= PLAYOUT_MS["websocket"] for candidate in (first, *others))
