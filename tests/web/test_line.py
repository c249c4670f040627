"""How a call over WebRTC ends, on the page's side: its module, run by Node.js, with a browser and a server of paper."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.web.node import needs_node, run

pytestmark = needs_node

PAPER = """
    import { mock } from "node:test";
    import { WebRtcLine } from "./webrtc.js";

    const channel = { readyState: "connecting", send() {} };
    const paper = { asked: [], closed: 0, ready: true };
    let connection;
    globalThis.RTCPeerConnection = class {
      iceGatheringState = "complete";
      localDescription = { sdp: "offer" };
      constructor() { connection = this; }
      addTransceiver() { return { sender: { replaceTrack() {} } }; }
      createDataChannel() { return channel; }
      addEventListener() {}
      async setLocalDescription() {}
      setRemoteDescription() { return paper.answers(); }
      close() { paper.closed += 1; }
    };
    globalThis.fetch = async (path, { method = "GET", body, headers: sent, signal } = {}) => {
      paper.asked.push(`${method} ${path}`);
      (paper.keys ??= []).push(sent?.Authorization ?? "");
      if (body) paper.body = Object.fromEntries(body);
      if (method === "DELETE") return new Promise((_, reject) => signal.addEventListener("abort", reject));
      const headers = new Headers({ Location: "/v1/realtime/calls/rtc_1" });
      if (paper.refuses && method === "POST") {
        return { ok: false, status: paper.refuses, headers: new Headers({ "Content-Type": "application/json" }) };
      }
      return { ok: path !== "/readyz" || paper.ready, headers, json: async () => ({}), text: async () => "answer" };
    };
    const ends = [];
    const dialled = new Promise((resolve) => (paper.answers = async () => resolve()));
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    const speaker = { play() {}, stop() {} };
    const handlers = { onEvent() {}, onClose: (end) => ends.push(end) };
    const own = { pop: "", url: "/v1/realtime/calls", token: "", probe: "" };
    const fra = {
      pop: "fra", url: "https://fra.example/v1/realtime/calls", token: "vp_1", probe: "https://fra.example/rtt",
    };
    const dial = (at = own, key = "") =>
      new WebRtcLine({ at, model: "desk", key, voice: "heart" }, speaker, handlers);
    const open = () => { channel.readyState = "open"; channel.onopen(); };
    const changed = (state) => { connection.connectionState = state; connection.onconnectionstatechange(); };
