"""The findings of doctor: rows of a table, each with advice where something is not well."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from rich.console import Console
from rich.table import Table
from rich.text import Text

State = Literal["ok", "note", "broken"]
COLOURS: dict[State, str] = {"ok": "green", "note": "yellow", "broken": "red"}


@dataclass(frozen=True, slots=True)
class Finding:
    """A row of doctor's table: what was checked, its state, and what to do if it is not well."""

    what: str
    state: State
    detail: str
    way_out: str = ""


def show(findings: Iterable[Finding], console: Console) -> list[str]:
    """Print the table; what is broken, each once."""
    table = Table(box=None, header_style="dim")
    for column in ("", "state", "found"):
        table.add_column(column, overflow="fold")
    broken = []
    for finding in findings:
        table.add_row(finding.what, Text(finding.state, COLOURS[finding.state]), Text(finding.detail))
        if finding.way_out:
            table.add_row("", "", Text(f"-> {finding.way_out}", COLOURS[finding.state]))
        if finding.state == "broken":
            broken.append(finding.what)
    console.print(table)
    return list(dict.fromkeys(broken))
