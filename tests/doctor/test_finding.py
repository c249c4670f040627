"""Rows of a table, each with a way out where something is not well."""

import io

import pytest
from rich.console import Console

from voicepipe.doctor.finding import Finding, State, show


def shown(*findings: Finding, width: int = 60) -> tuple[list[str], str]:
    """What is broken, and the table."""
    text = io.StringIO()
    broken = show(findings, Console(file=text, width=width))
    return broken, text.getvalue()


@pytest.mark.parametrize(("state", "broken"), [("ok", []), ("note", []), ("broken", ["SIP port"])])
def test_only_what_is_broken_is_told_as_such(state: State, broken: list[str]) -> None:
    found, table = shown(Finding("SIP port", state, "5060 is taken", "choose another"))
    assert found == broken
    assert [line.split() for line in table.splitlines()[1:]] == [
        ["SIP", "port", state, "5060", "is", "taken"],
        ["->", "choose", "another"],
    ]


def test_what_is_broken_twice_is_named_once_and_in_order() -> None:
    found, _ = shown(*(Finding(what, "broken", "gone") for what in ("model", "GPU", "model")))
    assert found == ["model", "GPU"]


def test_brackets_are_no_markup_and_a_long_line_is_folded() -> None:
    _, table = shown(Finding("model", "ok", "[red]" + "x" * 80), width=40)
    assert "[red]" in table and table.count("x") == 80 and "…" not in table
