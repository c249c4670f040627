"""What a thread had no processor for does not count as its work."""

import os
import sys

import pytest

from voicepipe.engines import starved
from voicepipe.engines.starved import Starved, steals, stolen_s, worst


def test_the_processor_of_which_most_was_stolen_counts() -> None:
    assert worst((10.0, 20.0), (10.5, 23.0)) == 3.0
    assert worst((), ()) == 0.0
    assert worst((10.0, 20.0), (11.0,)) == 1.0, "one was taken away meanwhile"


def test_what_the_host_kept_is_read_of_each_processor() -> None:
    text = "cpu  9 0 0 9 0 0 0 500 0 0\ncpu0 9 0 0 9 0 0 0 200 0 0\ncpu1 9 0 0 9 0 0 0 300 0 0\nintr 7\n"
    assert steals(text, 100) == (2.0, 3.0)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_this_machine_tells() -> None:
    assert len(stolen_s()) == os.cpu_count()


def test_a_system_that_does_not_tell_has_stolen_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starved, "steals", lambda stat, ticks: [][0])
    assert stolen_s() == ()


def test_what_is_stolen_while_a_thread_works_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starved, "_lately", starved._Lately())
    monkeypatch.setattr(starved, "stolen_s", lambda: (10.0, 10.0))
    begun = Starved()
    monkeypatch.setattr(starved, "stolen_s", lambda: (10.0, 14.0))
    assert begun.seconds() == pytest.approx(4.0, abs=0.5)
