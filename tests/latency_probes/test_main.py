"""The command line: exit status 0 within the budget, 1 over it, 2 for what could not be measured."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from latency_probes import clips, own_server
from latency_probes.__main__ import main
from tests.latency_probes.fake_server import Script, fake_server
from voicepipe.errors import ProbeError


@pytest.fixture
def one_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    hello = next(item for item in clips.load(["finished"]) if item.text == "hello" and item.noise == "quiet")
    monkeypatch.setattr(clips, "load", lambda kinds=clips.KINDS: [hello] if "finished" in kinds else [])


@pytest.mark.usefixtures("one_utterance")
@pytest.mark.parametrize(("budget", "status"), [("400", 0), ("100", 1)])
async def test_within_and_over_the_budget(budget: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    async with fake_server(Script()) as url:
        options = [url, "--set", "finished", "--budget-ms", budget, "--json", str(file)]
        assert await asyncio.to_thread(main, options) == status
    report = json.loads(await asyncio.to_thread(file.read_text))
    assert report["run"]["turns"][0]["outcome"] == "right"
    assert bool(report["summary"]["breaches"]) == bool(status)


@pytest.mark.usefixtures("one_utterance")
async def test_a_soak_reads_the_growth_of_the_server_from_healthz(tmp_path: Path) -> None:
    file = tmp_path / "growth.json"
    async with fake_server(Script()) as url:
        assert await asyncio.to_thread(main, [url, "--soak", "3", "--json", str(file)]) == 0
    growth = json.loads(await asyncio.to_thread(file.read_text))
    assert growth["failures"] == []
    assert growth["rss_kb_per_call"] == pytest.approx(3)
    assert (growth["tasks"], growth["threads"], growth["fds"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "give the address of one server"),
        (["ws://127.0.0.1:1"], "no server answers at ws://127.0.0.1:1/v1/realtime"),
        (["ws://127.0.0.1:1", "--soak", "1"], "has none"),
        (["ftp://host"], "no address of a server"),
        (["ws://host", "--self"], "give the address of one server"),
        (["ws://host", "--set", "nonsense"], "no set 'nonsense'"),
        (["ws://host", "--calls", "0"], "whole number"),
    ],
)
def test_what_cannot_be_measured(options: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    assert sentence in capsys.readouterr().err.replace("\n", " ")


def test_the_sets_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "pause_inside" in capsys.readouterr().out


def test_a_pop_of_ones_own_is_started_and_stopped() -> None:
    code = "import time; print('pop answers at http://127.0.0.1:9; Ctrl-C', flush=True); time.sleep(60)"
    with own_server.own_server((sys.executable, "-c", code)) as url:
        assert url == "http://127.0.0.1:9"


def test_a_pop_that_does_not_start_says_why() -> None:
    with (
        pytest.raises(ProbeError, match="no such engine"),
        own_server.own_server((sys.executable, "-c", "exit('no such engine')")),
    ):
        pass
