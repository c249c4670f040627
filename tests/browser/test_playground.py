"""The page `/` as someone meets it who types: over both lines, by keyboard, after a restart, with a key."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, expect

from latency_probes.own_server import address, own_server
from tests.browser.conftest import SCRIPTED
from tests.browser.playground import LINES, PATIENT_MS, choose, opened, says, typed
from tests.support.ports import free_port
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e


@LINES
def test_typing_cuts_what_is_being_said(line: str, desk: str, quiet: Browser) -> None:
    with opened(quiet, desk, line) as page:
        typed(page, "and then " * 100)  # without a microphone; it is echoed, which takes a minute
        echo = page.locator("#transcript .agent", has_text="You said and then").first
        expect(echo).to_be_visible(timeout=PATIENT_MS)
        says(page, "The agent is speaking")
        typed(page, "hello again")
        expect(echo.locator(".mark")).to_have_text("interrupted", timeout=PATIENT_MS)


def test_before_the_first_call_the_page_says_what_to_do_and_what_to_ask(desk: str, quiet: Browser) -> None:
    with opened(quiet, desk) as page:
        empty = page.locator("#conversation-empty")
        expect(empty).to_contain_text("Press “Start talking” and ask something, or type below.")
        example = page.get_by_role("button", name="When are you open on Friday?")
        example.click()
        expect(page.locator("#transcript .caller")).to_contain_text("When are you open on Friday?")
        expect(page.locator("#transcript .agent").first).not_to_be_empty(timeout=PATIENT_MS)
        expect(empty).to_be_hidden()
        expect(page.locator("#message")).to_be_focused()


@LINES
def test_it_calls_again_when_the_server_is_back(line: str, scripted: Path, tmp_path: Path, quiet: Browser) -> None:
    port = str(free_port())
    command = [sys.executable, "-m", "voicepipe", "pop", "--config", str(scripted), "--port", port]

    @contextmanager
    def server() -> Iterator[str]:
        log = tmp_path / "pop.log"
        with log.open("w") as output:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            url = address(child, log)
            yield url
            child.send_signal(signal.SIGTERM)
            with suppress(httpx.TransportError):  # it has ended already
                while httpx.get(f"{url}/readyz").is_success:  # or the two would count as one
                    time.sleep(0.05)
        finally:
            child.send_signal(signal.SIGTERM)  # the second ends the calls that go on
            child.wait(60)

    page = quiet.new_page()
    with server() as url:
        page.goto(url)
        choose(page, line)
        page.click("#talk")
        says(page, "Listening")
    expect(page.locator("#notice")).to_contain_text("Trying again in", timeout=PATIENT_MS)
    with server():
        says(page, "Listening")
        typed(page, "hello")
        page.close()


def test_a_key_that_cannot_travel_on_a_websocket_is_told_from_a_server_that_is_full(desk: str, quiet: Browser) -> None:
    with opened(quiet, f"{desk}/#key=open%2Fsesame%3D", "websocket") as page:
        page.click("#talk")
        expect(page.locator("#notice")).to_contain_text("Browsers cannot send this key over a WebSocket")
        says(page, "Not connected")
        choose(page, "webrtc")
        page.click("#talk")
        says(page, "Listening")


def test_by_keyboard_alone(desk: str, quiet: Browser) -> None:
    with opened(quiet, desk) as page:
        sent: list[str] = []
        page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(str(frame))))
        keys = page.keyboard
        keys.press("Tab")
        expect(page.get_by_role("link", name="Dashboard")).to_be_focused()
        keys.press("Tab")
        keys.press("Enter")
        expect(page.locator("#settings")).to_have_attribute("open", "")
        keys.press("Tab")
        expect(page.locator("#agent")).to_be_focused()
        keys.press("Tab")
        keys.press("ArrowDown")
        expect(page.locator("#voice")).to_have_value("scripted")
        keys.press("Tab")
        expect(page.locator("#line")).to_be_focused()
        keys.press("Escape")
        expect(page.locator("#settings")).not_to_have_attribute("open", "")
        keys.press("Tab")
        expect(page.locator("#talk")).to_be_focused()
        keys.press("Enter")
        says(page, "Listening")
        assert any('"output":{"voice":"scripted"}' in frame for frame in sent)
        keys.press("Enter")
        expect(page.locator("#talk")).to_have_text("Unmute")
        keys.press("Tab")
        expect(page.locator("#hang-up")).to_be_focused()
        keys.press("Enter")
        says(page, "Ready")


@pytest.mark.parametrize("reason", ["server", "network"])
def test_websocket_takes_over_where_webrtc_does_not_connect(reason: str, desk: str, quiet: Browser) -> None:
    page = quiet.new_page()
    if reason == "server":
        page.route("**/v1/realtime/calls*", lambda route: route.fulfill(status=405, body="Method Not Allowed"))
    else:
        page.clock.install()
        page.add_init_script(
            "const Real = RTCPeerConnection;"
            "window.RTCPeerConnection = function () { return new Real({ iceTransportPolicy: 'relay' }) }"
        )
    page.goto(desk)
    page.click("#talk")
    if reason == "network":
        says(page, "Connecting …")
        page.clock.fast_forward(10_000)
    says(page, "Listening")
    expect(page.locator("#notice")).to_contain_text("so the call goes over WebSocket.")
    expect(page.locator("#line")).to_have_value("websocket")
    page.close()


def test_the_key_in_the_address_is_taken_and_not_shown(
    tmp_path: Path, quiet: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAYGROUND_KEY", "sesame")
    config = tmp_path / "keyed.toml"
    config.write_text(SCRIPTED + '[[tenants]]\nname = "desk"\nkey_env = "PLAYGROUND_KEY"\n')
    asked: list[str] = []
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        page = quiet.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(url)
        page.click("#talk")
        expect(page.locator("#notice")).to_contain_text("This server wants a key.", timeout=PATIENT_MS)
        page.goto(f"{url}/#key=sesame")
        expect(page.locator("#agent option")).to_have_text(["front-desk"])
        assert "sesame" not in page.url + "".join(asked)
        typed(page, "hello")
        page.goto("about:blank")
        page.goto(f"{url}/#key=sesame")
        expect(page.locator("#agent option")).to_have_text(["front-desk"])
        page.close()


def test_an_agent_without_a_language_model_says_what_helps(tmp_path: Path, quiet: Browser) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "clinic.toml").write_text('name = "clinic"\ninstructions = "You answer for a practice."\n')
    config = tmp_path / "mine.toml"
    config.write_text(
        SCRIPTED.replace('llm = "scripted"', 'llm = "auto"') + '[openai]\nbase_url = "http://127.0.0.1:9/v1"\n'
        '[pop]\nagents = "agents"\ndefault_agent = "clinic"\n'
    )
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        page = quiet.new_page(viewport={"width": 390, "height": 800})
        page.goto(url)
        needs = "Agent clinic has no [[intents]], and so needs a language model"
        expect(page.locator("#lacks")).to_contain_text(needs, timeout=PATIENT_MS)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        expect(page.locator("#examples")).to_be_hidden()  # which are for the front desk
        choose(page, "websocket")
        typed(page, "hello")
        said = page.locator("#transcript .agent", has_text="I have no language model").first
        expect(said).to_be_visible(timeout=PATIENT_MS)
        page.close()
