"""The command line: exit status 0 within the budget, 1 over it, 2 not measured, 130 stopped."""

import asyncio
import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console

from latency_probes import __main__, clips, own_server
from latency_probes.__main__ import main
from latency_probes.soak import Soaked
from tests.latency_probes.fake_server import Script, fake_server
from voicepipe.base.errors import ProbeError

pytestmark = pytest.mark.slow


@pytest.fixture
def one_utterance(monkeypatch: pytest.MonkeyPatch) -> None:
    hello = next(
        item for item in clips.load(["finished"]) if item.text == "hello good afternoon" and item.noise == "quiet"
    )
    monkeypatch.setattr(clips, "load", lambda kinds=clips.KINDS: [hello] if "finished" in kinds else [])


@pytest.mark.usefixtures("one_utterance")
@pytest.mark.parametrize(("budget", "status"), [("400", 0), ("100", 1)])
async def test_within_and_over_the_budget(budget: str, status: int, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    async with fake_server(Script()) as url:
        options = [url, "--set", "finished", "--budget-ms", budget, "--json", str(file)]
        assert await asyncio.to_thread(main, options) == status
    report = json.loads(await asyncio.to_thread(file.read_text))["figures"]
    assert report["run"]["turns"][0]["outcome"] == "right"
    assert bool(report["summary"]["breaches"]) == bool(status)


@contextmanager
def serving() -> Iterator[str]:
    """A fake server on a loop of its own: signals come to the main thread, whose loop is the probes'."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = fake_server(Script())
    try:
        yield asyncio.run_coroutine_threadsafe(server.__aenter__(), loop).result()
        asyncio.run_coroutine_threadsafe(server.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.fixture(params=[signal.SIGINT, signal.SIGTERM], ids=["ctrl-c", "sigterm"])
def stopped_after_a_call(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The signal comes as soon as the first call has ended."""

    @contextmanager
    def progress(console: Console, calls: int) -> Iterator[Callable[[], None]]:
        yield lambda: signal.raise_signal(request.param)

    @contextmanager
    def soaking(console: Console, seconds: float) -> Iterator[Callable[[Soaked], None]]:
        yield lambda seen: signal.raise_signal(request.param)

    monkeypatch.setattr(__main__, "progress", progress)
    monkeypatch.setattr(__main__, "soaking", soaking)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests are a background job
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("one_utterance", "stopped_after_a_call")
def test_a_run_that_is_stopped_keeps_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    with serving() as url:
        assert main([url, "--set", "finished", "--calls", "3", "--json", str(file)]) == 130
    assert "stopped after 1 of 3 calls" in capsys.readouterr().out
    kept = json.loads(file.read_text())["figures"]["run"]
    assert (kept["calls"], kept["planned"]) == (1, 3)
    assert [turn["outcome"] for turn in kept["turns"]] == ["right"]


@pytest.mark.usefixtures("one_utterance", "stopped_after_a_call")
def test_a_soak_that_is_stopped_keeps_what_it_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "soak.json"
    with serving() as url:
        assert main([url, "--soak", "2", "--slots", "1", "--json", str(file)]) == 130
    assert "of 120 minutes" in capsys.readouterr().out
    kept = json.loads(file.read_text())["figures"]
    assert len(kept["gaps"]["websocket"]) == 1, "the call by which the door is tried"
    assert kept["before"]["tasks"] == kept["after"]["tasks"] == 5
    assert len(kept["readings"]) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "give the address of one server"),
        (["ws://127.0.0.1:1"], "no server answers at ws://127.0.0.1:1/v1/realtime"),
        (["ws://127.0.0.1:1", "--soak", "1"], "has none"),
        (["ws://127.0.0.1:1", "--soak", "0"], "no number of hours"),
        (["ftp://host"], "no address of a server"),
        (["ws://host", "--self"], "not both"),
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


def is_pop(pid: str) -> bool:
    """Libraries start children as well while they are imported."""
    try:
        return b"voicepipe\0pop" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_pop_of_ones_own_does_not_outlive_a_probe_that_is_stopped_while_it_starts() -> None:
    probe = subprocess.Popen([sys.executable, "-m", "latency_probes", "--self"])
    try:
        children = Path(f"/proc/{probe.pid}/task/{probe.pid}/children")
        deadline = time.monotonic() + 60
        while not (started := [child for child in children.read_text().split() if is_pop(child)]):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        probe.terminate()
        assert probe.wait(60) == 130
        assert started and not Path(f"/proc/{started[0]}").exists()
    finally:
        probe.kill()
