"""Where the page's calls go, how it measures, how it notices that a PoP has died, and what it tells the next one: its
modules, run by Node.js with servers of paper."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.node import needs_node, run

pytestmark = needs_node

FLEET = """
    import { Places } from "./places.js";

    const paper = { calls: [], probes: [], health: { status: "ok", pops: 4 }, status: 200, slow: {}, expires_in: 60 };
    const pops = ["fra", "lhr", "iad", "nrt"];
    const base = (pop) => `https://${pop}.example`;
    const stored = {};
    globalThis.sessionStorage = { getItem: (name) => stored[name] ?? null };
    const answer = (body, status = 200) => ({ ok: status === 200, status, json: async () => body });
    globalThis.fetch = async (url, { body, headers, signal } = {}) => {
      if (url === "/healthz") return answer(paper.health);
      if (url === "/v1/regions") {
        paper.listed = headers;
        return answer({ regions: pops.map((pop) => ({ pop, region: paper.region, probe: `${base(pop)}/rtt` })) });
      }
      if (url === "/v1/calls") {
        const asked = JSON.parse(body);
        paper.calls.push({ ...asked, key: headers.Authorization });
        if (paper.status === 0) throw new TypeError("no network");
        const left = pops.filter((pop) => !asked.tried.includes(pop)).slice(0, 3);
        const candidates = left.map((pop) => ({
          pop, token: `vp_${pop}_${paper.calls.length}`,
          url: asked.kind === "websocket" ? `wss://${pop}.example/v1/realtime` : `${base(pop)}/v1/realtime/calls`,
        }));
        return answer({ candidates, expires_in: paper.expires_in }, left.length ? paper.status : 503);
      }
      const pop = url.slice(8, 11);
      paper.probes.push(pop);
      return new Promise((resolve, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason));
        if (paper.slow[pop] !== Infinity) setTimeout(() => resolve(answer({}, 204)), paper.slow[pop] ?? 1);
      });
    };
    const wanted = { line: "websocket", model: "desk", key: "k" };
    const places = new Places();
