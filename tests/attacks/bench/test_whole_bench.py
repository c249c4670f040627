"""The command as a whole, with the smallest attack. No figures are asserted: how late turns are is the machine's."""

import json
from pathlib import Path

import pytest

from tests.attacks import __main__ as command
from tests.attacks.__main__ import main
from tests.attacks.bench import conditions


@pytest.mark.e2e
def test_an_attack_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "TRIES", 1)
    monkeypatch.setattr(conditions, "ATTACKS", 2)
    monkeypatch.setattr(conditions, "SETTLE_S", 0.1)
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 12.0)
    file = tmp_path / "found.json"
    assert main(["--only", "healthz_flood", "--seconds", "0.3", "--turns", "8", "--runs", "1", "--json", str(file)]) < 2
    (result,) = json.loads(file.read_text())["figures"]["healthz_flood"]
    assert result["without"]["turns"] == result["beside"]["turns"] == 8
    assert result["without"]["failures"] == []
    assert result["told"]["HTTP 200"] > 0
    assert (result["errors"], result["ended"]) == ([], False)
    assert len(result["held"]) >= 3


def test_an_attack_that_there_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--only", "nonsense"]) == 2
    assert "no attack 'nonsense'" in capsys.readouterr().err
