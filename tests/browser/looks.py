"""A page in every look that people have it in: wide or on a phone, light or dark, and what is wrong with it there."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files

from playwright.sync_api import Page, ViewportSize

SIZES: tuple[ViewportSize, ...] = ({"width": 1440, "height": 900}, {"width": 390, "height": 844})
AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
RUN_AXE = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.html.slice(0, 200)}`));
}"""
CUT_OFF = """() => [...document.querySelectorAll("body *")]
  .filter((element) => element.checkVisibility() && element.clientWidth > 1 &&
    getComputedStyle(element).textOverflow === "ellipsis" && element.scrollWidth > element.clientWidth)
  .map((element) => `cut off: ${element.textContent.slice(0, 80)}`)"""
STANDS_OUT = "document.documentElement.scrollWidth > innerWidth ? ['wider than the screen'] : []"


def problems_in_every_look(page: Page) -> list[str]:
    """What axe-core, which is accessibility in rules, finds wrong, and what of the page does not fit."""
    page.evaluate(AXE)
    found: list[str] = []
    for size in SIZES:
        page.set_viewport_size(size)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
            here = [*page.evaluate(RUN_AXE), *page.evaluate(CUT_OFF), *page.evaluate(STANDS_OUT)]
            found += [f"{size['width']} px, {scheme}: {problem}" for problem in here]
    return found


@contextmanager
def silent_console(page: Page) -> Iterator[None]:
    """It is an error if the browser's console says anything, in whatever level."""
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    yield
    assert not said
