"""What a service manager is told, at a real socket of datagrams."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.notify_socket import NotifySocket, notify_socket
from tests.support.waiting import until
from voicepipe.serving import service_manager
from voicepipe.serving.service_manager import END_S, START_S, STOP_S, ServiceManager, ServiceState


@pytest.fixture(params=["path", "abstract"])
def listening(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NotifySocket]:
    address = str(tmp_path / "notify") if request.param == "path" else f"@voicepipe-test-{os.getpid()}-{time.time_ns()}"
    with notify_socket(address) as opened:
        yield opened


class Service:
    """Something that starts."""

    def __init__(self) -> None:
        self.state = ServiceState(False, "starting")

    def look(self) -> ServiceState:
        return self.state


async def test_a_start_is_put_off_until_the_service_is_ready(listening: NotifySocket) -> None:
    service = Service()
    manager = ServiceManager(listening.address)
    async with manager.informed(service.look):
        first = listening.read()[0]
        assert first == {"STATUS": "starting", "EXTEND_TIMEOUT_USEC": f"{START_S * 1e6:.0f}"}
        await until(lambda: listening.count("EXTEND_TIMEOUT_USEC") > 1)
        service.state = ServiceState(True, "takes calls")
        manager.tell()
        assert listening.read()[-1] == {"STATUS": "takes calls", "READY": "1"}
        begun = len(listening.told)
        manager.tell()
        assert len(listening.read()) == begun, "there is nothing new, and nobody who watches"


async def test_what_is_not_ready_any_more_stays_started(listening: NotifySocket) -> None:
    """A PoP whose engine is down starts it again by itself."""
    service = Service()
    manager = ServiceManager(listening.address)
    async with manager.informed(service.look):
        service.state = ServiceState(True, "takes calls")
        manager.tell()
        service.state = ServiceState(False, "engine_down")
        manager.tell()
        assert listening.read()[-1] == {"STATUS": "engine_down"}


async def test_the_watchdog_hears_of_the_loop_at_half_of_its_time(listening: NotifySocket) -> None:
    service = Service()
    service.state = ServiceState(True, "takes calls")
    async with ServiceManager(listening.address, watchdog_s=0.4).informed(service.look):
        await until(lambda: listening.count("WATCHDOG") >= 3)
        before = listening.count("WATCHDOG")
        time.sleep(1.0)  # noqa: ASYNC251  # The loop hangs.
        assert listening.count("WATCHDOG") == before
        await until(lambda: listening.count("WATCHDOG") > before)
    after = listening.count("WATCHDOG")
    assert listening.told[-1] == {"WATCHDOG_USEC": f"{END_S * 1e6:.0f}"}, "a process takes a while to end"
    await asyncio.sleep(0.5)
    assert listening.count("WATCHDOG") == after


def test_a_stop_may_take_as_long_as_its_calls(listening: NotifySocket) -> None:
    ServiceManager(listening.address).stopping(3660)
    assert listening.read() == [{"STOPPING": "1", "EXTEND_TIMEOUT_USEC": f"{(3660 + STOP_S) * 1e6:.0f}"}]


async def test_a_reload_is_told_with_its_time_and_its_end(listening: NotifySocket) -> None:
    before, manager = time.monotonic(), ServiceManager(listening.address)
    async with manager.informed(lambda: ServiceState(True, "takes calls")):
        with pytest.raises(ValueError), manager.reloading():
            raise ValueError
        begun, done = listening.read()[-2:]
    assert begun["RELOADING"] == "1" and before <= int(begun["MONOTONIC_USEC"]) / 1e6 + 1e-3 <= time.monotonic() + 1e-3
    assert done == {"READY": "1"}


async def test_a_reload_while_it_starts_says_not_that_it_is_ready(listening: NotifySocket) -> None:
    manager = ServiceManager(listening.address)
    async with manager.informed(lambda: ServiceState(False, "starting")):
        with manager.reloading():
            pass
    assert not [said for said in listening.read() if "READY" in said or "RELOADING" in said]


async def test_what_could_not_be_told_is_told_later(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    address = str(tmp_path / "notify")
    manager = ServiceManager(address)
    async with manager.informed(lambda: ServiceState(True, "takes calls")):
        manager.tell()
        assert caplog.text.count("NOTIFY_SOCKET") == 1, "said once"
        with notify_socket(address) as listening:
            manager.tell()
            assert listening.read() == [{"STATUS": "takes calls", "READY": "1"}]


async def test_a_manager_that_reads_nothing_stops_nobody(listening: NotifySocket) -> None:
    manager = ServiceManager(listening.address)
    for _ in range(5000):  # Many more than a socket's queue holds.
        manager.stopping(1)
    assert 0 < listening.count("STOPPING") < 5000


async def test_nobody_is_told_where_there_is_no_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    manager = service_manager.of_environment()
    async with manager.informed(lambda: pytest.fail("nobody asks")):
        manager.tell()
        manager.stopping(1)


@pytest.mark.parametrize(("pid", "is_watched"), [("", True), ("own", True), ("1", False)])
async def test_the_watchdogs_time_is_for_the_process_that_is_named(
    listening: NotifySocket, monkeypatch: pytest.MonkeyPatch, pid: str, is_watched: bool
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", listening.address)
    monkeypatch.setenv("WATCHDOG_USEC", "30000000")
    monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()) if pid == "own" else pid)
    async with service_manager.of_environment().informed(lambda: ServiceState(True, "")):
        assert listening.count("WATCHDOG") == is_watched


async def test_it_watches_another_process_of_the_service_from_the_moment_that_it_is_told(
    listening: NotifySocket,
) -> None:
    old, new = ServiceManager(listening.address), ServiceManager(listening.address)
    new.watches_us = False
    async with old.informed(lambda: ServiceState(True, "takes calls")):
        async with new.informed(lambda: ServiceState(True, "takes calls, too")):
            before = len(listening.read())
            new.tell()
            assert len(listening.read()) == before
            old.watch(4711)
            assert listening.read()[-1] == {"MAINPID": "4711"}
            told = len(listening.told)
            old.tell()
            old.stopping(60)
            assert len(listening.read()) == told
            new.watched()
            assert listening.read()[-1] == {"STATUS": "takes calls, too", "READY": "1"}
