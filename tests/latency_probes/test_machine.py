"""What a virtual machine's host kept for others."""

import os
import time
from pathlib import Path

import pytest

from latency_probes.machine import Stolen, stolen_s


def told(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(Path, "read_text", lambda path: text)
    monkeypatch.setattr(os, "sysconf", lambda name: 100)


def test_the_eighth_figure_of_the_first_line_is_what_was_stolen(monkeypatch: pytest.MonkeyPatch) -> None:
    told(monkeypatch, "cpu  1282527 1976013 219272 2563149 10279 0 15178 46472 0 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n")
    assert stolen_s() == 464.72


@pytest.mark.parametrize("text", ["", "cpu  1 2 3", "nothing of the kind"])
def test_a_system_that_does_not_tell_has_stolen_nothing(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    told(monkeypatch, text)
    assert stolen_s() == 0


def test_there_is_a_warning_where_it_was_much(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    told(monkeypatch, "cpu 0 0 0 0 0 0 0 0")
    since = Stolen()
    now[0] = 10.0
    told(monkeypatch, "cpu 0 0 0 0 0 0 0 60")
    assert since.warning() == ""
    told(monkeypatch, "cpu 0 0 0 0 0 0 0 600")
    assert "kept 30% of its cores" in since.warning()
