"""The fleet's dashboard with 40 PoPs, on a laptop and on a phone: it sorts, it stays legible, nothing stands out."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import chromium
from tests.browser.forty import ADDRESS, CITIES, LOST, OLD, QUIET, SLOW, answered, view
from tests.browser.looks import problems_in_every_look

pytestmark = pytest.mark.e2e

LAPTOP, PHONE = {"width": 1280, "height": 900}, {"width": 360, "height": 740}
EAGER_MS = 30_000
expect.set_options(timeout=EAGER_MS)
Open = Callable[..., Page]
Picture = Callable[[Page, str], None]

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("#world .pop")].flatMap((mark) =>
    [["mark", mark.querySelector(".ring")], ["label", mark.querySelector("text")]].filter(([, part]) => part)
      .map(([kind, part]) => ({ pop: mark.dataset.pop, kind, box: part.getBoundingClientRect() })));
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap((one, at) => boxes.slice(0, at)
    .filter((other) => (one.kind === "label" || other.kind === "label") && one.pop !== other.pop && touch(one.box, other.box))
    .map((other) => `${one.kind} of ${one.pop} and ${other.kind} of ${other.pop}`));
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def open_fleet(browser: Browser) -> Iterator[Open]:
    """Opens the page before a directory that tells `told`."""
    problems: list[str] = []
    with ExitStack() as contexts:

        def open_fleet(size: dict[str, int] = LAPTOP, scheme: str = "light", told: dict[str, Any] | None = None) -> Page:
            context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
            contexts.callback(context.close)
            page = context.new_page()
            page.on("pageerror", lambda error: problems.append(str(error)))
            answered(page, told or view())
            page.goto(f"{ADDRESS}/map")
            expect(page.locator("#pops tr")).to_have_count(len((told or view())["pops"]) + 1)
            return page

        yield open_fleet
    assert not problems


def column(page: Page, name: str) -> list[str]:
    """What the lines have there, from the first on."""
    return [text.strip() for text in page.locator(f"#pops .{name}").all_inner_texts()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_forty_pops_are_legible(open_fleet: Open, picture: Picture, size: dict[str, int], scheme: str) -> None:
    page = open_fleet(size, scheme)
    assert page.locator("#world .pop").count() == len(CITIES)
    assert page.evaluate(OVERLAPS) == []
    picture(page, "-".join(["fleet", *(["narrow"] if size is PHONE else []), *(["dark"] if scheme == "dark" else [])]))
