"""The map's modules that need no browser, run by Node.js."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.node import WEB, needs_node, run

pytestmark = needs_node

POP = {"region": "r", "calls": 1, "coming": 0, "slots": 4, "predicted_ms": 160.4, "budget_ms": 300.0, "age_s": 0.3,
       "recent": None, "price_per_hour": 0}  # fmt: skip
SLOW = {"turns": 40, "timed": 40, "judged": 38, "p50_ms": 190.2, "p95_ms": 412.4, "late": 4, "cut_ins": 1, "missed": 0,
        "lag_ms": 3.1}  # fmt: skip
FRA = {**POP, "pop": "fra1", "status": "ok", "place": {"latitude": 50.1, "longitude": 8.7}}
NRT = {**POP, "pop": "nrt1", "status": "full", "calls": 4, "place": {"latitude": 35.7, "longitude": 139.7}}


def shown(beside: Path, script: str, **given: Any) -> Any:
    """What `script` is, where each of `given` has its name."""
    named = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    return run(
        beside,
        f"""
        import * as editions from "./editions.js";
        import * as fleet from "./fleet.js";
        import * as columns from "./fleet-columns.js";
        import * as figures from "./fleet-figures.js";
        import * as geography from "./geography.js";
        import {{ labelled }} from "./labels.js";
        import {{ landGrid }} from "./world.js";
        {named}
        console.log(JSON.stringify({script}));
        """,
    )


# --- PoPs and calls in words


def test_a_pop_that_is_not_heard_of_any_more_stays_on_the_map(beside: Path) -> None:
    script = "fleet.fleetOf(fleet.fleetOf([], {pops: [fra, nrt], lost: []}), {pops: [fra], lost: []})"
    rows = shown(beside, script, fra=FRA, nrt=NRT)
    assert [(row["pop"], row["status"], row["slots"]) for row in rows] == [("fra1", "ok", 4), ("nrt1", "gone", 0)]
    assert rows[1]["place"] == NRT["place"]


def test_a_pop_that_fell_silent_is_shown_without_the_figures_that_it_told_last(beside: Path) -> None:
    lost = {**NRT, "status": "silent", "age_s": 40.0, "recent": SLOW, "price_per_hour": 2}
    rows = shown(beside, "fleet.fleetOf([], {pops: [fra], lost: [lost]})", fra=FRA, lost=lost)
    assert [(row["pop"], row["status"], row["age_s"]) for row in rows] == [("fra1", "ok", 0.3), ("nrt1", "lost", 40)]
    assert (rows[1]["recent"], rows[1]["slots"], rows[1]["price_per_hour"]) == (None, 0, 0)
    assert rows[1]["place"] == NRT["place"] and rows[1]["region"] == "r"
    back = shown(beside, "fleet.fleetOf(rows, {pops: [fra, nrt], lost: []})", rows=rows, fra=FRA, nrt=NRT)
    assert (back[1]["status"], back[1]["slots"]) == ("full", 4)


def test_the_demo_knows_that_a_pop_was_stopped_before_the_directory_does(beside: Path) -> None:
    demo: list[dict[str, Any]] = [
        {"pop": "fra1", "city": "Frankfurt", "place": FRA["place"], "state": "stopped"},
        {"pop": "syd1", "city": "Sydney", "place": {"latitude": -34, "longitude": 151}, "state": "starting"},
    ]
    rows = shown(beside, "fleet.fleetOf([], {pops: [fra, nrt], lost: []}, demo)", fra=FRA, nrt=NRT, demo=demo)
    assert [(row["pop"], row["status"]) for row in rows] == [
        ("fra1", "stopped"),
        ("nrt1", "full"),
        ("syd1", "starting"),
    ]
    assert rows[0]["city"] == "Frankfurt" and rows[0]["age_s"] == 0.3
    back = [{**demo[0], "state": "up"}]
    rows = shown(beside, "fleet.fleetOf(before, {pops: [fra], lost: []}, demo)", before=rows, fra=FRA, demo=back)
    assert rows[0]["status"] == "ok"


def test_every_status_has_words_and_statuses_of_one_colour_have_shapes(beside: Path) -> None:
    names = [
        "ok",
        "late",
        "full",
        "draining",
        "stopped",
        "gone",
        "lost",
        "engine_down",
        "silent",
        "starting",
        "new one",
    ]
    rows = [{"status": name} for name in names] + [{"status": "ok", "share": share} for share in (0, 0.1)]
    said = shown(beside, "rows.map(fleet.statusOf)", rows=rows)
    assert len({one["text"] for one in said}) == len(rows)
    by_tone: dict[str, set[str]] = {}
    for one in said:
        by_tone.setdefault(one["tone"], set()).add(one["shape"])
    shapes = [shape for found in by_tone.values() for shape in found]
    assert len(shapes) == len(set(shapes)), "no shape has two colours"


@pytest.mark.parametrize(
    ("changes", "load", "share"),
    [({}, "1 of 4", 0.25), ({"coming": 2}, "1 of 4 + 2 coming", 0.75), ({"slots": 0}, "–", 0)],
)
def test_load_in_words_and_as_a_share(beside: Path, changes: dict[str, int], load: str, share: float) -> None:
    row = {**FRA, **changes}
    assert shown(beside, "[fleet.loadOf(row), fleet.shareOf(row), fleet.latencyOf(row)]", row=row) == [
        load, share, "160 of 300 ms",
    ]  # fmt: skip


def test_a_pop_that_takes_calls_and_answers_too_late_is_none_that_is_well(beside: Path) -> None:
    slow = {**FRA, "recent": SLOW}
    few, quick = {**FRA, "recent": {**SLOW, "timed": 19}}, {**FRA, "recent": {**SLOW, "p95_ms": 299.0}}
    said = shown(beside, "rows.map((row) => fleet.statusOf(row).text)", rows=[slow, few, quick, {**slow, **NRT}])
    assert said == ["over budget", "takes calls", "takes calls", "full"]
    found = shown(beside, "fleet.statesOf(rows).map(({text}) => text)", rows=[quick, NRT, slow, few])
    assert found == ["over budget", "full", "takes calls"], "the worst first, each once"


def test_a_pop_whose_turns_fail_says_so_and_that_it_recovers(beside: Path) -> None:
    states = [("ok", 1), ("ok", 0), ("late", 0), ("ok", 0.2), ("engine_down", 0)]
    rows = [{**FRA, "status": status, "share": share} for status, share in states]
    said = shown(beside, "rows.map((row) => fleet.statusOf(row).text)", rows=rows)
    assert said == ["takes calls", "turns fail", "turns fail", "recovering", "engine down"]


def test_figures_of_a_pop_where_there_are_any(beside: Path) -> None:
    def said(**changes: Any) -> Any:
        script = "[figures.p50Of(row), figures.p95Of(row), figures.rateOf(row, 'late'), figures.rateOf(row, 'missed')]"
        return shown(beside, script, row={**FRA, **changes})

    assert said(recent=SLOW) == [190.2, 412.4, 4 / 38, 0]
    assert said() == [None, None, None, None], "its version does not tell"
    idle = dict.fromkeys(SLOW, 0) | {"p50_ms": None, "p95_ms": None}
    assert said(recent=idle) == [None, None, None, None]


@pytest.mark.parametrize(
    ("changes", "cost"),
    [
        ({}, None),
        ({"price_per_hour": 2}, {"price": 2, "idle": 1.5}),
        ({"price_per_hour": 2, "calls": 5}, {"price": 2, "idle": 0}),
        ({"price_per_hour": 2, "slots": 0}, None),
    ],
)
def test_what_of_a_hosts_price_is_idle(beside: Path, changes: dict[str, int], cost: Any) -> None:
    assert shown(beside, "figures.costOf(row)", row={**FRA, **changes}) == cost


def test_the_totals_of_the_fleet_in_words(beside: Path) -> None:
    lost = {**FRA, "pop": "syd1", "status": "lost", "calls": 0, "slots": 0}
    rows = [{**FRA, "recent": SLOW, "price_per_hour": 2, "coming": 1}, {**NRT, "recent": {**SLOW, "p95_ms": 290}}, lost]
    tiles = shown(beside, "figures.fleetTilesOf(rows)", rows=rows)
    assert (tiles["calls"], tiles["calls-note"]) == ("5", "of 8 slots")
    assert (tiles["free"], tiles["free-note"]) == ("2", "in 1 PoP"), "one that is full has no place"
    assert (tiles["worst"], tiles["worst-note"]) == ("412 ms", "fra1, of 300 ms")
    assert (tiles["late"], tiles["late-note"], tiles["cut-ins"]) == ("11 %", "of 76 turns", "2.5 %")
    assert (tiles["silent"], tiles["silent-note"]) == ("1", "syd1")
    assert (tiles["cost"], tiles["cost-note"]) == ("2.00", "1.50 of it idle")
    none = shown(beside, "figures.fleetTilesOf([])")
    assert (none["worst"], none["late"], none["silent-note"], none["cost"]) == ("–", "–", "all report", "")
    many = shown(beside, "figures.fleetTilesOf([lost, lost, lost, lost, lost])['silent-note']", lost=lost)
    assert many == "syd1, syd1, syd1 and 2 more"


def test_the_table_sorts_and_what_has_no_figure_comes_last(beside: Path) -> None:
    rows = [{**FRA, "pop": name, "recent": p50 and {**SLOW, "p50_ms": p50}} for name, p50 in
            (("a", 200), ("b", None), ("c", 300), ("d", 200))]  # fmt: skip

    def by(column: str, down: bool) -> str:
        script = "columns.sorted(rows, {by, down}).map(({pop}) => pop).join('')"
        return str(shown(beside, script, rows=rows, by=column, down=down))

    assert (by("p50", True), by("p50", False), by("pop", True)) == ("cadb", "adcb", "dcba")
    pressed = "[columns.pressed({by: 'pop', down: false}, 'pop'), columns.pressed({by: 'pop', down: true}, 'p95')]"
    assert shown(beside, pressed) == [{"by": "pop", "down": True}, {"by": "p95", "down": True}]


def test_the_fleet_in_a_few_words(beside: Path) -> None:
    script = "[[], [fra], [fra, nrt, {...nrt, status: 'late'}]].map(fleet.summaryOf)"
    said = ["No PoP takes calls", "1 PoP takes calls", "2 PoPs take calls"]
    assert shown(beside, script, fra=FRA, nrt=NRT) == said


PLACED = {"call": "call_1", "at": 1.0, "tenant": "acme", "kind": "webrtc", "pop": "nrt1", "near_ms": 74.6,
          "turn_ms": 230.2, "others": ["fra1", "iad1"], "place": {"latitude": 37.6, "longitude": 127.0}}  # fmt: skip


@pytest.mark.parametrize(
    ("why", "words"),
    [
        ("nearest", "the nearest in time"),
        ("shares", "the nearest is filling, this one is nearly as near"),
        ("limited", "it gets a share of the calls, and this is one of them"),
        ("least late", "no PoP would answer in time: this one comes closest"),
    ],
)
def test_a_placement_says_why(beside: Path, why: str, words: str) -> None:
    said = shown(beside, "fleet.placementOf(placed)", placed={**PLACED, "why": why})
    assert said["why"] == words
    assert (said["from"], said["near"], said["turn"], said["others"]) == ("Seoul", "75 ms", "230 ms", "fra1, iad1")


def test_a_placement_of_a_caller_from_nowhere(beside: Path) -> None:
    said = shown(beside, "fleet.placementOf(placed)", placed={**PLACED, "why": "nearest", "place": None, "others": []})
    assert (said["from"], said["others"]) == ("not known", "none")


ANSWER = {"degraded": False, "candidates": [{"pop": "nrt1", "turn_ms_est": 230.4}, {"pop": "fra1", "turn_ms_est": 401}]}


def test_what_a_caller_is_told_and_what_becomes_of_them(beside: Path) -> None:
    def said(status: str, **changes: Any) -> Any:
        rows = [FRA, {**NRT, "status": status}]
        return shown(beside, "fleet.answerOf(answer, rows)", answer={**ANSWER, **changes}, rows=rows)

    alive = said("ok")
    assert alive["pop"] == "nrt1" and "names nrt1 (230 ms), then fra1 (401 ms)." in alive["sentence"]
    dead = said("stopped")
    assert dead["pop"] == "fra1" and dead["sentence"].endswith("and goes on to fra1.")
    nobody = said("stopped", candidates=ANSWER["candidates"][:1])  # type: ignore[index]
    assert nobody["pop"] == "" and nobody["sentence"].endswith("the caller finds nobody there.")
    assert "None of them is likely to answer in time." in said("ok", degraded=True)["sentence"]


# --- places


@pytest.mark.parametrize(
    ("latitude", "longitude", "name"),
    [
        (48.9, 2.4, "Paris"),
        (49.4, 1.1, "near Paris"),
        (-20.0, -140.5, "20.0 S, 140.5 W"),
        (30.0, 179.9, "30.0 N, 179.9 E"),
    ],
)
def test_places_have_names(beside: Path, latitude: float, longitude: float, name: str) -> None:
    place = {"latitude": latitude, "longitude": longitude}
    assert shown(beside, "geography.placeName(place)", place=place) == name


def test_a_point_of_the_map_is_a_place_and_back(beside: Path) -> None:
    found = shown(beside, "[{x: 8.72, y: -50.06}, {x: 0, y: 0}, {x: 999, y: -999}].map(geography.placeAt)")
    assert found[0] == {"latitude": 50.1, "longitude": 8.7}
    assert found[1] == {"latitude": 0, "longitude": 0}
    assert found[2] == {"latitude": 90, "longitude": 180}
    assert shown(beside, "geography.pointOf({latitude: 50.1, longitude: 8.7})") == {"x": 8.7, "y": -50.1}
    assert shown(beside, "geography.pointOf({latitude: -90, longitude: 0}).y") == 57, "the map ends before the pole"


@pytest.mark.parametrize("read", [None, {}, {"latitude": 91, "longitude": 0}, {"latitude": "x", "longitude": 1}, 7])
def test_what_is_no_place(beside: Path, read: Any) -> None:
    assert shown(beside, "geography.placeOf(read)", read=read) is None


def test_a_place_out_of_a_form(beside: Path) -> None:
    read = {"latitude": "-33.9", "longitude": "151.2"}
    assert shown(beside, "geography.placeOf(read)", read=read) == {"latitude": -33.9, "longitude": 151.2}


def test_a_call_across_the_pacific_does_not_cross_the_atlantic(beside: Path) -> None:
    angeles, tokyo, paris = ({"latitude": 35, "longitude": at} for at in (-118, 140, 2))
    near, far = shown(beside, "[geography.arcBetween(a, p), geography.arcBetween(a, t)]", a=angeles, p=paris, t=tokyo)
    assert near.startswith("M-118 -35Q") and near.endswith(" 2 -35") and near.count("M") == 1
    assert far.startswith("M-118 -35Q") and " -220 -35 M242 -35Q" in far and far.endswith(" 140 -35")


def test_marks_do_not_cover_each_other(beside: Path) -> None:
    points = [{"x": 8.7, "y": -50}, {"x": 0, "y": -51}, {"x": 0, "y": -51}, {"x": 140, "y": -36}]
    moved = shown(beside, "geography.spread(points, 12)", points=points)
    for at, one in enumerate(moved):
        for other in moved[:at]:
            assert ((one["x"] - other["x"]) ** 2 + (one["y"] - other["y"]) ** 2) ** 0.5 > 11
    assert moved[3] == points[3]


def label(x: float, y: float, weight: int = 0, always: bool = False) -> dict[str, Any]:
    sizes = [{"wide": 30, "tall": 10}, {"wide": 60, "tall": 20}]
    return {"x": x, "y": y, "r": 8, "sizes": sizes, "weight": weight, "always": always}


def labels(beside: Path, *marks: dict[str, Any]) -> list[tuple[int, str] | None]:
    """Size and anchor of each."""
    script = "labelled(marks, {west: -180, east: 180, north: -80, south: 57})"
    return [one and (one["size"], one["anchor"]) for one in shown(beside, script, marks=marks)]


def test_labels_stand_where_there_is_room(beside: Path) -> None:
    assert labels(beside, label(0, 0), label(170, 0)) == [(1, "start"), (1, "end")], "the map ends there"
    assert labels(beside, label(0, 0), label(45, 0)) == [(1, "end"), (1, "start")]
    crowd = [label(17 * (at % 5), 17 * (at // 5)) for at in range(25)]
    found = labels(beside, *crowd)
    assert found[12] is None and found[0] is not None, "in the middle of a crowd there is no room"
    crowd[12]["always"] = True
    assert labels(beside, *crowd)[12] == (1, "start")


def test_labels_that_matter_come_before_others(beside: Path) -> None:
    first, second = label(-160, 0), label(-160, 17)  # The map ends in the west.
    assert labels(beside, first, second) == [(1, "start"), (0, "start")]
    second["weight"] = 1
    assert labels(beside, first, second) == [(0, "start"), (1, "start")]


LAND = ((50, 10), (39, -99), (-15, -55), (15, 20), (-25, 135), (60, 100), (23, 79), (36, 138), (53, -1), (-3, 114))
WATER = ((40, -40), (0, 80), (30, -150), (35, 18), (43, 35), (42, 51), (60, -85))


def test_land_is_land_and_water_is_water(beside: Path) -> None:
    script = """(() => {
        const dots = landGrid({ north: 81, south: -57, step: 2 });
        const isNear = (a, b) => Math.abs(a) <= 1 && Math.abs(b) <= 1;
        return places.map(([north, east]) =>
          dots.some((dot) => isNear(dot.latitude - north, dot.longitude - east)));
    })()"""
    assert shown(beside, script, places=LAND) == [True] * len(LAND)
    assert shown(beside, script, places=WATER) == [False] * len(WATER)


def test_the_map_asks_nobody_but_its_own_directory() -> None:
    modules = [path.name for pattern in ("map*.js", "fleet*.js") for path in WEB.glob(pattern)]
    for name in ("map.html", *modules, "geography.js", "labels.js", "world.js"):
        text = (WEB / name).read_text()
        assert "default-src 'self'" in text or name != "map.html"
        assert "fetch(" not in text and "import(" not in text


# --- editions


NEWEST = {"number": 9, "digest": "abc", "at": 1.0, "problem": ""}
TAKEN = {"number": 9, "digest": "abc", "problem": "", "pinned": False}


def test_pops_that_differ_from_the_newest_edition_are_named(beside: Path) -> None:
    rows = [
        {"pop": "fra1", "edition": TAKEN},
        {"pop": "iad1", "edition": TAKEN | {"number": 7, "digest": "def"}},
        {"pop": "lhr1", "edition": TAKEN | {"number": 0, "digest": "", "problem": "agents/x.toml: speed: wrong"}},
        {"pop": "nrt1", "edition": TAKEN | {"number": 5, "digest": "ghi", "pinned": True}},
        {"pop": "sin1", "edition": None},
    ]
    told = shown(beside, "[editions.driftOf(rows, newest), rows.map((row) => editions.editionOf(row, newest).says)]",
                 rows=rows, newest=NEWEST)  # fmt: skip
    assert told == [
        "Not at edition 9: iad1 (7), lhr1 (none: agents/x.toml: speed: wrong).",
        ["", "edition 7", "no edition", "stays at edition 5", ""],
    ]


def test_a_rolled_back_edition_is_told_from_its_files_and_not_from_its_number(beside: Path) -> None:
    rolled = NEWEST | {"number": 10}
    assert (
        shown(beside, "editions.driftOf(rows, newest)", rows=[{"pop": "fra1", "edition": TAKEN}], newest=rolled) == ""
    )


def test_a_fleet_without_editions_tells_of_none(beside: Path) -> None:
    rows = [{"pop": "fra1", "edition": None}]
    assert shown(beside, "[editions.driftOf(rows, null), editions.editionOf(rows[0], null).says]", rows=rows) == [
        "",
        "",
    ]
    problem = NEWEST | {"problem": "fleet.toml: tenants[0].key_env: set X"}
    told = shown(beside, "editions.driftOf(rows, newest)", rows=[], newest=problem)
    assert told == "This directory goes by older routes and tenants: fleet.toml: tenants[0].key_env: set X"
