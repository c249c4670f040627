"""The page `/` as someone meets it who talks to it: a conversation, and the browser's question for the microphone."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, Page, expect

from latency_probes.own_server import own_server
from tests.browser.playground import LINES, MOUTH, PATIENT_MS, PROMPT, opened, placed, says, spoken, typed
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e

PATIENT = """
[ladder]
acknowledge_ms = 0
fallback_ms = 0
stall_ms = 0

[engines]
tts = "espeak"

[espeak]
words_per_minute = 100
"""
"""Says nothing but its answers, however late they are, and so slowly that there is time to interrupt them."""
WATCH_LEVELS = """() => {
  window.loudest = {};
  for (const meter of document.querySelectorAll(".meter")) {
    const watch = () => {
      loudest[meter.id] = Math.max(loudest[meter.id] ?? 0, Number(meter.style.getPropertyValue("--level")));
    };
    new MutationObserver(watch).observe(meter, { attributes: true });
  }
}"""
WATCH_THE_WATERFALL = """() => {
  window.firsts = [];
  const watch = () => {
    const sounds = document.querySelector("#transcript .agent.growing") !== null;
    const latency = Number(document.getElementById("latency").textContent);
    const why = document.getElementById("why").textContent;
    const rows = [...document.querySelectorAll("#waterfall .row")];
    const bars = rows.filter((row) => row.querySelector(".bar")).length;
    firsts.push({ sounds, latency, rows: rows.length, bars, why });
  };
  new MutationObserver(watch).observe(document.getElementById("waterfall"), { childList: true });
}"""
NOT_THE_SAME_TURN_S = 1.5
"""A voice that comes sooner after a turn's end than a second may belong to it."""
QUESTION, INTERRUPTION = "finished-001-joe", "barge_in-014-heart"
KEYWORDS = "open", "person"
"""In one and in the other."""
ATTEMPTS = 3
"""Chromium loses sound of its microphone while the machine stalls: nobody can recognise what it lost, or time it."""


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a PoP with the default engines that answers in the same way on every machine."""
    config = tmp_path_factory.mktemp("patient") / "patient.toml"
    config.write_text(PATIENT)
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        yield url


@LINES
def test_a_spoken_question_and_an_interruption(
    line: str, patient: str, quiet: Browser, picture: Callable[[Page, str], None]
) -> None:
    with heard_rightly(quiet, patient, line) as page:
        assert page.evaluate("Math.min(loudest['agent-level'], loudest['caller-level'])") > 0.2
        looks_like_the_conversation(page)
        looks_like_its_turns(page)
        appeared_with_the_first_sound(page)
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


@contextmanager
def heard_rightly(browser: Browser, url: str, line: str) -> Iterator[Page]:
    """The page after a conversation; it is held anew where the questions were not recognised."""
    for attempt in range(1, ATTEMPTS + 1):
        with opened(browser, url, line, MOUTH) as page:
            page.evaluate(WATCH_LEVELS)
            page.evaluate(WATCH_THE_WATERFALL)
            ask_and_interrupt(page)
            try:
                expect(page.locator("#transcript .caller")).to_contain_text(KEYWORDS, timeout=PATIENT_MS)
                assert "as this page measured it" in page.evaluate("firsts[0]?.why ?? ''")
            except AssertionError:
                if attempt == ATTEMPTS:
                    raise
                continue
            expect(page.locator("#strip label")).to_have_count(2, timeout=PATIENT_MS)
            says(page, "Listening")
            yield page
            return


def ask_and_interrupt(page: Page) -> None:
    """Hear the greeting out, ask, and cut the answer short with another question."""
    page.click("#talk")
    expect(page.locator("#transcript .agent:not(.growing)")).to_have_count(1, timeout=PATIENT_MS)
    says(page, "Listening")
    spoken(page, QUESTION)
    says(page, "The agent is speaking")
    spoken(page, NOT_THE_SAME_TURN_S, INTERRUPTION)


def looks_like_the_conversation(page: Page) -> None:
    said = page.locator("#transcript > li")
    assert [kind.split()[0] for kind in said.evaluate_all("all => all.map(item => item.className)")] == [
        "agent", "caller", "agent", "caller", "agent"
    ]  # fmt: skip
    expect(said.nth(0)).to_contain_text("How can I help you?")
    expect(said.nth(2)).to_contain_text("interrupted")
    heard = said.nth(2).locator(".words").evaluate("words => words.firstChild?.textContent ?? ''")
    assert "closed" not in heard, "the reply's text ends where it was cut"
    expect(said.nth(4)).to_contain_text("put you through")
    expect(said.nth(4).locator(".mark")).to_have_count(0)


def looks_like_its_turns(page: Page) -> None:
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


def appeared_with_the_first_sound(page: Page) -> None:
    """While the answer was still being said, with all that was done for it; then the server's own latency came."""
    first, *others = page.evaluate("firsts")
    assert first["sounds"] and first["rows"] == 5 and first["latency"] > 0
    assert first["bars"] >= 3, "what was done in the silence is known by the first sound, the words at least"
    assert first["why"].startswith("It waited") and "as this page measured it" in first["why"]
    assert any("as this page measured it" not in shown["why"] for shown in others)
    page.locator("#strip label").first.click()
    expect(page.locator("#why")).to_contain_text("It waited")
    expect(page.locator("#strip label")).to_have_count(2)


@contextmanager
def asking(browser: Browser, url: str, line: str) -> Iterator[Page]:
    """The page while the browser asks for the microphone; in the end it has placed this one call and no other."""
    with opened(browser, url, line, PROMPT) as page:
        calls = placed(page)
        page.click("#talk")
        yield page
        assert len(calls) == 1


@LINES
def test_a_second_click_while_the_browser_asks_for_the_microphone_makes_no_second_call(
    line: str, desk: str, quiet: Browser
) -> None:
    with asking(quiet, desk, line) as page:
        page.click("#talk")
        page.evaluate("grant()")
        says(page, "Listening")
        assert page.evaluate("given.length") == 1


@LINES
def test_typing_while_the_browser_asks_is_one_call_that_listens_once_it_may(
    line: str, desk: str, quiet: Browser
) -> None:
    with asking(quiet, desk, line) as page:
        typed(page, "hello")
        page.evaluate("grant()")
        says(page, "Listening")


@LINES
def test_hanging_up_while_the_browser_asks_leaves_neither_a_call_nor_a_microphone(
    line: str, desk: str, quiet: Browser
) -> None:
    with asking(quiet, desk, line) as page:
        typed(page, "hello")
        page.click("#hang-up")
        says(page, "Ready")
        page.evaluate("grant()")
        page.evaluate(GIVEN_BACK)
        says(page, "Ready")


GIVEN_BACK = """async () => {
  while (!given[0]?.getTracks().every((track) => track.readyState === "ended")) {
    await new Promise(requestAnimationFrame);
  }
}"""
"""Returns once the one microphone that was given is released."""
