"""The page of kept calls: a call is found, opened, and a turn of it shown with its waterfall."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from latency_probes.own_server import own_server
from tests.browser.conftest import chromium
from tests.browser.looks import problems_in_every_look, silent_console
from tests.spoken import spoken
from tests.test_e2e import dial
from tests.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e
expect.set_options(timeout=60_000)  # for slow machines


@pytest.fixture(scope="module")
def keeps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PoP that keeps one call, of two turns."""
    folder: Path = tmp_path_factory.mktemp("keeps")
    (folder / "pop.toml").write_text('[records]\nfolder = "kept"\n')
    with own_server((*PATIENT_POP, "--config", str(folder / "pop.toml"))) as url:
        asyncio.run(dial(url, spoken("hours", "parking")))
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
