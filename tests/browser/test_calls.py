"""The page of kept calls: a call is found, opened, and a turn of it shown with its waterfall."""

import asyncio
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from latency_probes.own_server import own_server
from tests.browser.conftest import SCRIPTED, chromium
from tests.browser.looks import problems_in_every_look, silent_console
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP
from tests.system.test_e2e import dial

pytestmark = pytest.mark.e2e
expect.set_options(timeout=60_000)  # for slow machines

SMALL = re.compile(r"^0\.0*[1-9]\d\d$")
"""Money: three digits of it, however long the call lasted."""
CALLS_ONCE = """() => new Promise((over) => {
  const call = new WebSocket(`ws://${location.host}/v1/realtime`);
  call.onmessage = ({ data }) => JSON.parse(data).type === "response.done" && call.close();
  call.onclose = over;
})"""
"""A call by WebSocket, up to the end of its greeting."""


@pytest.fixture(scope="module")
def keeps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PoP that keeps one call, of two turns."""
    with keeping(tmp_path_factory.mktemp("keeps")) as url:
        asyncio.run(dial(url, spoken("hours", "parking")))
        yield url


@contextmanager
def keeping(folder: Path, config: str = "") -> Iterator[str]:
    """A PoP that keeps records."""
    (folder / "pop.toml").write_text(f'[records]\nfolder = "kept"\n{config}')
    with own_server((*PATIENT_POP, "--config", str(folder / "pop.toml"))) as url:
        yield url


@pytest.fixture(scope="module")
def browser(keeps: str) -> Iterator[Browser]:
    """Opened after the call: Playwright has an event loop of its own."""
    with chromium() as browser:
        yield browser


def test_a_kept_call_is_opened_and_a_turn_of_it_shown(keeps: str, browser: Browser) -> None:
    page = browser.new_page()
    with silent_console(page):
        page.goto(f"{keeps}/calls")
        expect(page.locator("#calls tr")).to_have_count(1)
        page.locator("#calls button").click()
        expect(page.locator("#said li")).to_have_count(3)
        expect(page.locator("#said .heard").first).to_contain_text("Caller")
        page.locator("#said button", has_text="ms").first.click()
        expect(page.locator("#latency")).to_have_text(re.compile(r"^\d+$"))
        expect(page.locator("#waterfall .bar").first).to_be_visible()
        page.locator("#turn").get_by_role("button", name="Close").click()
        assert "#rtc_" in page.url, "an address that leads to this call"
    page.close()


def test_the_address_of_a_call_opens_it(keeps: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{keeps}/calls")
    call_id = page.locator("#calls tr").get_attribute("data-call")
    page.goto("about:blank")
    page.goto(f"{keeps}/calls#{call_id}")
    expect(page.locator("#call-title")).to_have_text(f"Call {call_id}")
    page.close()


def test_what_does_not_fit_is_not_listed(keeps: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{keeps}/calls")
    page.locator("#reason").select_option("error")
    expect(page.locator("#calls-empty")).to_be_visible()
    page.locator("#reason").select_option("")
    expect(page.locator("#calls tr")).to_have_count(1)
    page.close()


def test_it_looks_well_for_everybody(keeps: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{keeps}/calls")
    expect(page.locator("#calls tr")).to_have_count(1)
    assert problems_in_every_look(page) == []
    page.locator("#calls button").click()
    expect(page.locator("#said li")).to_have_count(3)
    assert problems_in_every_look(page) == []
    page.close()


@pytest.fixture
def priced(browser: Browser, tmp_path: Path) -> Iterator[str]:
    """The address of a cheap PoP that traces its calls, and keeps one that nobody said anything in."""
    config = f'[traces]\nendpoint = "http://127.0.0.1:{free_port()}"\n[pop]\nprice_per_hour = 0.05\n{SCRIPTED}'
    with keeping(tmp_path, config) as url:
        page = browser.new_page()
        page.goto(f"{url}/healthz")
        page.evaluate(CALLS_ONCE)
        page.close()
        yield url


def test_a_call_shows_its_cost_and_its_trace_where_it_has_them(keeps: str, priced: str, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(f"{keeps}/calls")
    expect(page.locator("#calls tr")).to_have_count(1)
    expect(page.locator("th.cost")).to_be_hidden()
    page.goto(f"{priced}/calls")
    expect(page.locator("th.cost")).to_be_visible()
    expect(page.locator("#calls .cost")).to_have_text(SMALL)
    assert problems_in_every_look(page) == []
    page.locator("#calls button").click()
    facts = page.locator("#facts")
    expect(facts.locator("dt", has_text="Cost").locator("+ dd")).to_have_text(SMALL)
    expect(facts.locator("dt", has_text="Trace").locator("+ dd")).to_have_text(re.compile(r"^[0-9a-f]{32}$"))
    assert problems_in_every_look(page) == []
    page.close()
