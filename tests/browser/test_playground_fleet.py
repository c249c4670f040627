"""The page `/` of a directory: its calls go to the nearest PoP, and on to another one when that dies."""

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from latency_probes.own_server import Started, started
from tests.browser.playground import LINES, PATIENT_MS, choose, says, typed
from tests.directory.keys import make_keys, needs_openssl
from tests.directory.nats_server import nats_server, needs_nats
from tests.support.ports import free_port

pytestmark = [needs_nats, needs_openssl, pytest.mark.e2e]
DIRECTORY = """
[directory]
key = "directory.pem"
place = [50.1, 8.7]

[bus]
servers = ["{bus}"]

[[tenants]]
name = "acme"
key_env = "ACME_KEY"
"""
POP = """
[pop]
id = "{name}"
region = "{region}"
budget_ms = 600000

[fleet]
keys = ["directory.pub.pem"]
place = {place}
url = "http://127.0.0.1:{port}"

[bus]
servers = ["{bus}"]

[ladder]
acknowledge_ms = 0
fallback_ms = 0
"""
ENGINES = """
[engines]
vad = "scripted"
asr = "scripted"
tts = "scripted"
"""
"""The language engine is the embedded one, which knows what was said before."""
POPS = {"fra": ("frankfurt", [50.1, 8.7]), "lhr": ("london", [51.5, -0.1])}
FAR_MS = 80
FAR_FROM = """
const near = window.fetch;
window.fetch = async (url, options) => {
  if (String(url) === "%s/rtt") await new Promise((resolve) => setTimeout(resolve, %d));
  return near(url, options);
};
"""
"""Makes one PoP seem far away."""
WATCH = """
const watch = () => {
  const notice = document.getElementById("notice").textContent;
  if (notice.includes("goes on at")) window.wentOnAt ??= Date.now();
};
addEventListener("DOMContentLoaded", () =>
  new MutationObserver(watch).observe(document.getElementById("notice"), { childList: true, attributes: true }));
"""
BOUND_S = 20
"""The aims are 2 s over WebSocket and 6 s over WebRTC, on a machine that has time."""


