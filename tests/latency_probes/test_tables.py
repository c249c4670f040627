"""Tables on pages are what the files of figures say, and such files say how they came about."""

import json
import re
from pathlib import Path

import pytest

from latency_probes import tables
from voicepipe.base import figures
from voicepipe.base.errors import ProbeError

TEXTS = [page.read_text() for page in tables.PAGES]
NAMES = re.findall(r"<!-- figures: (\S+) -->", "".join(TEXTS))


@pytest.mark.parametrize("text", TEXTS, ids=["README", "latency_probes", "gpu"])
def test_a_page_says_what_its_figures_say(text: str) -> None:
    assert tables.written(text) == text, "run: python -m latency_probes.tables"


def test_each_table_stands_on_one_page_and_each_source_is_shown() -> None:
    assert len(set(NAMES)) == len(NAMES)
    shown = {f"{name}.json" for name in NAMES}
    sources = {source for name in NAMES for source in tables.table(name).sources.values()}
    assert shown | sources == {path.name for path in tables.FIGURES.iterdir()}


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_typed_comes_from_figures(name: str) -> None:
    table = tables.table(name)
    for row in table.rows:
        seen = re.sub(r"{[^}]*}|p50|p95", "", str(row.get("seen", "")))
        assert row.get("typed") or not re.search(r"\d", seen), row
        assert set(row) <= {*table.columns, "typed"}


def test_a_figure_that_is_not_there_is_no_empty_cell() -> None:
    with pytest.raises(KeyError):
        tables.Table({"seen": ""}, [{"seen": "{missing}"}]).markdown()


def test_a_changed_figure_changes_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "FIGURES", tmp_path)
    (tmp_path / "run.json").write_text('{"figures": {"p50": 174.6}}')
    (tmp_path / "gaps.json").write_text(
        '{"columns": {"what": "", "seen": "seen"}, "right": ["seen"], "sources": {"run": "run.json"},'
        ' "rows": [{"what": "heard gap", "seen": "p50 {run[figures][p50]:.0f} ms"}, {"what": "other"}]}'
    )
    page = "Before.\n<!-- figures: gaps -->\nold\n<!-- /figures -->\nAfter.\n"
    assert tables.written(page) == (
        "Before.\n<!-- figures: gaps -->\n"
        "| | seen |\n|---|---:|\n| heard gap | p50 175 ms |\n| other | |\n"
        "<!-- /figures -->\nAfter.\n"
    )


def test_figures_are_kept_with_how_they_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["/opt/python/bin/python3", "-m", "latency_probes", "--key", "s3cret", "--key=s3cret", "--set", "a b"]
    monkeypatch.setattr("sys.orig_argv", typed)
    figures.keep(tmp_path / "kept.json", {"p50": 1.5})
    text = (tmp_path / "kept.json").read_text()
    kept = json.loads(text)
    assert kept["figures"] == {"p50": 1.5}
    assert kept["measured"]["command"] == "python3 -m latency_probes --key ... --key=... --set 'a b'"
    assert kept["measured"]["machine"]["cores"] > 0
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", kept["measured"]["date"])
    assert kept["measured"].keys() == {"command", "date", "machine", "version", "commit"}


def test_no_file_is_wanted_or_none_can_be_written(tmp_path: Path) -> None:
    figures.keep(None, {})
    with pytest.raises(ProbeError, match="cannot be written"):
        figures.keep(tmp_path, {})
