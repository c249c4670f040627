"""The operator's dashboard before a PoP that has had calls: charts, one turn, phones, a server that restarts."""

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from latency_probes.own_server import own_server
from latency_probes.sip import dialled
from tests.browser.conftest import SCREENSHOTS, chromium
from tests.browser.looks import problems_in_every_look
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP
from tests.system.test_e2e import dial

pytestmark = pytest.mark.e2e
expect.set_options(timeout=60_000)  # for slow machines

WIDE, PHONE = {"width": 1680, "height": 1000}, {"width": 390, "height": 844}
CALLS = 12 if SCREENSHOTS else 2
EVERY_S = 6
"""One call after the other, so that they hardly slow each other down."""
POINTS = "#latency-chart .scatterlayer .trace:first-child .points path"
WORDS = re.compile(r"\w+ \w+")
Open = Callable[..., Page]
Picture = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def busy(pop: str) -> str:
    """The address of a PoP that has answered `CALLS` callers, twice each."""

    async def talk() -> None:
        questions = spoken("hours", "parking")
        async with asyncio.TaskGroup() as calls:
            for number in range(CALLS):
                calls.create_task(dial(pop, questions[:: 1 - 2 * (number % 2)], number))
                await asyncio.sleep(EVERY_S)

    asyncio.run(talk())
    return pop


@pytest.fixture(scope="module")
def browser(busy: str) -> Iterator[Browser]:
    """Opened after the calls: Playwright has an event loop of its own."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens the dashboard; what its console says of errors fails the test at the end. `loses`: the server goes away."""
    errors: list[str] = []
    contexts = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            errors.append(message.text)

    def open_page(url: str, size: dict[str, int], scheme: str = "light", loses: bool = False) -> Page:
        context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: errors.append(str(error)))
        if not loses:  # Browsers tell the console of every answer that does not come.
            page.on("console", note)
        page.goto(f"{url}/dashboard")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not errors


def loaded(page: Page) -> Page:
    if SCREENSHOTS:
        page.select_option("#minutes", "5")
    expect(page.locator("#turns tr").nth(CALLS - 1)).to_be_attached()
    expect(page.locator(POINTS).nth(CALLS - 1)).to_be_attached()
    return page


def expect_a_turn(page: Page) -> None:
    """The card shows one with its words and its waterfall; Escape puts it away."""
    card = page.locator("dialog#turn")
    expect(card).to_be_visible()
    expect(card.locator("#heard")).to_have_text(WORDS)
    expect(card.locator("#answered")).to_have_text(WORDS)
    expect(card.locator("#latency")).to_have_text(re.compile(r"^\d+$"))
    expect(card.locator(".bar.wait")).to_be_visible()
    assert card.locator(".row").count() == 5
    page.keyboard.press("Escape")
    expect(card).to_be_hidden()


@contextmanager
def on_the_line(page: Page) -> Iterator[None]:
    """A silent call from another tab."""
    tab = page.context.new_page()
    tab.goto(f"{page.url.removesuffix('/dashboard')}/healthz")
    tab.evaluate("() => { window.call = new WebSocket(`ws://${location.host}/v1/realtime`) }")
    yield
    tab.close()


