"""The playground and the dashboard before, during and after a call in which a tool runs, in every look: nothing that
axe-core finds wrong, nothing cut off, and nothing in the browser's console."""

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from latency_probes.own_server import own_server
from tests.browser.looks import problems_in_every_look, silent_console
from tests.browser.playground import MOUTH, PATIENT_MS, says, spoken, typed
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e

QUESTION = "finished-001-joe"
BOOKING = "Have you a table for two on Sunday at eight?"
AGENTS = Path(__file__).parents[2] / "configs" / "agents"
NO_INPUT = re.compile(r"^no_input = .*$", re.MULTILINE)


@pytest.fixture
def pop(tmp_path: Path) -> Iterator[str]:
    """The address of a PoP whose front desk hangs up on nobody, however long the looks take."""
    shutil.copytree(AGENTS, tmp_path / "agents")
    agent = tmp_path / "agents" / "front-desk.toml"
    told, times = NO_INPUT.subn("no_input = []", agent.read_text())
    assert times == 1
    agent.write_text(told)
    config = tmp_path / "waits.toml"
    config.write_text('[pop]\nagents = "agents"\n')
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        yield url


@pytest.fixture
def pages(pop: str, quiet: Browser) -> Iterator[tuple[Page, Page]]:
    """The playground, whose microphone says what it is given, and the dashboard."""
    with ExitStack() as stack:
        context = stack.enter_context(quiet.new_context())
        playground, dashboard = context.new_page(), context.new_page()
        for page in (playground, dashboard):
            stack.enter_context(silent_console(page))
        playground.add_init_script(MOUTH)
        playground.goto(pop)
        dashboard.goto(f"{pop}/dashboard")
        yield playground, dashboard


def looked_at(page: Page) -> None:
    page.bring_to_front()  # or the browser draws nothing
    assert problems_in_every_look(page) == []


def test_both_pages_before_during_and_after_a_call(pages: tuple[Page, Page]) -> None:
    playground, dashboard = pages
    expect(playground.locator("#agent option")).to_have_text(["front-desk"], timeout=PATIENT_MS)
    looked_at(playground)
    playground.click("#settings summary")
    looked_at(playground)
    playground.press("#key", "Enter")  # sent nowhere, which would be told on the console
    expect(playground.locator("#settings")).not_to_have_attribute("open", "")
    dashboard.bring_to_front()
    expect(dashboard.locator("#turns-empty")).to_contain_text("talk to it in the playground", timeout=PATIENT_MS)
    looked_at(dashboard)

    playground.bring_to_front()
    playground.click("#talk")
    expect(playground.locator("#transcript .agent:not(.growing)")).to_have_count(1, timeout=PATIENT_MS)
    says(playground, "Listening")
    spoken(playground, QUESTION)
    expect(playground.locator("#strip label")).to_have_count(1, timeout=PATIENT_MS)
    looked_at(playground)
    typed(playground, BOOKING)
    expect(playground.locator("#transcript .tool")).to_contain_text("check_table", timeout=PATIENT_MS)
    # Its answer came of it, and stands below.
    expect(playground.locator("#transcript .tool + .agent")).to_have_count(1, timeout=PATIENT_MS)
    looked_at(playground)
    dashboard.bring_to_front()
    expect(dashboard.locator("#calls tr")).to_have_count(1, timeout=PATIENT_MS)
    button = dashboard.locator("#turns button").first
    expect(button).to_be_visible(timeout=PATIENT_MS)
    looked_at(dashboard)
    button.press("Enter")
    expect(dashboard.locator("dialog#turn .row").first).to_be_visible(timeout=PATIENT_MS)
    looked_at(dashboard)
    dashboard.keyboard.press("Escape")

    playground.bring_to_front()
    playground.click("#hang-up")
    says(playground, "Ready")
    looked_at(playground)
    dashboard.bring_to_front()
    expect(dashboard.locator("#calls-empty")).to_be_visible(timeout=PATIENT_MS)
    looked_at(dashboard)
