"""The directory's map before a demo of three PoPs: a caller is placed, a PoP stops, the next call goes elsewhere."""

import asyncio
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager

import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Dialog, Locator, Page, Route, expect
from websockets.sync.client import connect

from tests.browser.conftest import SCREENSHOTS, chromium
from tests.browser.looks import problems_in_every_look
from tests.support.ports import free_port
from voicepipe import config as configuration
from voicepipe.config import HttpConfig
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.demo.demo_fleet import standing
from voicepipe.demo.hosts import CITIES
from voicepipe.serving.runtime import url

pytestmark = pytest.mark.e2e

WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 400, "height": 860}
SCRIPTED = EnginesConfig(vad="scripted", asr="scripted", llm="scripted", tts="scripted")
PATIENT_MS = 30_000
TOO_LATE = "no PoP would answer in time: this one comes closest"
expect.set_options(timeout=PATIENT_MS)
POPS = 3
FRANKFURT, VIRGINIA, TOKYO = (city.place for city in CITIES[:POPS])
Open = Callable[..., Page]
Picture = Callable[[Page, str], None]


@pytest.fixture(scope="module")
def fleet() -> Iterator[str]:
    """The address of a directory with the demo's PoPs, whose engines are scripted. It runs in a thread: Playwright has
    an event loop of its own."""
    http = HttpConfig(port=0)
    http = msgspec.structs.replace(http, port=free_port())
    pop = configuration.load().pop
    if not SCREENSHOTS:  # Pictures show the budget that people have; tests run on busy machines, too.
        pop = msgspec.structs.replace(pop, budget_ms=600_000)
    config = msgspec.structs.replace(configuration.load(), http=http, engines=SCRIPTED, pop=pop)
    ready: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        over = asyncio.Event()
        async with standing(config, POPS):
            ready.set_result((asyncio.get_running_loop(), over))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    loop, over = ready.result(60)
    yield url(http)
    loop.call_soon_threadsafe(over.set)
    thread.join(30)


@pytest.fixture(scope="module")
def browser(fleet: str) -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_map(browser: Browser, fleet: str) -> Iterator[Open]:
    """Opens the map. The test fails if the console tells of an error, or if a request leaves the directory. `refuses`:
    it is refused something, of which browsers tell the console."""
    problems: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            problems.append(message.text)

    with ExitStack() as contexts:

        def open_map(
            size: dict[str, int] = WIDE,
            scheme: str = "light",
            refuses: dict[str, Callable[[Route], None]] | None = None,
        ) -> Page:
            context = browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
            contexts.callback(context.close)
            page = context.new_page()
            for pattern, answer in (refuses or {}).items():
                page.route(pattern, answer)
            if not refuses:
                page.on("console", note)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("request", lambda sent: None if sent.url.startswith(fleet) else problems.append(sent.url))
            page.goto(f"{fleet}/map")
            return page

        yield open_map
    assert not problems


def pop(page: Page, name: str) -> Locator:
    """Its row in the table."""
    return page.locator(f'#pops tr[data-pop="{name}"]')


def all_take_calls(page: Page) -> None:
    expect(page.locator("#state")).to_have_text(f"{POPS} PoPs take calls", timeout=PATIENT_MS)


def click_at(page: Page, place: tuple[float, float]) -> None:
    """On the map."""
    box = page.locator("#world").bounding_box()
    assert box
    latitude, longitude = place
    page.mouse.click(
        box["x"] + (longitude + 180) / 360 * box["width"], box["y"] + (80 - latitude) / 137 * box["height"]
    )


def called(page: Page, fleet: str) -> dict[str, str]:
    """A test call: its line in the list, by the columns' names."""
    newest = page.locator("#placed tr").first
    placed = httpx.get(f"{fleet}/v1/pops").json()["placed"]
    if placed:  # The page may not have heard of the last one yet.
        expect(newest).to_have_attribute("data-call", placed[0]["call"])
    page.click("#call")
    expect(newest).to_be_visible()
    if placed:
        expect(newest).not_to_have_attribute("data-call", placed[0]["call"])
    return {str(cell.get_attribute("data-name")): cell.inner_text() for cell in newest.locator("td").all()}


@contextmanager
def live_calls(fleet: str, *places: tuple[float, float]) -> Iterator[None]:
    """Calls from there, at the PoPs that the directory names."""
    with ExitStack() as calls:
        for latitude, longitude in places:
            asked = {"place": {"latitude": latitude, "longitude": longitude}}
            there = httpx.post(f"{fleet}/v1/calls", json=asked).json()["candidates"][0]
            # Nobody reads the greeting's sound. With a bound, pings behind it would go unanswered, and end the call
            # where the page is slow.
            address = f"{there['url']}?token={there['token']}"
            calls.enter_context(connect(address, close_timeout=0.1, max_queue=None)).recv()
        yield


