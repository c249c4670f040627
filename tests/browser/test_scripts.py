"""Words in scripts that run from right to left, have no spaces, or put marks on letters: as the pages lay them out."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.conftest import chromium

pytestmark = pytest.mark.e2e

SAID = {
    "ar": ("أريد حجز طاولة لأربعة أشخاص يوم الجمعة.", "rtl"),
    "he": ("אני רוצה להזמין שולחן לארבעה אנשים ביום שישי.", "rtl"),
    "hi": ("मैं शुक्रवार को चार लोगों के लिए एक मेज़ बुक करना चाहता हूँ।", "ltr"),
    "th": ("ฉันต้องการจองโต๊ะสำหรับสี่คนในวันศุกร์", "ltr"),
    "ja": ("金曜日に四人でテーブルを予約したいのですが。", "ltr"),
}
"""Language -> a sentence (a table for four on Friday), and where it begins."""
LONG = 12
"""So many times it is longer than a line."""
TALKS = """async ([lang, text]) => {
    const { Transcript } = await import("./transcript.js");
    document.querySelector("#conversation-empty").hidden = true;
    const [list, scroll] = [document.querySelector("#transcript"), document.querySelector("#scroll")];
    const transcript = new Transcript(list, scroll, () => {});
    transcript.lang = lang;
    transcript.callerSaid("asked", text);
    for (const letter of [...text]) transcript.agentWords("answered", letter);
    transcript.agentDone("answered", "incomplete");
    transcript.agentHeard("answered", text.slice(0, 9));
    const said = [...list.querySelectorAll(".said")].slice(-2);
    return said.map((line) => ({
      text: line.textContent, lang: line.closest("[lang]").lang, direction: getComputedStyle(line).direction,
      fits: line.scrollWidth <= line.clientWidth + 1 && scroll.scrollWidth <= scroll.clientWidth + 1,
      unheard: line.querySelector("del")?.textContent ?? "",
    }));
}"""
KEPT = """async ([lang, text]) => {
    const { saidRows } = await import("./kept.js");
    const turn = { latency_ms: 1, late: false, cut_in: false };
    const full = { spoken: false, heard: text, answered: text, tools: [], record: { language: lang }, turn };
    const list = document.createElement("ol");
    list.append(...saidRows({ said: [full] }, () => {}));
    document.querySelector("#transcript").replaceChildren(...list.children);
    return [...document.querySelectorAll("#transcript bdi")].map((words) => ({
      text: words.textContent, lang: words.lang, direction: getComputedStyle(words).direction,
      line: getComputedStyle(words.parentNode).direction,
    }));
}"""


@pytest.fixture(name="page", scope="module")
def _page(desk: str) -> Iterator[Page]:
    with chromium() as browser:
        page = browser.new_page()
        page.goto(desk)
        yield page


@pytest.mark.parametrize("lang", SAID)
def test_the_transcript_runs_as_the_script_does(page: Page, lang: str) -> None:
    sentence, direction = SAID[lang]
    text = sentence * LONG
    asked, answered = shown = list[dict[str, Any]](page.evaluate(TALKS, [lang, text]))
    assert [each["text"] for each in shown] == [text, text], "letter by letter or whole"
    assert {each["lang"] for each in shown} == {lang} and {each["direction"] for each in shown} == {direction}
    assert asked["fits"] and answered["fits"], "lines break without spaces, too"
    assert answered["unheard"] == text[9:]


@pytest.mark.parametrize("lang", SAID)
def test_kept_words_are_apart_from_who_said_them(page: Page, lang: str) -> None:
    text, direction = SAID[lang]
    shown = list[dict[str, Any]](page.evaluate(KEPT, [lang, text]))
    assert len(shown) == 2
    for each in shown:
        assert each == {"text": text, "lang": lang, "direction": direction, "line": "ltr"}
