"""Every target: what was found once stays mended, and some thousand inputs do no harm. The fuzzer itself finds what it
should."""

import gc
import multiprocessing
import signal
from pathlib import Path
from threading import Event

import pytest

from tests.fuzz import __main__ as runs
from tests.fuzz import campaign, findings
from tests.fuzz.__main__ import main
from tests.fuzz.target import HERE, Target, targets

pytestmark = pytest.mark.slow

SLICE = 1000
"""Inputs of a target whose share is 1."""
PATIENT = 50
"""In the suite an input may take so many times longer: `make fuzz` looks for what is slow."""


@pytest.mark.parametrize("target", targets().values(), ids=lambda target: target.name)
def test_a_slice_of_inputs_does_no_harm(target: Target) -> None:
    tally = campaign.run(target, round(SLICE * target.share), "suite", patience=PATIENT)

    assert not tally.findings, "\n".join(
        f"{found.where} by {found.data[:200]!r}\n{found.says}" for found in tally.findings
    )


@pytest.mark.parametrize(
    "path", sorted((HERE / "findings").glob("*/*")), ids=lambda path: f"{path.parent.name}-{path.name}"
)
def test_what_was_found_once_is_mended(path: Path) -> None:
    found = campaign.outcome(targets()[path.parent.name], path.read_bytes(), PATIENT)

    assert not found, f"{found.where}\n{found.says}"


def _crashes(data: bytes) -> None:
    if b"(" in data and b"!" in data:
        raise KeyError("both")


def _stalls(data: bytes) -> None:
    if data.startswith(b"ss"):
        sum(range(3_000_000))


_kept: list[bytes] = []


def _hoards(data: bytes) -> None:
    _kept.extend(bytes(40) for _ in range(2))


def _seeds() -> list[bytes]:
    return [b"(one)\r\n(two)\r\n", b"three!\r\n"]


def test_a_crash_is_found_again_by_the_same_seed_and_made_small() -> None:
    target = Target("planted", "", _crashes, _seeds)

    first, again, other = (campaign.run(target, 2000, seed) for seed in ("7", "7", "8"))

    assert [found.where.split(":")[0] for found in first.findings] == ["KeyError test_fuzz.py"]
    assert again.findings[0].data == first.findings[0].data != other.findings[0].data
    assert sorted(findings.minimised(target, first.findings[0]).data) == sorted(b"(!")


def test_an_input_that_takes_long_is_found() -> None:
    tally = campaign.run(Target("planted", "", _stalls, lambda: [b"sss"], limit_s=0.001), 20, "1")

    assert [found.kind for found in tally.findings] == ["slow"]
    assert tally.slowest.startswith(b"ss")


def test_a_pause_that_does_not_come_again_is_not_the_inputs() -> None:
    runs = 0

    def pauses_once(data: bytes) -> None:
        nonlocal runs
        runs += 1
        if runs == 30:
            sum(range(10_000_000))

    tally = campaign.run(Target("planted", "", pauses_once, lambda: [b"s"], limit_s=10), 60, "1")

    assert runs > 60
    assert tally.slowest_s < 0.05


def test_no_input_pays_for_a_look_at_all_that_was_imported() -> None:
    frozen: list[int] = []

    campaign.run(Target("planted", "", lambda data: frozen.append(gc.get_freeze_count()), lambda: [b"s"]), 10, "1")

    assert min(frozen) > 10_000
    assert gc.get_freeze_count() == 0


def test_an_input_that_waits_for_ever_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "WAITS_S", 0.2)
    tally = campaign.run(Target("planted", "", lambda data: Event().wait(60) and None, lambda: [b"w"]), 1, "1")
    assert [found.kind for found in tally.findings] == ["slow"]


def test_inputs_that_reach_new_code_are_kept() -> None:
    tally = campaign.run(targets()["phrases"], 800, "1", patience=PATIENT)

    assert tally.reached > 50
    assert tally.kept > 0


def test_memory_that_grows_with_the_inputs_is_found() -> None:
    tally = campaign.run(Target("planted", "", _hoards, _seeds), 10_000, "1")

    _kept.clear()
    assert [found.kind for found in tally.findings] == ["leak"]


def test_a_word_of_progress_is_not_taken_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have all inputs, and not yet what they left behind."""
    monkeypatch.setattr(campaign, "TELL_S", 0.0)
    told: list[tuple[int, bool]] = []
    over = campaign.run(
        Target("planted", "", lambda data: None, _seeds),
        5,
        "1",
        progress=lambda so_far: told.append((so_far.inputs, so_far.over)),
    )
    assert told[-1] == (5, False)
    assert over.over


def test_a_process_of_its_own_tells_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["phrases", "--inputs", "40", "--processes", "1"]) == 0
    assert "phrases" in capsys.readouterr().out


def test_a_part_whose_process_died_goes_on_by_its_own_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    """So the same seed makes the same inputs; and a part that ends as it should is no death."""
    begun: list[tuple[str, str]] = []

    class Dies:
        """A worker whose part dies at once; those with the seed "1.1" and the like end as they should."""

        def __init__(self, name: str, inputs: int, seed: str, current: Path) -> None:
            self.name, self.inputs, self.seed = name, inputs, seed
            self.tally, self.done, self.died = campaign.Tally(), False, False
            self.results, theirs = multiprocessing.Pipe(duplex=False)
            theirs.close()
            begun.append((name, seed))

        def read(self) -> None:
            self.done, self.died = True, not self.seed.startswith("1.1")
            self.tally.inputs = 10 if self.died else self.inputs
            self.results.close()

        def end(self) -> None:
            """It is over."""

    monkeypatch.setattr(runs, "Worker", Dies)
    over = runs._run([("phrases", 1000, "1.0"), ("phrases", 1000, "1.1"), ("sip", 1000, "1.1")], 2)
    seeds = [seed for name, seed in begun if name == "phrases"]
    assert sorted(seeds) == ["1.0" + ".again" * times for times in range(runs.MOST_DEATHS)] + ["1.1"]
    assert [name for name, _ in over].count("sip") == 1


def test_the_fuzzer_leaves_no_signal_handler_behind() -> None:
    assert campaign.outcome(targets()["phrases"], b"one", PATIENT) is None
    for number in (signal.SIGPROF, signal.SIGALRM):
        assert signal.getsignal(number) is not campaign._hang