"""


def test_a_pop_takes_its_calls_itself_and_is_asked_for_no_place(beside: Path) -> None:
    script = f"""
        {FLEET}
        paper.health = {{ status: "ok", calls: 0 }};
        await places.measure("k");
        const websocket = await places.next(wanted);
        const webrtc = await places.next({{ ...wanted, line: "webrtc" }});
        console.log(JSON.stringify([websocket, webrtc, paper.calls, paper.probes]));
    """
    websocket, webrtc, calls, probes = run(beside, script)
    assert websocket == {"at": {"pop": "", "name": "", "url": "/v1/realtime", "token": "k", "probe": ""}}
    assert webrtc["at"]["url"] == "/v1/realtime/calls"
    assert (calls, probes) == ([], [])


def test_a_directorys_candidates_are_tried_in_order_and_then_it_is_asked_for_others(beside: Path) -> None:
    script = f"""
        {FLEET}
        const went = [];
        for (let n = 0; n < 5; n++) went.push(await places.next(wanted));
        places.begin();
        went.push(await places.next({{ ...wanted, line: "webrtc" }}));
        console.log(JSON.stringify([went, paper.calls, paper.listed]));
    """
    went, calls, listed = run(beside, script)
    assert [where["at"]["pop"] for where in went[:4]] == ["fra", "lhr", "iad", "nrt"]
    first = {"pop": "fra", "name": "fra", "url": "wss://fra.example/v1/realtime", "token": "vp_fra_1"}
    assert went[0]["at"] == {**first, "probe": "https://fra.example/rtt"}
    assert went[3]["at"]["token"] == "vp_nrt_2"
    assert went[4]["problem"] == {"sentence": "The server takes no calls at the moment.", "retry": True}
    assert [call["tried"] for call in calls] == [[], ["fra", "lhr", "iad"], ["fra", "lhr", "iad", "nrt"], []]
    assert {call["key"] for call in calls} == {"Bearer k"} and listed == {"Authorization": "Bearer k"}
    assert calls[0]["kind"] == "websocket" and calls[0]["require"] == {"agent": "desk"}
    assert went[5]["at"]["url"] == "https://fra.example/v1/realtime/calls"
    assert went[5]["at"]["probe"] == "https://fra.example/rtt"


@pytest.mark.parametrize(("expires_in", "pop", "asked"), [(60, "lhr", 1), (10, "lhr", 2)])
def test_after_a_death_the_next_candidate_is_called_if_its_token_is_fresh(
    expires_in: int, pop: str, asked: int, beside: Path
) -> None:
    script = f"""
        {FLEET}
        paper.expires_in = {expires_in};
        const {{ at }} = await places.next(wanted);
        places.took(at);
        const after = await places.next(wanted);
        console.log(JSON.stringify([after.at.pop, paper.calls]));
    """
    where, calls = run(beside, script)
    assert (where, len(calls)) == (pop, asked)
    assert calls[-1]["tried"] == (["fra"] if asked == 2 else [])


@pytest.mark.parametrize(
    ("status", "key", "said", "retry"),
    [
        (401, "k", "This server does not know your key", False),
        (401, "", "This server wants a key", False),
        (404, "k", "Your key has no agent of this name", False),
        (429, "k", "The server takes no calls at the moment.", True),
        (503, "k", "The server takes no calls at the moment.", True),
        (0, "k", "The server does not answer. Is it running?", True),
    ],
)
def test_a_directory_that_names_no_place_is_told_as_a_pop_that_refuses(
    status: int, key: str, said: str, retry: bool, beside: Path
) -> None:
    script = f"""
        {FLEET}
        paper.status = {status};
        console.log(JSON.stringify(await places.next({{ ...wanted, key: {json.dumps(key)} }})));
    """
    problem = run(beside, script)["problem"]
    assert problem["sentence"].startswith(said) and problem["retry"] is retry


def test_all_pops_are_measured_once_and_one_that_does_not_answer_counts_as_far(beside: Path) -> None:
    script = f"""
        {FLEET}
        const awake = setInterval(() => {{}}, 100); // Node.js ends rather than wait for a signal's time
        paper.slow = {{ fra: 40, lhr: 5, iad: Infinity }};
        paper.region = "europe";
        const begun = performance.now();
        await places.measure("k");
        const took = performance.now() - begun;
        await places.measure("k");
        const {{ at }} = await places.next(wanted);
        clearInterval(awake);
        console.log(JSON.stringify([paper.probes, paper.calls[0].rtt_ms, took, at.name]));
    """
    probes, rtt_ms, took, name = run(beside, script)
    assert sorted(probes) == ["fra"] * 4 + ["iad"] + ["lhr"] * 4 + ["nrt"] * 4
    assert rtt_ms.keys() == {"fra", "lhr", "iad", "nrt"}
    assert 4 <= rtt_ms["lhr"] < rtt_ms["fra"] and rtt_ms["fra"] >= 39
    assert 400 <= rtt_ms["iad"] <= took < 5000
    assert name == "fra (europe)"


def test_of_a_slow_pop_counts_what_was_measured_before_the_time_was_over(beside: Path) -> None:
    script = f"""
        {FLEET}
        const awake = setInterval(() => {{}}, 100);
        paper.slow = {{ fra: 300, lhr: 500 }};
        await places.next(wanted);
        clearInterval(awake);
        console.log(JSON.stringify(paper.calls[0].rtt_ms));
    """
    rtt_ms = run(beside, script)
    assert 299 <= rtt_ms["fra"] < 500, "two of its requests have ended"
    assert 499 <= rtt_ms["lhr"], "the one that opened the connection is all there is"


def test_a_page_that_may_ask_no_pop_tells_of_none(beside: Path) -> None:
    script = f"""
        {FLEET}
        const answers = globalThis.fetch;
        globalThis.fetch = async (url, options) => {{
          if (url.endsWith("/rtt")) throw new TypeError("blocked");
          return answers(url, options);
        }};
        await places.next(wanted);
        console.log(JSON.stringify(paper.calls[0].rtt_ms));
    """
    assert run(beside, script) == {}


@pytest.mark.parametrize("paused", ["/healthz", "/v1/calls"])
def test_a_directory_that_is_paused_is_not_waited_for_for_ever(paused: str, beside: Path) -> None:
    script = f"""
        {FLEET}
        const answers = globalThis.fetch;
        const limits = [];
        AbortSignal.timeout = (ms) => {{
          limits.push(ms);
          const abort = new AbortController();
          setTimeout(() => abort.abort(new DOMException("too late", "TimeoutError")), ms / 50);
          return abort.signal;
        }};
        globalThis.fetch = (url, options) => url !== {json.dumps(paused)} ? answers(url, options)
          : new Promise((_, reject) => options.signal.addEventListener("abort", () => reject(options.signal.reason)));
        const {{ problem }} = await places.next(wanted);
        console.log(JSON.stringify([problem, limits.at(-1)]));
    """
    problem, limit_ms = run(beside, script)
    assert problem == {"sentence": "The server did not answer within 5 seconds.", "retry": True}
    assert limit_ms == 5000


@pytest.mark.parametrize(
    ("status", "another", "goes_on"),
    [(0, False, True), (429, False, True), (503, False, True), (401, True, True), (500, True, True), (502, True, True),
     (401, False, False), (500, False, False), (404, True, False), (400, True, False)],
)  # fmt: skip
def test_after_which_answers_of_a_pop_the_next_one_is_tried(
    status: int, another: bool, goes_on: bool, beside: Path
) -> None:
    script = f"""
        {FLEET}
        const {{ triesNext }} = await import("./failures.js");
        for (let n = 0; n < {2 if another else 3}; n++) await places.next(wanted); // of three that are named
        console.log(JSON.stringify([places.hasAnother, triesNext({status}, places.hasAnother)]));
    """
    assert run(beside, script) == [another, goes_on]


def test_a_place_that_was_chosen_goes_before_what_was_measured(beside: Path) -> None:
    script = f"""
        {FLEET}
        stored["voicepipe.place"] = '{{"latitude": 1, "longitude": 2}}';
        await places.next(wanted);
        console.log(JSON.stringify(paper.calls[0]));
    """
    asked = run(beside, script)
    assert asked["place"] == {"latitude": 1, "longitude": 2} and "rtt_ms" not in asked


# Whether the PoP is there.

BEATS = """
    import { Heartbeat } from "./heartbeat.js";

    const paper = { answers: true, heard: 0, trips: [], dead: [], begun: performance.now() };
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    globalThis.fetch = (url, { signal }) => new Promise((resolve, reject) => {
      signal.addEventListener("abort", () => reject(signal.reason));
      if (paper.answers) resolve({ ok: true });
    });
    const beats = new Heartbeat("https://fra.example/rtt", {
      heard: async () => paper.heard,
      onTrip: (ms) => paper.trips.push(ms),
      onDead: () => paper.dead.push(performance.now() - paper.silent),
    });
    const falls = () => { paper.answers = false; paper.silent = performance.now(); };
