"""The playground as a test uses it: opened, watched, and with a microphone that says what it is given."""

import base64
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, Request, WebSocket, expect

from latency_probes import clips
from latency_probes.timeline import WIRE_RATE

LINES = pytest.mark.parametrize("line", ["webrtc", "websocket"])
PATIENT_MS = 60_000
"""For what takes a second on a machine that has nothing else to do."""

MOUTH = """
navigator.mediaDevices.getUserMedia = async () => {
  const context = new AudioContext();
  const microphone = context.createMediaStreamDestination();
  const room = new ConstantSourceNode(context, { offset: 0 }); // with no source at all Chromium sends no sound
  room.connect(microphone);
  room.start();
  window.speak = ([base64, rate]) => {
    const pcm = new Int16Array(Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)).buffer);
    const buffer = context.createBuffer(1, pcm.length, rate);
    buffer.copyToChannel(Float32Array.from(pcm, (sample) => sample / 32768), 0);
    const source = new AudioBufferSourceNode(context, { buffer });
    source.connect(microphone);
    source.start();
  };
  return microphone.stream;
};
"""
"""For `opened`: a microphone that is silent but for what `speak` says."""

PROMPT = """
const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
const granted = new Promise((resolve) => (window.grant = resolve));
window.given = [];
navigator.mediaDevices.getUserMedia = async (wanted) => {
  await granted;
  given.push(await ask(wanted));
  return given.at(-1);
};
"""
"""For `opened`: the microphone is given once somebody calls `grant()`; `given` are the streams."""


@contextmanager
def opened(browser: Browser, url: str, line: str = "websocket", before: str = "") -> Iterator[Page]:
    """The page, with this line chosen; it is an error if the browser reports one. `before`: a script, run first."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.add_init_script(before or ";")
    page.goto(url)
    expect(page.locator("#agent option")).to_have_text(["front-desk"])
    choose(page, line)
    try:
        yield page
        assert not problems
    finally:
        page.close()


def choose(page: Page, line: str) -> None:
    """Over which line the next call goes."""
    page.evaluate("line => { document.getElementById('line').value = line }", line)


def says(page: Page, status: str) -> None:
    expect(page.locator("#status")).to_have_text(status, timeout=PATIENT_MS)


def typed(page: Page, text: str) -> None:
    """Send `text` and wait for a reply to begin."""
    answers = page.locator("#transcript .agent").count()
    page.fill("#message", text)
    page.press("#message", "Enter")
    expect(page.locator("#transcript .agent").nth(answers)).not_to_be_empty(timeout=PATIENT_MS)


def spoken(page: Page, *parts: str | float) -> None:
    """Say clips, by their ids, and silences in seconds into the microphone of MOUTH; returns at the beginning."""
    known = {utterance.id: utterance for utterance in clips.load()}
    sounds = [
        np.zeros(round(part * WIRE_RATE), np.int16) if isinstance(part, float) else clips.speech(known[part], 0).pcm
        for part in parts
    ]
    page.evaluate("sound => speak(sound)", [base64.b64encode(np.concatenate(sounds).tobytes()).decode(), WIRE_RATE])


def placed(page: Page) -> list[str]:
    """The calls that the page places from now on."""
    calls: list[str] = []

    def socket(opened: WebSocket) -> None:
        calls.append(opened.url)

    def request(sent: Request) -> None:
        if sent.method == "POST" and sent.url.endswith("/calls"):
            calls.append(sent.url)

    page.on("websocket", socket)
    page.on("request", request)
    return calls
