"""`python -m tests.decisions`: writes DESIGN's index of the decisions, which stand in the pages of their rooms."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.paths import ROOT

DESIGN = ROOT / "DESIGN.md"
BEGIN, END = "<!-- decisions -->\n", "<!-- /decisions -->\n"


class Decision(NamedTuple):
    """One decision, as its heading has it."""

    number: int
    title: str
    page: str
    """Relative to the checkout."""

    @property
    def anchor(self) -> str:
        """How a link names the heading."""
        return anchor(f"D{self.number}. {self.title}")


def anchor(heading: str) -> str:
    """The name of a heading in a link, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def pages(root: Path = ROOT) -> list[Path]:
    """All pages of the project, but those of what was installed."""
    return [
        path
        for path in sorted(root.rglob("*.md"))
        if not any(part.startswith(".") or part == "node_modules" for part in path.relative_to(root).parts)
    ]


def decisions(root: Path = ROOT) -> Iterator[Decision]:
    """In the order of their numbers. Raises ValueError: two have the same number."""
    found: dict[int, Decision] = {}
    for page in pages(root):
        for number, title in re.findall(r"^### D(\d+)\. (.*)$", page.read_text(), re.MULTILINE):
            one = Decision(int(number), title, page.relative_to(root).as_posix())
            if found.setdefault(one.number, one) is not one:
                raise ValueError(f"{one.page}: D{number} stands in {found[one.number].page} already")
    yield from (found[number] for number in sorted(found))


def index(root: Path = ROOT) -> str:
    """A line for each decision."""
    return "".join(f"- [D{one.number}]({one.page}#{one.anchor}) {one.title}.\n" for one in decisions(root))


def written(text: str, lines: str) -> str:
    """`text` with these lines between its two marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{lines}{END}{after}"


if __name__ == "__main__":
    DESIGN.write_text(written(DESIGN.read_text(), index()))
