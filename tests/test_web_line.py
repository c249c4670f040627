"""How a call over WebRTC ends, on the page's side: its module, run by Node.js, with a browser and a server of paper."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.test_web import beside, needs_node, run

__all__ = ["beside"]
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
    globalThis.fetch = async (path, { method = "GET", body, signal } = {}) => {
      paper.asked.push(`${method} ${path}`);
      if (body) paper.body = Object.fromEntries(body);
      if (method === "DELETE") return new Promise((_, reject) => signal.addEventListener("abort", reject));
      const headers = new Headers({ Location: "/v1/realtime/calls/rtc_1" });
      return { ok: path !== "/readyz" || paper.ready, headers, json: async () => ({}), text: async () => "answer" };
    };
    const ends = [];
    const dialled = new Promise((resolve) => (paper.answers = async () => resolve()));
    const settled = () => new Promise((resolve) => setImmediate(resolve));
    const speaker = { play() {}, stop() {} };
    const handlers = { onEvent() {}, onClose: (end) => ends.push(end) };
    const dial = () => new WebRtcLine({ model: "desk", key: "", voice: "heart" }, speaker, handlers);
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
