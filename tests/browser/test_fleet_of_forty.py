"""The fleet's dashboard with 40 PoPs, on a laptop and on a phone: it sorts, it stays legible, nothing stands out."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import chromium
from tests.browser.forty import ADDRESS, BEHIND, CITIES, LOST, OLD, QUIET, SLOW, answered, view
from tests.browser.looks import problems_in_every_look

pytestmark = pytest.mark.e2e

LAPTOP, PHONE = {"width": 1280, "height": 800}, {"width": 360, "height": 740}
SHARP = {"width": 1336, "height": 836}
"""There the map is 900 pixels wide, and its dots stand on whole pixels: pictures take a fifth less."""
expect.set_options(timeout=30_000)
Open = Callable[..., Page]
Picture = Callable[[Page, str], None]

OVERLAPS = """() => {
  const boxes = [...document.querySelectorAll("#world .pop")].flatMap((mark) =>
    [["mark", mark.querySelector(".ring")], ["label", mark.querySelector("text")]].filter(([, part]) => part)
      .map(([kind, part]) => ({ pop: mark.dataset.pop, kind, box: part.getBoundingClientRect() })));
  const touch = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  return boxes.flatMap((one, at) => boxes.slice(0, at)
    .filter((other) => one.pop !== other.pop && [one.kind, other.kind].includes("label") && touch(one.box, other.box))
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

        def open_fleet(
            size: dict[str, int] = LAPTOP, scheme: str = "light", told: dict[str, Any] | None = None
        ) -> Page:
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


def numbers(cells: list[str]) -> list[float]:
    """Those that have one."""
    return [float(text.split()[0].replace(",", "")) for text in cells if text != "–"]


def press(page: Page, name: str) -> str | None:
    """The head of a column, by the keyboard: how it says that it is sorted."""
    button = page.locator(f'#fleet .sort[data-by="{name}"]')
    button.focus()
    page.keyboard.press("Enter")
    return button.locator("..").get_attribute("aria-sort")


def has_no_horizontal_scroll(page: Page) -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_forty_pops_are_legible(open_fleet: Open, picture: Picture, size: dict[str, int], scheme: str) -> None:
    page = open_fleet(size, scheme)
    assert page.locator("#world .pop").count() == len(CITIES)
    assert page.evaluate(OVERLAPS) == []
    labels = page.locator("#world .pop text").all_text_contents()
    assert any(SLOW in label for label in labels), "those that are in trouble have theirs"
    assert has_no_horizontal_scroll(page)
    if size is PHONE:
        table = page.locator("#fleet").locator("..")
        assert table.evaluate("element => element.scrollWidth > element.clientWidth"), "the table scrolls in its card"
        table.evaluate("element => element.scrollTo(400, 0)")
        box, name = table.bounding_box(), page.locator("#pops th").first.bounding_box()
        assert box and name and name["x"] >= box["x"], "names stay"
        table.evaluate("element => element.scrollTo(0, 0)")
    else:
        page.set_viewport_size(SHARP)  # type: ignore[arg-type]
    press(page, "state")
    page.evaluate("document.activeElement.blur()")
    picture(page, "-".join(["fleet", *(["narrow"] if size is PHONE else []), *(["dark"] if scheme == "dark" else [])]))


def test_nothing_is_wrong_with_it_in_any_look(open_fleet: Open) -> None:
    assert problems_in_every_look(open_fleet()) == []


def test_the_table_sorts_by_every_column_and_by_keyboard(open_fleet: Open) -> None:
    page = open_fleet()
    names = column(page, "pop-name")
    assert names == sorted(names)
    assert page.locator("#fleet [aria-sort]").count() == 1
    assert press(page, "pop") == "descending"
    assert column(page, "pop-name") == names[::-1]
    assert press(page, "region") == "ascending"
    assert column(page, "region") == sorted(column(page, "region"))
    for by, name in (("turns", "of-turns"), ("p50", "of-p50"), ("p95", "of-p95"), ("late", "of-late"),
                     ("cut_ins", "of-cut-ins"), ("missed", "of-missed"), ("lag", "of-lag"), ("next", "of-next"),
                     ("cost", "of-cost")):  # fmt: skip
        assert press(page, by) == "descending"
        cells = column(page, name)
        assert numbers(cells) == sorted(numbers(cells), reverse=True), by
        assert "–" not in cells[: len(numbers(cells))], "those that have none come last"
        assert press(page, by) == "ascending"
        assert numbers(column(page, name)) == sorted(numbers(cells)), by
    assert press(page, "state") == "descending"
    assert column(page, "status")[:4] == ["lost", "engine down", "turns fail", "answers late"]
    assert press(page, "calls") == "descending"
    assert column(page, "pop-name")[0] == "sin1", "the fullest"
    assert press(page, "age") == "descending"
    assert column(page, "of-age")[0] == "4 min"
    assert page.locator("#fleet [aria-sort]").count() == 1


def test_no_line_goes_from_under_the_pointer(open_fleet: Open) -> None:
    told = view()
    page = open_fleet(told=told)
    press(page, "p95")
    first, second = column(page, "pop-name")[:2]
    assert first == SLOW
    page.locator(f'#pops tr[data-pop="{second}"] .region').hover()
    expect(page.locator("#world .pop.pointed")).to_have_attribute("data-pop", second)
    assert page.locator("#world .pop.pointed text").count() == 1, "where it stands is told, however crowded it is"
    faster = next(row for row in told["pops"] if row["pop"] == SLOW)
    faster["recent"]["p95_ms"] = 151.0
    expect(page.locator(f'#pops tr[data-pop="{SLOW}"] .of-p95')).to_have_text("151 of 300")
    assert column(page, "pop-name")[:2] == [first, second]
    page.mouse.move(5, 5)
    expect(page.locator("#world .pop.pointed")).to_have_count(0)
    expect(page.locator("#pops .pop-name").first).to_have_text(second)


def test_each_pop_says_how_it_is_and_opens_its_own_dashboard(open_fleet: Open) -> None:
    page = open_fleet()

    def line(pop: str, name: str) -> str:
        return page.locator(f'#pops tr[data-pop="{pop}"] .{name}').inner_text().strip()

    link = page.locator(f'#pops tr[data-pop="{SLOW}"] a')
    assert [link.get_attribute(name) for name in ("href", "target", "rel")] == [
        f"https://{SLOW}.example/dashboard", "_blank", "noopener",
    ]  # fmt: skip
    assert (line(SLOW, "status"), line(SLOW, "of-p95").split()) == ("over budget", ["412", "of", "300"])
    assert "bad" in str(page.locator(f'#pops tr[data-pop="{SLOW}"] .of-late').get_attribute("class"))
    assert (line(QUIET, "of-turns"), line(QUIET, "of-p95"), line(QUIET, "of-late")) == ("0", "–", "–")
    assert (line(OLD, "status"), line(OLD, "of-turns"), line(OLD, "of-lag")) == ("takes calls", "–", "–")
    assert line("fra1", "region").split() == ["eu-central", "1.4.1"]
    assert line(BEHIND, "status").split("\n") == ["takes calls", "edition 11"]
    expect(page.locator("#notice")).to_have_text(f"Not at edition 12: {BEHIND} (11).")
    assert (line(LOST, "status"), line(LOST, "load"), line(LOST, "of-age")) == ("lost", "–", "4 min")
    assert page.locator(f'#pops tr[data-pop="{LOST}"]').get_by_role("button").count() == 0
    assert line("sin1", "of-cost").endswith("0.00 idle")


def test_the_totals(open_fleet: Open) -> None:
    told = view()
    page = open_fleet(told=told)

    def total(name: str) -> str:
        return page.locator(f"#total-{name}").inner_text()

    pops = told["pops"]
    assert total("calls") == str(sum(row["calls"] for row in pops))
    taking = [row for row in pops if row["status"] == "ok"]
    assert total("free") == str(sum(row["slots"] - row["calls"] - row["coming"] for row in taking))
    assert total("free-note") == f"in {len(taking)} PoPs"
    assert (total("worst"), total("worst-note")) == ("412 ms", f"{SLOW}, of 300 ms")
    assert (total("silent"), total("silent-note")) == ("1", LOST)
    assert total("cost") == f"{sum(row['price_per_hour'] for row in pops):.2f}"
    turns = sum(row["recent"]["turns"] for row in pops if row["recent"])
    assert total("cut-ins-note") == f"of {turns:,} turns"
    widths = page.locator(".tiles .card").evaluate_all("tiles => tiles.map((tile) => Math.round(tile.offsetWidth))")
    assert len(widths) == 8 and max(widths) - min(widths) <= 1, "that of the cost, too"


def test_without_prices_nothing_is_said_of_cost(open_fleet: Open) -> None:
    told = view()
    for row in told["pops"]:
        row["price_per_hour"] = 0
    page = open_fleet(told=told)
    expect(page.locator("#total-cost")).to_be_hidden()
    expect(page.locator('#fleet .sort[data-by="cost"]')).to_be_hidden()
    expect(page.locator("#pops .of-cost").first).to_be_hidden()
