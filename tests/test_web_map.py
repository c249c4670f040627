"""The map's modules that need no browser, run by Node.js."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.test_web import WEB, beside, needs_node, run

__all__ = ["beside"]
pytestmark = needs_node

POP = {"region": "r", "calls": 1, "coming": 0, "slots": 4, "predicted_ms": 160.4, "budget_ms": 300.0, "age_s": 0.3}
FRA = {**POP, "pop": "fra1", "status": "ok", "place": {"latitude": 50.1, "longitude": 8.7}}
NRT = {**POP, "pop": "nrt1", "status": "full", "calls": 4, "place": {"latitude": 35.7, "longitude": 139.7}}


def shown(beside: Path, script: str, **given: Any) -> Any:
    """What `script` is, where each of `given` has its name."""
    named = "".join(f"const {name} = {json.dumps(value)};\n" for name, value in given.items())
    return run(
        beside,
        f"""
        import * as fleet from "./fleet.js";
        import * as geography from "./geography.js";
        import {{ landGrid }} from "./world.js";
        {named}
        console.log(JSON.stringify({script}));
        """,
    )


# --- PoPs and calls in words


def test_a_pop_that_is_not_heard_of_any_more_stays_on_the_map(beside: Path) -> None:
    rows = shown(beside, "fleet.fleetOf(fleet.fleetOf([], {pops: [fra, nrt]}), {pops: [fra]})", fra=FRA, nrt=NRT)
    assert [(row["pop"], row["status"], row["slots"]) for row in rows] == [("fra1", "ok", 4), ("nrt1", "gone", 0)]
    assert rows[1]["place"] == NRT["place"]


def test_the_demo_knows_that_a_pop_was_stopped_before_the_directory_does(beside: Path) -> None:
    demo: list[dict[str, Any]] = [
        {"pop": "fra1", "city": "Frankfurt", "place": FRA["place"], "state": "stopped"},
        {"pop": "syd1", "city": "Sydney", "place": {"latitude": -34, "longitude": 151}, "state": "starting"},
    ]
    rows = shown(beside, "fleet.fleetOf([], {pops: [fra, nrt]}, demo)", fra=FRA, nrt=NRT, demo=demo)
    assert [(row["pop"], row["status"]) for row in rows] == [
        ("fra1", "stopped"),
        ("nrt1", "full"),
        ("syd1", "starting"),
    ]
    assert rows[0]["city"] == "Frankfurt" and rows[0]["age_s"] == 0.3
    back = [{**demo[0], "state": "up"}]
    rows = shown(beside, "fleet.fleetOf(before, {pops: [fra]}, demo)", before=rows, fra=FRA, demo=back)
    assert rows[0]["status"] == "ok"


def test_every_status_has_words_and_statuses_of_one_colour_have_shapes(beside: Path) -> None:
    names = ["ok", "late", "full", "draining", "stopped", "gone", "engine_down", "silent", "starting", "new one"]
    said = shown(beside, "names.map((status) => fleet.statusOf({status}))", names=names)
    assert len({one["text"] for one in said}) == len(names)
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


def test_labels_stand_where_there_is_room(beside: Path) -> None:
    points = [{"x": 8.7, "y": -50}, {"x": -4, "y": -51}, {"x": 140, "y": -36}, {"x": -77, "y": -39}]
    sides = shown(beside, "geography.labelSides(points, {wide: 45, tall: 13, end: 180})", points=points)
    assert sides == ["right", "left", "left", "right"]


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
    for name in ("map.html", "map.js", "map-picture.js", "map-tables.js", "fleet.js", "geography.js", "world.js"):
        text = (WEB / name).read_text()
        assert "default-src 'self'" in text or name != "map.html"
        assert "fetch(" not in text and "import(" not in text
