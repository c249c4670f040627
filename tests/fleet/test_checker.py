"""The checker finds every promise that is broken in a history, and nothing in one where all are kept."""

import msgspec
import pytest

from tests.fleet.checker import Bounds, Span, most_at_once, refused_beside_room, violations
from tests.fleet.history import Call, Candidate, Happened, Health, History, Placement, Pop, Try, Views

POPS = {
    "fra": Pop("ws://fra/v1/realtime", "eu", "eu", 2, drain_s=60),
    "lhr": Pop("ws://lhr/v1/realtime", "eu", "eu", 2),
    "iad": Pop("ws://iad/v1/realtime", "us", "us", 2),
}
DIRECTORIES = {"dir-eu": "eu", "dir-us": "us"}


def answered(pop: str, at: float, until: float, *, zone: str = "", end: str = "hung up", region: str = "eu",
             directory: str = "dir-eu") -> Call:  # fmt: skip
    """A call that was asked for at `at`, began 0.2 s later, and ended at `until`."""
    placement = Placement(directory, at, at + 0.1, 200, candidates=[Candidate(pop, f"ws://{pop}/v1/realtime")],
                          tries=[Try(pop, at + 0.1, at + 0.2, 101)])  # fmt: skip
    return Call(0, region, zone, [placement], pop, at + 0.2, until, end, 3)


def refused(at: float, retry_after: str = "2") -> Call:
    placement = Placement("dir-eu", at, at + 0.1, 503, "no_pop", retry_after)
    return Call(0, "eu", "", [placement], ended=at + 0.1, end="refused")


def told(*parts: Call | Happened | Health | Views, placed: int | None = None) -> list[str]:
    """What the checker says of a history of these parts."""
    calls = [part for part in parts if isinstance(part, Call)]
    history = History(
        POPS, DIRECTORIES, calls, len(calls) if placed is None else placed,
        [part for part in parts if isinstance(part, Happened)],
        [part for part in parts if isinstance(part, Health)],
        [part for part in parts if isinstance(part, Views)],
    )  # fmt: skip
    return violations(history, Bounds())


def test_nothing_is_found_where_all_promises_are_kept() -> None:
    assert told() == []
    assert told(answered("fra", 0, 5), answered("fra", 1, 5), answered("iad", 1, 5, zone="us"), refused(6)) == []


@pytest.mark.parametrize(("begins", "ends"), [("killed", "started"), ("paused", "resumed")])
def test_no_placement_on_a_pop_that_is_long_dead(begins: str, ends: str) -> None:
    dead, back = Happened(10, begins, "fra"), Happened(30, ends, "fra")
    assert told(dead, back, answered("fra", 15, 40), answered("fra", 31, 40)) == []
    assert told(dead, back, answered("fra", 16, 40)) == ["call 0: dir-eu named fra 6.0 s after it died"]
    assert told(dead, answered("fra", 31, 40)), "nobody started it again"
    assert told(dead, back, answered("lhr", 16, 40)) == []
    assert told(dead, Happened(25.9, ends, "fra"), answered("fra", 25.85, 40)) == [], "it may have been back by then"


def test_a_pop_that_is_killed_while_it_is_paused_stays_dead() -> None:
    parts = Happened(10, "paused", "fra"), Happened(12, "killed", "fra"), Happened(30, "started", "fra")
    assert told(*parts, answered("fra", 16, 40)) == []
    assert told(*parts, answered("fra", 18, 40)) == ["call 0: dir-eu named fra 6.0 s after it died"]


def test_no_placement_on_a_pop_that_drains() -> None:
    drained = Happened(10, "drained", "fra")
    assert told(drained, answered("fra", 11.4, 20)) == []
    assert told(drained, answered("fra", 11.6, 20)) == ["call 0: dir-eu named fra 1.6 s after it was drained"]
    assert told(drained, Happened(15, "started", "fra"), answered("fra", 16, 20)) == []


def test_no_placement_into_a_region_that_is_cut_off() -> None:
    cut, healed = Happened(10, "cut", "eu"), Happened(70, "healed", "eu")
    assert told(cut, healed, answered("fra", 21, 25)) == [], "its own directory may"
    assert told(cut, healed, answered("fra", 19, 20, directory="dir-us")) == []
    assert told(cut, healed, answered("iad", 21, 25, directory="dir-us")) == []
    assert told(cut, healed, answered("fra", 21, 25, directory="dir-us")) == [
        "call 0: dir-us named fra 11.0 s after it was cut off"
    ]


def test_no_call_above_the_slots() -> None:
    calls = [answered("fra", at, 10) for at in (0, 1, 2)]
    assert told(*calls) == ["fra had 3 callers at once on 2 slots"]
    assert told(*calls[:2]) == []
    assert told(Health(1, "fra", "full", 2)) == []
    assert told(Health(1, "fra", "full", 3)) == ["fra says that it has 3 calls on 2 slots"]


def test_no_call_is_lost() -> None:
    lost = answered("fra", 0, 10, end="lost")
    assert told(lost) == ["call 0: lost at fra after 9.8 s"]
    assert told(answered("fra", 0, 10, end="silent")) == ["call 0: silent at fra after 9.8 s"]