"""


def test_a_pop_that_answers_no_more_is_dead_after_a_second_and_once(beside: Path) -> None:
    script = f"""
        {BEATS}
        await wait(700);
        const before = [paper.dead.length, paper.trips.length];
        falls();
        await wait(2000);
        console.log(JSON.stringify([before, paper.dead, paper.trips.length]));
    """
    (dead_before, trips), dead, trips_at_last = run(beside, script)
    assert dead_before == 0 and trips >= 2
    assert len(dead) == 1 and 500 < dead[0] < 1700
    assert trips_at_last == trips


def test_a_pop_whose_sound_still_comes_is_not_dead(beside: Path) -> None:
    script = f"""
        {BEATS}
        await wait(300);
        falls();
        const sound = setInterval(() => (paper.heard += 1), 20);
        await wait(1200);
        const before = paper.dead.length;
        clearInterval(sound);
        paper.silent = performance.now();
        await wait(2500);
        console.log(JSON.stringify([before, paper.dead]));
    """
    before, dead = run(beside, script)
    assert before == 0 and len(dead) == 1 and dead[0] < 2000


def test_a_pop_is_asked_at_most_twice_a_second_and_not_while_its_sound_comes(beside: Path) -> None:
    script = f"""
        {BEATS}
        const asked = [];
        const answers = globalThis.fetch;
        globalThis.fetch = (...given) => (asked.push(performance.now()), answers(...given));
        const sound = setInterval(() => (paper.heard += 1), 20);
        await wait(2000);
        const whileHeard = asked.length;
        clearInterval(sound);
        await wait(2500);
        beats.stop();
        const gaps = asked.slice(1).map((at, n) => at - asked[n]);
        console.log(JSON.stringify([whileHeard, asked.length, Math.min(...gaps)]));
    """
    while_heard, asked, gap = run(beside, script)
    assert while_heard == 2, "whatever comes: they tell whether it answers, and how far it is"
    assert while_heard + 2 <= asked <= while_heard + 5
    assert gap >= 490


def test_a_pop_that_never_answered_is_not_missed_and_one_that_was_left_is_not_either(beside: Path) -> None:
    script = f"""
        {BEATS}
        paper.answers = false;
        beats.stop();
        const deaf = new Heartbeat("https://lhr.example/rtt", {{
          heard: async () => paper.heard, onTrip() {{}}, onDead: () => paper.dead.push("deaf"),
        }});
        paper.heard = 1;
        await wait(2000);
        deaf.stop();
        console.log(JSON.stringify(paper.dead));
    """
    assert run(beside, script) == []


def test_a_page_that_was_busy_takes_nobody_for_dead(beside: Path) -> None:
    script = f"""
        {BEATS}
        for (let n = 0; n < 3; n++) {{
          await wait(100);
          const until = performance.now() + 700;
          while (performance.now() < until);
        }}
        await wait(100);
        beats.stop();
        console.log(JSON.stringify(paper.dead));
    """
    assert run(beside, script) == []


# What was said, told again.

ASKED = {"id": "i1", "role": "user", "text": "When are you open?", "open": False}
ANSWERED = {"id": "i2", "role": "assistant", "text": "Until ten.", "open": False}
CUT = {"id": "i4", "role": "assistant", "text": "You can park", "open": True}
MUTE = {"id": "i3", "role": "user", "text": "", "open": True}
GREETED = {"id": "i0", "role": "assistant", "text": "Good morning.", "open": False}


@pytest.mark.parametrize(
    ("said", "told", "owed"),
    [
        ([], [], False),
        ([GREETED, ASKED, ANSWERED], ["i0", "i1", "i2"], False),
        ([GREETED, ASKED], ["i0", "i1"], True),
        ([ASKED, ANSWERED, MUTE], ["i1", "i2"], False),
        ([ASKED, CUT], ["i1", "i4"], True),
        ([GREETED], ["i0"], False),
        ([{**GREETED, "open": True}], [], False),  # it is said again
    ],
)
def test_a_conversation_is_told_as_it_was_heard_and_who_waits_is_answered(
    said: list[dict[str, Any]], told: list[str], owed: bool, beside: Path
) -> None:
    script = f"""
        import {{ replayOf }} from "./replay.js";
        console.log(JSON.stringify(replayOf({json.dumps(said)})));
    """
    replay = run(beside, script)
    items = [event["item"] for event in replay["events"]]
    if owed:
        moved = items.pop()
        assert moved["role"] == "system" and "ask the caller whether to do it again" in moved["content"][0]["text"]
    assert ([item["id"] for item in items], replay["owed"]) == (told, owed)
    kinds = {(item["role"], item["content"][0]["type"]) for item in items}
    assert kinds <= {("user", "input_text"), ("assistant", "output_text")}
    assert all(event["type"] == "conversation.item.create" for event in replay["events"])


def added(item: dict[str, Any], after: str | None) -> list[dict[str, Any]]:
    """As the server tells of an item: a call's arguments come when it is whole."""
    begun = {**item, "arguments": ""} if "arguments" in item else item
    return [
        {"type": "conversation.item.added", "item": begun, "previous_item_id": after},
        {"type": "conversation.item.done", "item": item, "previous_item_id": after},
    ]