"""


def told(code: str) -> dict[str, Any]:
    return {"type": "error", "error": {"code": code, "message": "Goodbye."}}


OTHER = {"type": "response.done", "response": {}}


@pytest.mark.parametrize(
    ("last", "ready", "code"),
    [
        ([told("session_expired")], True, 1001),
        ([told("session_idle")], True, 1001),
        ([told("server_shutdown")], True, 1012),
        ([told("server_error")], True, 1011),
        ([told("server_error"), OTHER], True, 1000),  # of one event, not of the call
        ([told("invalid_value")], True, 1000),
        ([OTHER], True, 1000),
        ([OTHER], False, 1012),
    ],
)
def test_a_call_that_the_server_ended_has_a_closing_code(
    last: list[dict[str, Any]], ready: bool, code: int, beside: Path
) -> None:
    script = f"""
        {PAPER}
        paper.ready = {json.dumps(ready)};
        dial();
        await dialled;
        open();
        for (const event of {json.dumps(last)}) channel.onmessage({{ data: JSON.stringify(event) }});
        channel.readyState = "closed";
        channel.onclose();
        changed("failed"); // what the end of the connection may look like
        await settled();
        console.log(JSON.stringify([ends, paper.asked.includes("GET /readyz")]));
    """
    ends, asked = run(beside, script)
    assert ends == [{"code": code}]
    assert asked == (last[-1] == OTHER or last[-1] == told("invalid_value")), "asked only where nothing was said"


def test_an_answer_that_the_browser_does_not_take_gives_the_place_back_and_waits_for_no_dead_network(
    beside: Path,
) -> None:
    script = f"""
        {PAPER}
        paper.answers = async () => {{ throw new DOMException("no codec", "OperationError"); }};
        dial();
        while (!paper.closed) await new Promise((resolve) => setTimeout(resolve, 20));
        console.log(JSON.stringify([ends, paper.asked, JSON.parse(paper.body.session)]));
    """
    (end,), asked, session = run(beside, script)
    assert end["instead"].startswith("This server takes no WebRTC calls from this browser")
    assert asked[-2:] == ["POST /v1/realtime/calls", "DELETE /v1/realtime/calls/rtc_1"]
    assert session == {"type": "realtime", "model": "desk", "audio": {"output": {"voice": "heart"}}}


def test_a_pop_gets_the_token_and_the_pages_own_server_the_key(beside: Path) -> None:
    script = f"""
        {PAPER}
        const line = dial(fra, "k");
        await dialled;
        open();
        line.close();
        console.log(JSON.stringify([paper.asked, paper.keys]));
    """
    asked, keys = run(beside, script)
    assert asked == [
        "GET https://fra.example/v1/realtime/ice-servers", "POST https://fra.example/v1/realtime/calls",
        "DELETE /v1/realtime/calls/rtc_1",
    ]  # fmt: skip
    assert keys == ["Bearer vp_1", "Bearer vp_1", "Bearer k"]


@pytest.mark.parametrize(
    ("at", "end"), [("fra", {"status": 502}), ("own", {"instead": "This server takes no WebRTC calls"})]
)
def test_what_a_proxy_says_of_a_pop_of_several_is_no_matter_of_webrtc(
    at: str, end: dict[str, Any], beside: Path
) -> None:
    script = f"""
        {PAPER}
        const answer = globalThis.fetch;
        const proxys = {{ ok: false, status: 502, headers: new Headers({{ "Content-Type": "text/html" }}) }};
        globalThis.fetch = async (path, asked) => (asked?.method === "POST" ? proxys : answer(path, asked));
        dial({at}, "k");
        while (!ends.length) await settled();
        console.log(JSON.stringify(ends));
    """
    (told,) = run(beside, script)
    assert told.keys() == end.keys()
    assert all(str(told[name]).startswith(str(value)) for name, value in end.items())


@pytest.mark.parametrize("status", [429, 503, 401])
def test_a_pop_that_refuses_says_with_which_status(status: int, beside: Path) -> None:
    script = f"""
        {PAPER}
        paper.refuses = {status};
        dial(fra, "k");
        while (!ends.length) await settled();
        console.log(JSON.stringify(ends));
    """
    assert run(beside, script) == [{"status": status}]


@pytest.mark.parametrize(("ready", "code"), [(True, 1000), (False, 1012)])
def test_a_channel_that_a_pop_of_several_closed_is_judged_by_that_pop(ready: bool, code: int, beside: Path) -> None:
    script = f"""
        {PAPER}
        dial(fra, "k");
        await dialled;
        open();
        globalThis.fetch = (path) => (paper.asked.push(path), Promise.resolve({{ ok: {json.dumps(ready)} }}));
        channel.readyState = "closed";
        channel.onclose();
        await settled();
        console.log(JSON.stringify([ends, paper.asked.at(-1)]));
    """
    assert run(beside, script) == [[{"code": code}], "https://fra.example/rtt"]


@pytest.mark.parametrize(("last", "ends"), [("connected", []), ("disconnected", [{"code": 1006}])])
def test_a_network_that_comes_back_keeps_the_call_however_often_it_went(
    last: str, ends: list[dict[str, int]], beside: Path
) -> None:
    script = f"""
        {PAPER}
        mock.timers.enable({{ apis: ["setTimeout"] }});
        dial();
        await dialled;
        open();
        for (const state of ["disconnected", "disconnected", {json.dumps(last)}]) changed(state);
        mock.timers.tick(60_000);
        await settled();
        console.log(JSON.stringify(ends));
    """
    assert run(beside, script) == ends


@pytest.mark.parametrize("key", ["", "sesame", "ek_0a-B.c~9"])
def test_a_key_that_is_a_token_fits_a_websocket(key: str, beside: Path) -> None:
    assert unfit(key, beside) == ""


@pytest.mark.parametrize("key", ["c2VzYW1l=", "open/sesame", "open sesame", "a,b", "sésame"])
def test_a_key_that_is_no_token_does_not(key: str, beside: Path) -> None:
    assert unfit(key, beside).startswith("Browsers cannot send this key over a WebSocket")


def unfit(key: str, beside: Path) -> str:
    script = f"""
        import {{ unfitForWebSocket }} from "./failures.js";
        console.log(JSON.stringify(unfitForWebSocket({json.dumps(key)})));
    """
    return str(run(beside, script))