def test_a_call_is_lost_with_its_own_pop() -> None:
    lost = answered("fra", 0, 10, end="lost")
    assert told(lost, Happened(9, "killed", "fra")) == []
    assert told(lost, Happened(11, "killed", "fra")), "it was lost before"
    assert told(lost, Happened(9, "killed", "lhr")), "that was another's"
    assert told(lost, Happened(9, "paused", "fra")), "a pause is no death"
    silent = answered("fra", 0, 10, end="silent")
    assert told(silent, Happened(9, "killed", "fra")), "it should have been told"


def test_a_call_may_be_cut_by_a_drain_that_is_past_its_limit() -> None:
    lost = answered("fra", 0, 100, end="lost")
    assert told(lost, Happened(39, "drained", "fra")) == []
    assert told(lost, Happened(41, "drained", "fra")) == ["call 0: lost at fra after 99.8 s"]


def test_a_call_across_a_cut_may_be_lost() -> None:
    cut, healed = Happened(5, "cut", "us"), Happened(65, "healed", "us")
    assert told(cut, healed, answered("iad", 0, 30, end="lost")) == []
    assert told(cut, healed, answered("fra", 0, 30, end="lost")), "on one side of it"
    assert told(cut, healed, answered("iad", 70, 90, end="lost")), "it was healed"


def test_no_call_leaves_its_zone() -> None:
    assert told(answered("fra", 0, 5, zone="eu")) == []
    assert told(answered("iad", 0, 5, zone="eu")) == ["call 0 of zone eu: dir-eu named iad"]
    second = answered("fra", 0, 5, zone="eu")
    second.placements[0].candidates.append(Candidate("iad", "ws://iad/v1/realtime"))
    assert told(second) == ["call 0 of zone eu: dir-eu named iad"], "nor may a later candidate"


def test_nobody_is_sent_to_strangers() -> None:
    for stranger in (Candidate("xyz", "ws://xyz/v1/realtime"), Candidate("fra", "ws://evil/v1/realtime")):
        call = answered("fra", 0, 5)
        call.placements[0].candidates.append(stranger)
        assert told(call) == [f"call 0: dir-eu named a stranger: {stranger.pop}, {stranger.url}"]


def test_every_set_up_ends() -> None:
    assert told(refused(1, "")) == ["call 0 was refused without Retry-After"]
    assert told(refused(1), placed=2) == ["of 2 set-ups 1 never ended"]
    assert told(Call(0, "eu", end="no directory answers")) == ["call 0 ended without an answer: no directory answers"]
    assert told(Call(0, "eu")) == ["call 0 ended without an answer: it says nothing"]


def test_a_call_that_was_bound_to_a_pop_may_die_with_it_before_it_begins() -> None:
    taken = answered("fra", 1, 3, end="turned away 1 times")
    taken.began, taken.pop = 0.0, ""
    bound = msgspec.structs.replace(taken, bound=True)
    broken = ["call 0 ended without an answer: turned away 1 times"]
    assert told(bound, Happened(2, "killed", "fra")) == []
    assert told(taken, Happened(2, "killed", "fra")) == broken, "it had others to go to"
    assert told(bound, Happened(0.5, "killed", "fra")) == told(bound, Happened(2, "killed", "lhr")) == broken


def test_a_directorys_token_is_taken() -> None:
    call = answered("fra", 10, 15)
    call.placements[0].tries.insert(0, Try("lhr", 10.1, 10.2, 401, "invalid_api_key"))
    assert told(call) == ["call 0: lhr refused a token of dir-eu (invalid_api_key)"]
    assert told(call, Happened(6, "started", "lhr")) == [], "the token was for its earlier run"
    assert told(call, Happened(3, "started", "lhr")), "by then it had told of its new run"


def test_views_are_right() -> None:
    real = {"fra": "takes", "lhr": "takes"}
    assert told(Views(1, {"dir-eu": real, "dir-us": dict(real)}, real)) == []
    assert told(Views(1, {"dir-eu": real, "dir-us": {"fra": "takes"}}, real)) == [
        "dir-us takes PoPs for what they are not: lhr gone, not takes"
    ]
    silent = dict.fromkeys(real, "silent")
    assert told(Views(1, {"dir-eu": silent, "dir-us": silent}, real)) == [
        f"{name} takes PoPs for what they are not: fra silent, not takes, lhr silent, not takes"
        for name in ("dir-eu", "dir-us")
    ], "that they agree is not enough"


def test_most_at_once() -> None:
    assert most_at_once([]) == 0
    assert most_at_once([Span(0, 1), Span(1, 2), Span(1.5, 3)]) == 2


def test_a_pop_that_refuses_while_another_has_room_is_counted() -> None:
    bounced = answered("iad", 5, 20)
    bounced.placements[0].tries.insert(0, Try("fra", 5.1, 5.15, 503, "pop_full"))
    calls = [answered("fra", 0, 10), answered("fra", 1, 10), bounced]
    assert refused_beside_room(History(POPS, calls=calls)) == 1
    full = [answered(pop, at, 20) for pop in ("lhr", "iad") for at in (0, 1)]
    assert refused_beside_room(History(POPS, calls=[*full, *calls])) == 0


def test_a_history_can_be_written_and_read() -> None:
    history = History(POPS, DIRECTORIES, [answered("fra", 0, 5)], 1, [Happened(1, "killed", "fra")])
    assert msgspec.json.decode(msgspec.json.encode(history), type=History) == history