BOOKS = {"id": "t1", "type": "function_call", "call_id": "c1", "name": "book", "arguments": '{"people":2}'}
BOOKED = {"id": "t2", "type": "function_call_output", "call_id": "c1", "output": "done"}
SAID = [ASKED, ANSWERED]
MESSAGES = [*added({"id": "i1", "type": "message"}, None), *added({"id": "i2", "type": "message"}, "i1")]


def replayed(beside: Path, events: list[dict[str, Any]], said: list[dict[str, Any]]) -> Any:
    script = f"""
        import {{ replayOf, ToolsCalled }} from "./replay.js";
        const tools = new ToolsCalled();
        for (const event of {json.dumps(events)}) tools.hear(event);
        const replay = replayOf(tools.among({json.dumps(said)}));
        console.log(JSON.stringify([replay.events.map((event) => event.item), replay.owed]));
    """
    return run(beside, script)


def test_tools_are_told_where_they_were_called_and_with_what_came_of_them(beside: Path) -> None:
    events = [*MESSAGES, *added(BOOKS, "i1"), *added(BOOKED, "t1")]
    items, owed = replayed(beside, events, SAID)
    assert [item.get("id") for item in items] == ["i1", "t1", "t2", "i2"] and not owed
    assert items[1:3] == [BOOKS, BOOKED]


def test_a_call_of_which_nobody_knows_the_outcome_is_not_made_again(beside: Path) -> None:
    items, owed = replayed(beside, [*MESSAGES[:2], *added(BOOKS, "i1")], [ASKED])
    assert [item.get("id") for item in items] == ["i1", "t1", None, None] and owed
    assert (items[2]["type"], items[2]["call_id"]) == ("function_call_output", "c1")
    assert "not known" in items[2]["output"] and "without asking the caller" in items[2]["output"]
    assert items[3]["role"] == "system"


def test_what_was_deleted_is_not_told_and_what_is_told_again_stands_where_it_stood(beside: Path) -> None:
    deleted = [{"type": "conversation.item.deleted", "item_id": id} for id in ("t2", "i3")]
    other = {**BOOKED, "id": "t3", "output": "it is booked"}
    events = [
        *MESSAGES, *added({"id": "i3", "type": "message"}, "i2"), *added(BOOKS, "i3"), *added(BOOKED, "t1"),
        *added(other, "t2"), *deleted, *added(BOOKS, None),
    ]  # fmt: skip
    items, _ = replayed(beside, events, SAID)
    assert [item.get("id") for item in items[:4]] == ["i1", "i2", "t1", "t3"]