@dataclass
class Fleet:
    """A directory and two PoPs, each a process."""

    url: str
    pops: dict[str, Started]

    def kill(self, name: str, how: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.pops[name].pid, how)

    def calls(self) -> list[str]:
        """The PoPs at which a call is, as the directory lists calls."""
        listed = httpx.get(f"{self.url}/v1/realtime/calls", headers={"Authorization": "Bearer acme-key"}, timeout=60)
        return [row["id"].removeprefix("rtc_").split(".")[0] for row in listed.json()["data"]]


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setenv("ACME_KEY", "acme-key")
    make_keys(tmp_path)
    command = (sys.executable, "-m", "voicepipe")
    (engines := tmp_path / "engines.toml").write_text(ENGINES)
    with ExitStack() as stack:
        bus = stack.enter_context(nats_server(tmp_path)).url
        (file := tmp_path / "directory.toml").write_text(DIRECTORY.format(bus=bus))
        url = stack.enter_context(started((*command, "directory", "--config", str(file), "--port", "0"))).url
        pops = {}
        for name, (region, place) in POPS.items():
            port = free_port()
            (file := tmp_path / f"{name}.toml").write_text(
                POP.format(name=name, region=region, place=place, port=port, bus=bus)
            )
            options = ("--config", str(engines), "--pop", str(file), "--port", str(port))
            pops[name] = stack.enter_context(started((*command, "pop", *options)))
            stack.callback(os.kill, pops[name].pid, signal.SIGKILL)  # A process that was stopped hears nothing else.
        _until(lambda: httpx.get(f"{url}/healthz").json()["pops"] == len(POPS))
        yield Fleet(url, pops)


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@contextmanager
def page_of(fleet: Fleet, browser: Browser, line: str, far: str) -> Iterator[Page]:
    """The directory's page, measured by which the PoP `far` is not the nearest."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.add_init_script(FAR_FROM % (fleet.pops[far].url, FAR_MS) + WATCH)
    page.goto(f"{fleet.url}/#key=acme-key")
    expect(page.locator("#agent option")).to_have_text(["front-desk"])
    choose(page, line)
    try:
        yield page
        assert not problems
    finally:
        page.close()


def calling(page: Page) -> None:
    """A call that has lasted for a while: what breaks at once is tried again more slowly."""
    page.click("#talk")
    says(page, "Listening")
    expect(page.locator("#transcript .agent")).to_contain_text("How can I help you?", timeout=PATIENT_MS)
    page.wait_for_timeout(5500)


@pytest.mark.parametrize(
    ("line", "how"),
    [("webrtc", signal.SIGKILL), ("websocket", signal.SIGKILL), ("webrtc", signal.SIGSTOP),
     ("websocket", signal.SIGSTOP)],
)  # fmt: skip
def test_a_call_goes_on_elsewhere_with_its_conversation_when_its_pop_dies(
    line: str, how: signal.Signals, fleet: Fleet, quiet: Browser
) -> None:
    with page_of(fleet, quiet, line, far="fra") as page:
        calling(page)
        typed(page, "I want to book a table for three people")
        expect(page.locator("#transcript .agent:not(.growing)")).to_have_count(2, timeout=PATIENT_MS)
        expect(page.locator("#place")).to_contain_text("at lhr (london), ")
        assert fleet.calls() == ["lhr"], "the nearest as measured, though the directory is nearer to the other"
        died_at = page.evaluate("Date.now()")
        fleet.kill("lhr", how)
        page.fill("#message", "on Friday at seven")  # What the dead PoP gets is said again to the other one.
        page.press("#message", "Enter")
        expect(page.locator("#notice")).to_have_text(
            "lhr (london) stopped answering; the call goes on at fra (frankfurt).", timeout=PATIENT_MS
        )
        took_s = (page.evaluate("wentOnAt") - died_at) / 1000
        print(f"\n{line}, {how.name}: live again after {took_s:.2f} s")
        assert took_s < BOUND_S
        expect(page.locator("#place")).to_contain_text("at fra (frankfurt), ", timeout=PATIENT_MS)
        agent = page.locator("#transcript .agent")
        for asked, said in (("What name may I put it under?", "Ann Brown"), ("your telephone number", "555 0142")):
            expect(agent.filter(has_text=asked)).to_be_visible(timeout=PATIENT_MS)
            typed(page, said)
        back = agent.filter(has_text="A table for 3, Friday at 7 o'clock, for Ann Brown, telephone 5 5 5, 0 1 4 2.")
        expect(back).to_be_visible(timeout=PATIENT_MS)
        expect(page.locator("#transcript .agent", has_text="How can I help you?")).to_have_count(1)
        expect(page.locator("#transcript .caller")).to_have_count(4)
        page.click("#hang-up")
        says(page, "Ready")
        expect(page.locator("#place")).to_be_hidden()


def test_an_answer_that_its_pop_did_not_finish_is_given_by_another(fleet: Fleet, quiet: Browser) -> None:
    with page_of(fleet, quiet, "websocket", far="fra") as page:
        calling(page)
        typed(page, "What is on the menu?")
        answer = page.locator("#transcript .agent", has_text="Mostly")
        expect(answer).to_have_count(1)
        fleet.kill("lhr")
        expect(answer).to_have_count(2, timeout=PATIENT_MS)
        expect(answer.nth(1)).to_contain_text("every week", timeout=PATIENT_MS)


@LINES
def test_a_pop_that_is_gone_costs_one_try_and_a_call_that_is_hung_up_is_over(
    line: str, fleet: Fleet, quiet: Browser
) -> None:
    with page_of(fleet, quiet, line, far="lhr") as page:
        told: list[int] = []
        page.on("response", lambda answer: told.append(answer.status) if answer.request.method == "DELETE" else None)
        page.wait_for_timeout(500)  # It measures.
        fleet.kill("fra")
        page.click("#talk")
        says(page, "Listening")
        expect(page.locator("#place")).to_contain_text("at lhr (london), ")
        expect(page.locator("#notice")).to_be_hidden()
        page.click("#hang-up")
        says(page, "Ready")
        _until(lambda: fleet.calls() == [])
        page.wait_for_timeout(2000)
        says(page, "Ready")
        assert told == ([200] if line == "webrtc" else [])
