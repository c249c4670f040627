"""What a thread had no processor for does not count as its work."""

import hashlib
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from voicepipe.base import cpu_steal
from voicepipe.base.cpu_steal import CachedReading, CpuSteal, longest, steals, stolen_s, worst


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
    monkeypatch.setattr(cpu_steal, "steals", lambda stat, ticks: [][0])
    assert stolen_s() == ()


def test_what_is_stolen_while_a_thread_works_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu_steal, "_stolen", CachedReading(lambda: (10.0, 10.0)))
    monkeypatch.setattr(cpu_steal, "stolen_s", lambda: (10.0, 14.0))
    assert CpuSteal().seconds() >= 4.0


def test_the_thread_that_waited_longest_counts() -> None:
    assert longest({1: 5.0, 2: 7.0, 3: 9.0}, {1: 6.0, 2: 9.5}) == 2.5
    assert longest({1: 5.0}, {}) == 0.0


def test_what_costs_something_is_not_read_for_every_job(monkeypatch: pytest.MonkeyPatch) -> None:
    read = []
    kept = CachedReading(lambda: read.append(0))
    monkeypatch.setattr(cpu_steal, "FRESH_S", 600.0)
    for _ in range(100):
        kept.value()
    monkeypatch.setattr(cpu_steal, "FRESH_S", 0.0)
    kept.value()
    assert len(read) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
def test_a_library_that_computes_on_threads_of_its_own_is_starved_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The job's own thread sleeps meanwhile, as ours do in CTranslate2: it waits for no processor."""
    monkeypatch.setattr(cpu_steal, "_stolen", CachedReading(tuple))
    monkeypatch.setattr(cpu_steal, "stolen_s", tuple)
    cpu_steal._waited.cache_clear()
    processor = min(os.sched_getaffinity(0))
    begin, starved_for_long, over = (threading.Event() for _ in range(3))

    def waited() -> float:
        with open(f"/proc/self/task/{threading.get_native_id()}/schedstat") as told:
            return int(told.read().split()[1]) / 1e9

    def compute() -> None:
        os.sched_setaffinity(threading.get_native_id(), {processor})
        begin.wait(60)
        begun = waited()
        while not over.is_set():
            hashlib.sha256(bytes(1_000_000))  # without the GIL
            if waited() - begun > 0.5:
                starved_for_long.set()

    def job() -> float:
        threads = [threading.Thread(target=compute) for _ in range(2)]  # of which one runs at a time
        for thread in threads:
            thread.start()
        begun = CpuSteal()
        begin.set()
        starved_for_long.wait(60)
        told = begun.seconds()
        over.set()
        for thread in threads:
            thread.join()
        return told

    with ThreadPoolExecutor(1) as worker:
        assert worker.submit(job).result() > 0.5