def has_no_horizontal_scroll(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_charts_and_tables_show_what_happened(busy: str, open_page: Open, picture: Picture) -> None:
    page = loaded(open_page(busy, WIDE))
    with on_the_line(page):
        expect(page.locator("#calls tr")).to_have_count(1)
        expect(page.locator("#calls")).to_contain_text("front-desk")
        expect(page.locator("#state")).to_have_text("Taking calls")
        expect(page.locator("#latency-note")).to_have_text(re.compile(r"\d+ timed turns\s· cut in on \d"))
        expect(page.locator("#p50")).to_have_text(re.compile(r"^\d+$"))
        expect(page.locator("#p99")).to_have_text("–")
        heights = {
            name: page.evaluate(
                f"document.getElementById('{name}-chart').data.flatMap(({{ y }}) => y).reduce((sum, y) => sum + y, 0)"
            )
            for name in ("latency", "stages", "speculation")
        }
        assert all(height > 0 for height in heights.values()), heights
        assert has_no_horizontal_scroll(page)
        picture(page, "dashboard")
    expect(page.locator("#calls-empty")).to_be_visible(timeout=10_000)


def test_a_click_and_a_key_show_a_turn(busy: str, open_page: Open) -> None:
    page = loaded(open_page(busy, WIDE))
    box = page.locator(POINTS).first.bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    expect_a_turn(page)
    page.locator("#turns tr").first.click()
    expect_a_turn(page)
    button = page.locator("#turns button").nth(1)
    button.focus()
    page.keyboard.press("Enter")
    expect_a_turn(page)
    expect(button).to_be_focused()
    page.locator("#latency-chart").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#chosen")).to_have_text(re.compile(r"^\d\d:\d\d:\d\d, \d+ ms; press Enter"))
    page.keyboard.press("Enter")
    expect_a_turn(page)


def test_a_phone_in_the_dark(busy: str, open_page: Open, picture: Picture) -> None:
    page = loaded(open_page(busy, PHONE, "dark"))
    assert has_no_horizontal_scroll(page)
    lightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert max(lightness) < 64
    picture(page, "dashboard-narrow")
    page.locator("#turns button").first.press("Enter")
    expect_a_turn(page)
    assert has_no_horizontal_scroll(page)


SILENCE = b"\xff" * 160
"""20 ms of it, in PCMU."""


@contextmanager
def phoned(url: str, port: int) -> Iterator[None]:
    """A call by SIP that sends silence, in a thread: Playwright has an event loop of its own."""
    there, over = threading.Event(), threading.Event()

    async def call() -> None:
        held = await dialled(url, f"127.0.0.1:{port}", "", lambda data, arrived: None)
        there.set()
        while not over.is_set():
            held.send(SILENCE)
            await asyncio.sleep(0.02)
        await held.hang_up()

    thread = threading.Thread(target=asyncio.run, args=(call(),))
    thread.start()
    try:
        assert there.wait(20)
        yield
    finally:
        over.set()
        thread.join()


def test_phone_calls_show_who_calls_and_their_network_on_any_screen(open_page: Open, scripted: Path) -> None:
    port = free_port()
    command = (*PATIENT_POP, "--config", str(scripted), "--sip-port", str(port))
    with own_server(command) as url, phoned(url, port):
        for size in (WIDE, PHONE):
            page = open_page(url, size)
            row = page.locator("#calls tr")
            expect(row).to_have_count(1)
            expect(row).to_contain_text("SIP probe")
            expect(row).to_contain_text(re.compile(r"front-desk · \d+\.\d% lost, \d+ ms jitter"))
            assert has_no_horizontal_scroll(page)
            assert page.locator(".calls .scroll").evaluate("box => box.scrollWidth <= box.clientWidth")
            page.close()  # before the server goes, which it asks every second


def test_what_the_host_costs_is_shown_where_its_price_is_known(
    desk: str, open_page: Open, scripted: Path, tmp_path: Path
) -> None:
    page = open_page(desk, WIDE)
    expect(page.locator("#board")).to_be_visible()
    expect(page.locator("#cost")).to_be_hidden()
    config = tmp_path / "priced.toml"
    config.write_text(f"{scripted.read_text()}[pop]\nprice_per_hour = 2.5\nslots = 10\n")
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        page = open_page(url, WIDE, loses=True)
        expect(page.locator("#cost")).to_have_text("2.50")
        expect(page.locator("#cost-minute")).to_have_text("a call's minute 0.00417")
        expect(page.locator("#cost-idle")).to_have_text(re.compile(r"^\d+\.\d+ in \d+ (s|min)\s· \d+\.\d+ of it idle$"))
        assert problems_in_every_look(page) == []


def test_it_asks_for_a_key_and_goes_on_when_the_server_comes_back(
    open_page: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "keyed.toml"
    config.write_text(
        "[http]\noperator_key_env = 'TEST_OPERATOR'\n[engines]\nvad = 'scripted'\nasr = 'scripted'\n"
        "llm = 'scripted'\ntts = 'scripted'\n[[tenants]]\nname = 'acme'\nkey_env = 'TEST_ACME'\n"
    )
    monkeypatch.setenv("TEST_OPERATOR", "sk-operator")
    monkeypatch.setenv("TEST_ACME", "sk-acme")
    port = free_port()
    command = (sys.executable, "-m", "voicepipe", "pop", "--config", str(config), "--port", str(port))
    with own_server(command) as url:
        page = open_page(url, WIDE, loses=True)
        expect(page.locator("#key")).to_be_focused(timeout=10_000)
        assert problems_in_every_look(page) == []
        page.keyboard.type("sk-wrong")
        page.keyboard.press("Enter")
        expect(page.locator("#notice")).to_have_text("This server does not know that key.")
        page.locator("#key").fill("sk-operator")
        page.keyboard.press("Enter")
        expect(page.locator("#board")).to_be_visible()
        expect(page.locator("#unlock")).to_be_hidden()
    expect(page.locator("#notice")).to_have_text("The server does not answer; trying again.")
    with own_server(command):
        expect(page.locator("#state")).to_have_text("Taking calls")
        expect(page.locator("#notice")).to_be_hidden()
