"""Tables of figures in Markdown, from the JSON beside this file: `python -m latency_probes.tables` writes them.

A page names a table: what stands between `<!-- figures: NAME -->` and `<!-- /figures -->` is `figures/NAME.json`, a
`Table`. Its cells are Python format strings over figures: those of files that a command wrote (`--json`), or those that
were typed since the command's file was not kept.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

FIGURES = Path(__file__).parent / "figures"
ROOT = Path(__file__).parents[1]
PAGES = ROOT / "README.md", Path(__file__).parent / "README.md", ROOT / "pops" / "gpu.md"
PART = re.compile(r"(?<=<!-- figures: )([\w-]+)( -->\n).*?(?=<!-- /figures -->\n)", re.DOTALL)


class Table(msgspec.Struct, forbid_unknown_fields=True):
    """What `figures/NAME.json` holds."""

    columns: dict[str, str]
    """Key of a row, and the heading above it; from left to right."""
    rows: list[dict[str, str | bool]]
    """Cells by column; a missing one is empty. `"typed": true` marks a row whose text was typed from a report."""
    right: list[str] = []
    """Columns whose cells are aligned to the right."""
    figures: dict[str, Any] = {}
    """Typed figures that more than one table shows."""
    sources: dict[str, str] = {}
    """Names of files in `figures/`, by the name that cells give them. Another table's typed figures count, too."""

    def markdown(self) -> str:
        """Raises KeyError, IndexError: a cell names a figure that is not there."""
        known = self.figures | {name: msgspec.json.decode((FIGURES / file).read_bytes())
                                for name, file in self.sources.items()}  # fmt: skip
        rules = ["---:" if column in self.right else "---" for column in self.columns]
        lines = [line(list(self.columns.values())), f"|{'|'.join(rules)}|\n"]
        return "".join([*lines, *(line(cells(row, self.columns, known)) for row in self.rows)])


def cells(row: Mapping[str, str | bool], columns: Mapping[str, str], known: Mapping[str, Any]) -> list[str]:
    """The texts of a row, with their figures."""
    return [str(row.get(column, "")).format(**known) for column in columns]


def line(texts: list[str]) -> str:
    """Of a table in Markdown. Nothing stands between the bars of an empty cell but a space."""
    return "|" + "".join(f" {text} |" if text else " |" for text in texts) + "\n"


def table(name: str) -> Table:
    """Raises OSError, msgspec.ValidationError."""
    return msgspec.json.decode((FIGURES / f"{name}.json").read_bytes(), type=Table)


def written(page: str) -> str:
    """`page` with the figures of now."""
    return PART.sub(lambda part: f"{part[1]}{part[2]}{table(part[1]).markdown()}", page)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(written(page.read_text()))