def has_no_horizontal_scroll(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def test_the_next_call_goes_elsewhere_when_its_pop_is_stopped(open_map: Open, fleet: str) -> None:
    page = open_map()
    all_take_calls(page)
    click_at(page, TOKYO)
    expect(page.locator("#where")).to_have_text(re.compile("^The caller is (in|near) Tokyo.$"))
    expect(page.locator("#world .caller path")).to_be_visible()
    stored = page.evaluate("JSON.parse(sessionStorage.getItem('voicepipe.place'))")
    assert (stored["latitude"], stored["longitude"]) == pytest.approx(TOKYO, abs=0.6)
    placed = called(page, fleet)
    assert (placed["Sent to"], placed["Why"]) == ("nrt1", "the nearest in time")
    assert 60 <= int(placed["Delay to PoP"].removesuffix(" ms")) <= 90, "a round trip as reckoned, and playout"
    expect(page.locator("#world .arc")).to_be_visible()
    expect(page.locator("#world .pop.chosen")).to_have_attribute("data-pop", "nrt1")

    pop(page, "nrt1").get_by_role("button", name="Stop").click()
    expect(pop(page, "nrt1").locator(".status")).to_have_text(re.compile("^stopped"))
    placed = called(page, fleet)
    if placed["Sent to"] == "nrt1":  # Its lease is not over yet, if this machine has time.
        expect(page.locator("#named")).to_have_text(re.compile("nrt1 has stopped.* goes on to (iad1|fra1)"))
    expect(page.locator("#world .pop.chosen")).not_to_have_attribute("data-pop", "nrt1")
    expect(pop(page, "nrt1").locator(".load")).to_have_text("–", timeout=PATIENT_MS)
    placed = called(page, fleet)
    assert placed["Sent to"] in ("fra1", "iad1") and placed["Why"] == TOO_LATE
    assert "nrt1" not in placed["Others"]

    pop(page, "nrt1").get_by_role("button", name="Start").click()
    all_take_calls(page)
    assert called(page, fleet)["Sent to"] == "nrt1"


def test_a_caller_is_placed_by_keyboard_and_stays_when_the_page_is_opened_again(open_map: Open, fleet: str) -> None:
    page = open_map()
    all_take_calls(page)
    expect(page.locator("#where")).to_have_text(re.compile("^No place chosen"))
    expect(page.locator("#talk")).to_have_text("Talk in the playground")
    page.locator("#latitude").focus()
    page.keyboard.type("40.7")
    page.keyboard.press("Tab")
    page.keyboard.type("-74")
    page.keyboard.press("Tab")
    expect(page.locator("#where")).to_have_text("The caller is in New York.")
    page.reload()
    expect(page.locator("#city")).to_have_value("New York")
    all_take_calls(page)
    assert called(page, fleet)["Sent to"] == "iad1"
    expect(page.locator("#talk")).to_have_text("Talk in the playground from this place")
    page.click("#forget")
    expect(page.locator("#where")).to_have_text(re.compile("^No place chosen"))
    assert page.evaluate("sessionStorage.getItem('voicepipe.place')") is None
    assert called(page, fleet)["Sent to"] == "fra1", "the directory stands in Frankfurt"


def test_a_drained_pop_lets_its_call_end_and_can_be_started_again(open_map: Open, fleet: str) -> None:
    page = open_map()
    all_take_calls(page)
    with live_calls(fleet, VIRGINIA):
        expect(pop(page, "iad1").locator(".load")).to_have_text("1 of 4")
        pop(page, "iad1").get_by_role("button", name="Drain").click()
        expect(pop(page, "iad1").locator(".status")).to_have_text("draining")
        expect(pop(page, "iad1").locator(".load")).to_have_text("1 of 4")
    expect(pop(page, "iad1").locator(".status")).to_have_text("stopped", timeout=PATIENT_MS)
    button = pop(page, "iad1").get_by_role("button", name="Start")
    button.focus()
    page.keyboard.press("Enter")
    expect(button).to_be_hidden()
    expect(pop(page, "iad1").get_by_role("button").first).to_be_focused()
    all_take_calls(page)


def test_a_directory_that_is_no_demo_wants_its_operators_key_and_stops_no_pop(open_map: Open) -> None:
    def locked(route: Route) -> None:
        known = route.request.headers.get("authorization") == "Bearer k-operator"
        route.continue_() if known else route.fulfill(status=401, json={"error": {"message": "Send a key."}})

    def missing(route: Route) -> None:
        route.fulfill(status=404, json={"error": {"message": "There is no such thing."}})

    page = open_map(refuses={"**/v1/pops": locked, "**/v1/demo": missing, "**/v1/calls": locked})
    expect(page.locator("#key")).to_be_focused(timeout=PATIENT_MS)
    page.keyboard.type("k-operator")
    page.keyboard.press("Enter")
    all_take_calls(page)
    expect(page.locator("#unlock")).to_be_hidden()
    buttons = pop(page, "fra1").get_by_role("button")
    expect(buttons).to_have_text(["Drain"])
    asked: list[str] = []

    def decline(dialog: Dialog) -> None:
        asked.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", decline)
    buttons.click()
    assert asked == ["Drain fra1? It takes no new calls and ends with its last one."]
    expect(pop(page, "fra1").locator(".status")).to_have_text("takes calls")


def test_where_the_operators_key_places_no_calls_the_button_goes_and_says_why(open_map: Open) -> None:
    def wants_tenant(route: Route) -> None:
        route.fulfill(status=401, json={"error": {"message": "Send a key."}})

    page = open_map(refuses={"**/v1/calls": wants_tenant})
    all_take_calls(page)
    page.click("#call")
    expect(page.locator("#named")).to_have_text(re.compile("^Only a tenant’s key lets a call in"))
    expect(page.locator("#call")).to_be_hidden()
    expect(page.locator("#talk")).to_be_focused()


COUNTS = """
addEventListener("DOMContentLoaded", () => {
  window.told = { notice: 0, state: 0 };
  for (const id in told) {
    new MutationObserver(() => (told[id] += 1)).observe(document.getElementById(id), { childList: true });
  }
});
"""


def test_what_stays_as_it_is_is_read_out_once_and_a_mark_can_be_pointed_at(open_map: Open) -> None:
    views = 0

    def cut_off(route: Route) -> None:
        nonlocal views
        views += 1
        route.fulfill(json={**httpx.get(route.request.url).json(), "cut_off": True})

    page = open_map(refuses={"**/v1/pops": cut_off})
    page.add_init_script(COUNTS)
    page.reload()
    expect(page.locator("#notice")).to_have_text(re.compile("^This directory seems to be cut off from its PoPs."))
    all_take_calls(page)
    page.evaluate("told.notice = told.state = 0")
    mark = page.locator('#world .pop[data-pop="nrt1"]').element_handle()
    before = views
    for _ in range(300):
        if views >= before + 3:
            break
        page.wait_for_timeout(100)
    assert page.evaluate("told") == {"notice": 0, "state": 0}
    assert mark and mark.evaluate("mark => mark.isConnected"), "its title can be read"
    assert "nrt1: takes calls" in mark.evaluate("mark => mark.querySelector('title').textContent")
    mark.evaluate("mark => { window.hovered = 0; mark.onpointerenter = () => (hovered += 1) }")
    page.locator('#world .pop[data-pop="nrt1"] .shape').hover()
    assert page.evaluate("hovered") == 1
    page.mouse.down()
    page.mouse.up()
    expect(page.locator("#where")).to_have_text(re.compile("^The caller is (in|near) Tokyo.$"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_map_on_any_screen(open_map: Open, fleet: str, picture: Picture, size: dict[str, int], scheme: str) -> None:
    page = open_map(size, scheme)
    all_take_calls(page)
    # Calls of the test before may still end, or be waited for: with them fra1 would share its last place.
    expect(pop(page, "fra1").locator(".load")).to_have_text(re.compile(r"^0 of 4\s*$"))
    with live_calls(fleet, FRANKFURT, FRANKFURT, VIRGINIA):
        for city in ("São Paulo", "Singapore", "Madrid"):
            page.select_option("#city", city)
            called(page, fleet)
        page.locator("#call").blur()
        expect(pop(page, "fra1").locator(".load")).to_have_text(re.compile("^2 of 4"))
        assert page.locator("#world .pop").count() == POPS
        assert has_no_horizontal_scroll(page)
        page.wait_for_timeout(900)  # until the last call's line has arrived
        name = "-".join(["map", *(["narrow"] if size is NARROW else []), *(["dark"] if scheme == "dark" else [])])
        picture(page, name)
        if (size, scheme) == (WIDE, "light"):
            assert problems_in_every_look(page) == []
