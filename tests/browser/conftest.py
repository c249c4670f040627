"""A real browser (Debian's Chromium, driven by Playwright) before a real PoP."""

import os
import shutil
import wave
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from latency_probes.own_server import COMMAND, own_server
from tests.support.waiting import PATIENT_POP

CHROMIUM = shutil.which("chromium") or ""
SCREENSHOTS = os.environ.get("VOICEPIPE_SCREENSHOTS")
"""Where pictures go that the README shows (`make screenshots`); otherwise they end with the test."""

FLAGS = (
    "--no-sandbox",  # as root, as in a container
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    "--use-fake-ui-for-media-stream",
    "--use-fake-device-for-media-stream",
)

OpenBrowser = Callable[[Path | None], Browser]


@contextmanager
def chromium(microphone: Path | None = None) -> Iterator[Browser]:
    """A browser; `microphone` is a WAV file that it hears once, from the moment at which a page asks for it."""
    if not CHROMIUM:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    speaks = [f"--use-file-for-fake-audio-capture={microphone}%noloop"] if microphone else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, *speaks])
        try:
            yield browser
        finally:
            browser.close()


@pytest.fixture(scope="module")
def pop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a fresh PoP with the default engines."""
    roomy = tmp_path_factory.mktemp("roomy") / "roomy.toml"
    roomy.write_text("[pop]\nslots = 60\n")  # On a slow machine more calls overlap than its cores are to hear.
    # Pictures show the budget and the slots that people have, so they are taken where calls are answered within them.
    with own_server(COMMAND if SCREENSHOTS else (*PATIENT_POP, "--config", str(roomy))) as url:
        yield url


SCRIPTED = """
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration that starts at once: what it hears and says is not looked at."""
    file = tmp_path_factory.mktemp("scripted") / "scripted.toml"
    file.write_text(SCRIPTED)
    return file


@pytest.fixture(scope="module")
def desk(scripted: Path) -> Iterator[str]:
    """The address of a PoP with scripted engines."""
    with own_server((*PATIENT_POP, "--config", str(scripted))) as url:
        yield url


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser whose microphone hears nothing."""
    silence = tmp_path_factory.mktemp("quiet") / "silence.wav"
    with wave.open(str(silence), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(24_000)
        file.writeframes(bytes(48_000))
    with chromium(silence) as browser:
        yield browser


@pytest.fixture
def picture(tmp_path: Path) -> Callable[[Page, str], None]:
    """Takes a picture of a page; `make screenshots` keeps it as pops/dashboards/NAME.png."""
    folder = Path(SCREENSHOTS) if SCREENSHOTS else tmp_path

    def take(page: Page, name: str) -> None:
        page.screenshot(path=folder / f"{name}.png")

    return take
