"""The dashboard's modules that need no browser, run by Node.js on a view as the server makes it."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.healthy import HEALTHY
from tests.web.node import needs_node, run
from voicepipe.config import PopConfig
from voicepipe.conversation.events import Item, ItemAdded, ReplyDone, ReplyStarted
from voicepipe.conversation.timing import TurnSummary
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.observe.dashboard import Dashboard

pytestmark = needs_node

NOW = 1_800_000_000.0
LINE = WebSocketLine(PcmFormat(), PcmFormat())


def view(*records: dict[str, Any], tenants: tuple[str, ...] = ("local",)) -> str:
    """JSON with a turn for each record, half a minute apart, the last one a minute ago."""
    dashboard = Dashboard(PopConfig(slots=60), lambda: HEALTHY, lambda: NOW)
    for number, record in enumerate(records):
        at = NOW - 30 - 30 * (len(records) - number)
        with dashboard.watched(tenants[number % len(tenants)], "front-desk") as call:
            call.answered(f"call_{number}", LINE, at)
            call.note(ItemAdded(Item("item_1", text="hello"), None, spoken=True), at)
            call.note(ReplyStarted("resp_1", f"turn_{number}"), at)
            call.note(ReplyDone("resp_1", "completed", record=TurnSummary(**record)), at)
    return msgspec.json.encode(dashboard.view(None, 15)).decode()


RECORDS = (
    {"turn_latency": 180.0, "speculation": "hit", "discarded": 1, "endpoint": 150.0, "playout": 30.0},
    {"turn_latency": 900.0, "speculation": "miss", "reopened": True},
    {"ladder": "fallback"},
)


def shown(beside: Path, script: str, text: str) -> Any:
    return run(
        beside,
        f"""
        import * as figures from "./figures.js";
        import {{ money, tilesOf, percent }} from "./tiles.js";
        import {{ agentOf, lasting, milliseconds }} from "./tables.js";
        import {{ judged, LOST }} from "./feed.js";
        import {{ chipsOf, whyOf }} from "./turn.js";
        const view = {text};
        console.log(JSON.stringify({script}));
        """,
    )


def test_latency_is_never_told_without_the_cut_in_rate(beside: Path) -> None:
    tiles = shown(beside, "tilesOf(view)", view(*RECORDS))
    assert (tiles["p50"], tiles["p50-of"]) == ("540", "p50")
    assert tiles["latency-note"] == "2 timed turns · cut in on 1 (33 %)"
    assert tiles["cut-ins"] == "1" and tiles["cut-ins-note"].startswith("33 %, at most ")
    assert (tiles["late"], tiles["late-note"], tiles["missed"]) == ("1", "50 % over 300 ms", "1")
    assert (tiles["hits"], tiles["hits-note"]) == ("50 %", "1 of 2 · 1 draft dropped")
    assert (tiles["slots"], tiles["slots-note"], tiles["lag"]) == ("1 / 60", "160 ms predicted · 0 refused", "1.3 ms")


def test_few_turns_have_no_high_percentiles_and_a_single_one_has_none(beside: Path) -> None:
    def tiles(timed: int) -> tuple[str, ...]:
        script = f"tilesOf({{...view, totals: {{...view.totals, timed: {timed}}}}})"
        told = shown(beside, script, view(*RECORDS))
        return told["p50-of"], told["p95"], told["p99"]

    assert tiles(1) == ("the only turn", "–", "–")
    assert tiles(19) == ("p50", "–", "–")
    assert tiles(20)[1:] == ("864", "–")
    assert tiles(100)[1:] == ("864", "893")


def test_a_pop_without_turns_has_dashes_and_says_so(beside: Path) -> None:
    tiles = shown(beside, "tilesOf(view)", view())
    assert (tiles["p50"], tiles["latency-note"]) == ("–", "no turns yet")
    layout = shown(beside, "figures.latencyFigure(view, {}).layout", view())
    assert "No turns in the last 15 min" in [note["text"] for note in layout["annotations"]]


COST = {"price_per_hour": 2.5, "cost_per_minute": 2.5 / 60 / 60, "counted_s": 11_100, "minutes": 246.5,
        "host_cost": 7.7083, "calls_cost": 0.1712, "idle_cost": 7.5371}  # fmt: skip


def test_what_the_host_costs(beside: Path) -> None:
    def tile(cost: dict[str, float] | None) -> tuple[str, ...]:
        told = shown(beside, f"tilesOf({{...view, cost: {json.dumps(cost)}}})", view())
        return told["cost"], told["cost-minute"], told["cost-idle"]

    assert tile(COST) == (
        "2.50",
        "a call's minute 0.000694 · with idle 0.0313",
        "7.71 in 3 h 5 min · 7.54 of it idle",
    )
    nobody_called = {**COST, "minutes": 0, "calls_cost": 0, "idle_cost": 7.7083}
    assert tile(nobody_called)[1:] == ("a call's minute 0.000694", "7.71 in 3 h 5 min · 7.71 of it idle")
    assert tile(None) == ("", "", ""), "no price is known"


def test_small_amounts_have_enough_digits(beside: Path) -> None:
    said = shown(beside, "[12.3, 1, 0.9999, 0.35, 0.0123, 0.00099996, 0.0000162, 0, 1e-17].map(money)", "null")
    assert said == ["12.30", "1.00", "1.00", "0.350", "0.0123", "0.00100", "0.0000162", "0.00", "0.00"]


def test_every_timed_turn_is_a_point_that_knows_its_turn(beside: Path) -> None:
    points, *lines = shown(beside, "figures.latencyFigure(view, {late: 'red'}, 'turn_0').data", view(*RECORDS))
    assert (points["y"], points["customdata"]) == ([180.0, 900.0], ["turn_0", "turn_1"])
    assert points["marker"]["symbol"] == ["circle", "x"], "a cut-in is told by shape, too"
    assert points["marker"]["line"]["width"] == [3, 0]
    assert [line["name"] for line in lines] == ["p50", "p95", "p99"]
    assert [ms for ms in lines[0]["y"] if ms is not None] == [180.0, 900.0]
    assert len(lines[0]["x"]) == len(json.loads(view())["buckets"])


def test_a_percentiles_point_stands_for_the_turn_next_to_it(beside: Path) -> None:
    at = "view.buckets.findIndex((bucket) => bucket.figures.p50 === 900)"
    assert shown(beside, f"figures.turnNear(view, {at}, 890).id", view(*RECORDS)) == "turn_1"
    assert shown(beside, "figures.turnNear(view, 0, 890)", view(*RECORDS)) is None


@pytest.mark.parametrize(
    ("figure", "names"),
    [
        ("outcomesFigure", {"Late": 1, "Missed": 1, "Cut in": 1}),
        ("stagesFigure", {"Endpointing": 150, "ASR": 0, "LLM": 0, "TTS": 0, "Playout": 30, "Hidden": 0}),
        ("speculationFigure", {"Prepared in time": 1, "Not in time": 1, "Drafts dropped": 1}),
    ],
)
def test_bars_have_the_servers_numbers(beside: Path, figure: str, names: dict[str, float]) -> None:
    data = shown(beside, f"figures.{figure}(view, {{}}).data", view(*RECORDS))
    assert {trace["name"]: sum(y or 0 for y in trace["y"]) for trace in data} == names


def test_counts_have_no_halves_on_their_axis(beside: Path) -> None:
    for text in (view(), view(*RECORDS)):
        assert shown(beside, "figures.outcomesFigure(view, {}).layout.yaxis.dtick", text) == 1


def test_what_is_said_of_a_turn(beside: Path) -> None:
    remarks = "view.turns.map((turn) => figures.remarksOf(turn).map((remark) => remark.text))"
    assert shown(beside, remarks, view(*RECORDS)) == [["missed"], ["cut in", "late", "not prepared"], []]
    assert shown(beside, "view.turns.map(agentOf)", view(*RECORDS[:2], tenants=("local", "acme"))) == [
        "front-desk (acme)", "front-desk"]  # fmt: skip
    said = shown(beside, "[0, 61, 3900].map(lasting).concat([null, 181.6].map(milliseconds))", "null")
    assert said == ["0 s", "1 min", "1 h 5 min", "–", "182 ms"]
    assert shown(beside, "[null, 0, 0.004, 0.0999, 0.5].map(percent)", "null") == ["–", "0 %", "0.4 %", "10 %", "50 %"]


def test_an_operator_reads_of_the_caller(beside: Path) -> None:
    script = (
        "[whyOf({at_commit: 130, confident: true}, 'the caller'), whyOf({}, 'the caller'), "
        "...chipsOf({turn_latency: 350, reopened: true}, {budget: 400, who: 'the caller'}).map((chip) => chip.text)]"
    )
    assert shown(beside, script, "null") == [
        "It waited 130 ms after the caller's last sound, sure that the caller had finished.", "",
        "within 400 ms", "reopened, the caller had not finished",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("status", "has_key", "state", "sentence"),
    [
        (200, False, "ok", ""),
        (0, False, "lost", "The server does not answer; trying again."),
        (401, False, "locked", ""),
        (401, True, "locked", "This server does not know that key."),
        (403, False, "refused", "This server shows its figures to pages of its own machine alone."),
    ],
)
def test_what_an_answer_means(beside: Path, status: int, has_key: bool, state: str, sentence: str) -> None:
    said = shown(beside, f"judged({status}, {json.dumps(has_key)})", "null")
    assert said["state"] == state and said["sentence"].startswith(sentence)
