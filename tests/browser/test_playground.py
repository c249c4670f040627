"""The page `/` as someone meets it who talks to it: over both lines, by keyboard, on a phone, after a restart."""

import re
import signal
import socket
import subprocess
import sys
import time
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from latency_probes import clips
from latency_probes.own_server import COMMAND, address, own_server
from latency_probes.timeline import WIRE_RATE
from tests.browser.conftest import chromium

pytestmark = pytest.mark.e2e

LINES = pytest.mark.parametrize("line", ["webrtc", "websocket"])
PATIENT_MS = 60_000
"""For what takes a second on a machine that has nothing else to do."""
LOUD = re.compile(r"--level: (0\.[2-9]|1)")
GREETING_S = 6.0
INTO_THE_REPLY_S = 3.0
SCRIPTED = """
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""


def recording(path: Path, *parts: str | float) -> Path:
    """A WAV file of clips, by their ids, and of silences in seconds."""
    known = {utterance.id: utterance for utterance in clips.load()}
    sounds = [
        np.zeros(round(part * WIRE_RATE), np.int16) if isinstance(part, float) else clips.speech(known[part], 0).pcm
        for part in parts
    ]
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(WIRE_RATE)
        file.writeframes(np.concatenate(sounds).tobytes())
    return path


@contextmanager
def opened(browser: Browser, url: str, line: str = "websocket") -> Iterator[Page]:
    """The page, with this line chosen; it is an error if the browser reports one."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(url)
    expect(page.locator("#agent option")).to_have_text(["front-desk"])
    page.evaluate("line => { document.getElementById('line').value = line }", line)
    try:
        yield page
        assert not problems
    finally:
        page.close()


def says(page: Page, status: str) -> None:
    expect(page.locator("#status")).to_have_text(status, timeout=PATIENT_MS)


def typed(page: Page, text: str) -> None:
    """Send `text` and wait for a reply to begin."""
    answers = page.locator("#transcript .agent").count()
    page.fill("#message", text)
    page.press("#message", "Enter")
    expect(page.locator("#transcript .agent").nth(answers)).not_to_be_empty(timeout=PATIENT_MS)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser whose microphone hears nothing."""
    with chromium(recording(tmp_path_factory.mktemp("quiet") / "silence.wav", 1.0)) as browser:
        yield browser


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration that starts at once: what it hears and says is not looked at."""
    file = tmp_path_factory.mktemp("scripted") / "scripted.toml"
    file.write_text(SCRIPTED)
    return file


@pytest.fixture(scope="module")
def desk(scripted: Path) -> Iterator[str]:
    with own_server((*COMMAND, "--config", str(scripted))) as url:
        yield url


@LINES
def test_a_spoken_question_and_an_interruption(
    line: str, pop: str, tmp_path: Path, picture: Callable[[Page, str], None]
) -> None:
    caller = (GREETING_S, "finished-001-rms", INTO_THE_REPLY_S, "barge_in-014-slt", 1.0)
    with chromium(recording(tmp_path / "caller.wav", *caller)) as browser, opened(browser, pop, line) as page:
        page.click("#talk")
        says(page, "The agent is speaking")
        for who in ("agent", "caller"):
            expect(page.locator(f"#{who}-level")).to_have_attribute("style", LOUD, timeout=PATIENT_MS)
        expect(page.locator("#strip label")).to_have_count(2, timeout=PATIENT_MS)
        says(page, "Listening")

        said = page.locator("#transcript > li")
        assert [kind.split()[0] for kind in said.evaluate_all("all => all.map(item => item.className)")] == [
            "agent", "caller", "agent", "caller", "agent"
        ]  # fmt: skip
        expect(said.nth(0)).to_contain_text("How can I help you?")
        expect(said.nth(1)).to_contain_text("open")
        expect(said.nth(2)).to_contain_text("interrupted")
        heard = said.nth(2).locator(".words").evaluate("words => words.firstChild?.textContent ?? ''")
        assert "closed" not in heard, "the reply's text ends where it was cut"
        expect(said.nth(3)).to_contain_text("person")
        expect(said.nth(4)).to_contain_text("colleague")
        expect(said.nth(4).locator(".mark")).to_have_count(0)

        expect(page.locator("#turn-title")).to_have_text("Turn 2 of 2")
        rows = page.locator("#waterfall .row")
        expect(rows).to_have_count(5)
        assert rows.locator(".bar.asr.hid").count() == 1, "the words were asked for while it still waited"
        newest = page.locator("#answer").inner_text()
        page.locator("#strip label").first.click()
        expect(page.locator("#turn-title")).to_have_text("Turn 1 of 2")
        expect(page.locator("#answer")).not_to_have_text(newest)
        page.keyboard.press("ArrowRight")
        expect(page.locator("#answer")).to_have_text(newest)

        if line == "webrtc":
            picture(page, "playground")
        page.set_viewport_size({"width": 390, "height": 844})
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing sticks out on a phone"
        if line == "webrtc":
            page.set_viewport_size({"width": 390, "height": 1190})  # all of it, as if scrolled
            picture(page, "playground-narrow")

        page.click("#hang-up")
        says(page, "Ready")


@LINES
def test_typing_cuts_what_is_being_said(line: str, desk: str, quiet: Browser) -> None:
    with opened(quiet, desk, line) as page:
        typed(page, "hello")  # without a microphone
        says(page, "The agent is speaking")
        typed(page, "and again")
        expect(page.locator("#transcript .mark").first).to_have_text("interrupted", timeout=PATIENT_MS)


@LINES
def test_it_calls_again_when_the_server_is_back(line: str, scripted: Path, tmp_path: Path, quiet: Browser) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    command = [sys.executable, "-m", "voicepipe", "pop", "--config", str(scripted), "--port", port]

    @contextmanager
    def server() -> Iterator[str]:
        log = tmp_path / "pop.log"
        with log.open("w") as output:
            child = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield address(child, log)
        finally:
            child.send_signal(signal.SIGTERM)
            time.sleep(0.5)  # or the two would count as one
            child.send_signal(signal.SIGTERM)  # the second ends the calls that go on
            child.wait(60)

    page = quiet.new_page()
    with server() as url:
        page.goto(url)
        page.evaluate("line => { document.getElementById('line').value = line }", line)
        page.click("#talk")
        says(page, "Listening")
    says(page, "Waiting to try again")
    expect(page.locator("#notice")).to_contain_text("Trying again in")
    with server():
        says(page, "Listening")
        typed(page, "hello")
        page.close()


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
    with own_server((*COMMAND, "--config", str(config))) as url:
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
