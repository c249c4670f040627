"""What commands found, as JSON beside how it was measured."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest

from voicepipe.base import figures
from voicepipe.base.errors import ProbeError


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([], 50, None),
        ([7.0], 95, 7.0),
        ([3.0, 1.0, 2.0], 50, 2.0),
        ([0.0, 10.0], 95, 9.5),
        ([1.0, 2.0, float("inf"), float("inf")], 100, float("inf")),
        ([1.0, float("inf"), float("inf")], 75, float("inf")),
    ],
)
def test_a_percentile_lies_between_the_two_nearest(values: list[float], percent: float, expected: float | None) -> None:
    assert figures.percentile(values, percent) == expected


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["/opt/venv/bin/python", "-m", "voicepipe", "bench"], "python -m voicepipe bench"),
        (["voicepipe", "--key", "s3cret", "--calls", "8"], "voicepipe --key ... --calls 8"),
        (["voicepipe", "--key=s3cret"], "voicepipe --key=..."),
        (["voicepipe", "--key"], "voicepipe --key"),
        (["voicepipe", "--say", "two words", "/etc/pop.toml"], "voicepipe --say 'two words' pop.toml"),
    ],
)
def test_a_command_is_shown_without_folders_and_keys(arguments: list[str], shown: str) -> None:
    assert figures.command(arguments) == shown


@dataclass
class Point:
    x: float


class Line(msgspec.Struct):
    name: str


def test_figures_are_kept_with_how_they_came_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["/usr/bin/python", "-m", "voicepipe", "bench", "--key", "s3cret"])
    figures.keep(file := tmp_path / "figures.json", {"points": [Point(1.5)], "line": Line("é"), "none": None})
    text = file.read_text()
    kept = json.loads(text)
    assert kept["figures"] == {"points": [{"x": 1.5}], "line": {"name": "é"}, "none": None} and "é" in text
    assert kept["measured"]["command"] == "python -m voicepipe bench --key ..."
    assert set(kept["measured"]) == {"command", "date", "machine", "version", "commit"}
    assert kept["measured"]["machine"]["cores"] >= 1


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match=r"none/figures\.json cannot be written: No such file or directory"):
        figures.keep(tmp_path / "none" / "figures.json", {})
    figures.keep(None, object())


def test_a_table_that_goes_to_a_pipe_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    assert figures.for_tables().width == figures.WIDEST


def test_the_widest_vectors_of_a_processor_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    flags = "fpu avx avx2 avx512f"
    monkeypatch.setattr(figures, "_cpuinfo", lambda field: flags if field == "flags" else "")
    assert figures.vectors() == "AVX-512"
    flags += " avx512_vnni"
    assert figures.vectors() == "AVX-512 VNNI"
    flags = "neon"
    assert figures.vectors() == ""
