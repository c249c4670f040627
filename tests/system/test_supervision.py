"""A PoP and a directory under a service manager: what they tell it of themselves, as processes."""

import asyncio
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from latency_probes.conversation import converse
from latency_probes.own_server import Started, started
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.directory.nats_server import nats_server, needs_nats
from tests.support.notify_socket import NotifySocket, notify_socket
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e

WATCHDOG_S = 1.0


@contextmanager
def supervised(command: tuple[str, ...], folder: Path) -> Iterator[tuple[Started, NotifySocket]]:
    """The process that `command` starts, and its service manager."""
    with notify_socket(str(folder / "notify")) as manager:
        watched = {"NOTIFY_SOCKET": manager.address, "WATCHDOG_USEC": f"{WATCHDOG_S * 1e6:.0f}"}
        with started(command, {**os.environ, **watched}) as process:
            yield process, manager


def status_of(url: str) -> int:
    with urllib.request.urlopen(f"{url}/readyz") as answer:
        return int(answer.status)


async def test_a_pop_tells_when_it_takes_calls_that_it_lives_and_that_it_stops(tmp_path: Path) -> None:
    with supervised(PATIENT_POP, tmp_path) as (pop, manager):
        assert manager.read()[0]["STATUS"] == "starting: engines load"
        assert manager.wait("READY")["STATUS"].startswith("takes calls; 0 of ")
        assert await asyncio.to_thread(status_of, pop.url) == 200

        before = manager.count("WATCHDOG")
        caller = RealtimeCaller(pop.url, "quiet", seed=1)
        call = CallPlan(0, "quiet", (Turn("supervised", spoken("hours")[0]),))
        record = await converse(caller, call, seed=1)
        assert not record.failure
        assert manager.count("WATCHDOG") > before + 3, "one each half second, of a call of some seconds"
        assert any(message.get("STATUS", "").startswith("takes calls; 1 of ") for message in manager.told)

        os.kill(pop.pid, signal.SIGSTOP)
        stopped = manager.count("WATCHDOG")
        await asyncio.sleep(3 * WATCHDOG_S)
        assert manager.count("WATCHDOG") <= stopped + 1, "a process that hangs is not heard"
        os.kill(pop.pid, signal.SIGCONT)
        await asyncio.to_thread(manager.wait, "WATCHDOG", stopped + 1)

        os.kill(pop.pid, signal.SIGHUP)
        assert "MONOTONIC_USEC" in await asyncio.to_thread(manager.wait, "RELOADING")
        await asyncio.to_thread(manager.wait, "READY", 1)

        os.kill(pop.pid, signal.SIGTERM)
        assert "EXTEND_TIMEOUT_USEC" in await asyncio.to_thread(manager.wait, "STOPPING")
        phases = ("READY", "RELOADING", "STOPPING")
        told = [key for message in manager.told for key in message if key in phases]
        assert told == ["READY", "RELOADING", "READY", "STOPPING"]


@needs_nats
def test_a_directory_tells_when_it_answers_and_that_it_stops(tmp_path: Path) -> None:
    with nats_server(tmp_path) as nats:
        key, config = tmp_path / "directory.pem", tmp_path / "directory.toml"
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True)
        config.write_text(f'[directory]\nkey = "directory.pem"\n[bus]\nservers = ["{nats.url}"]\n')
        command = (sys.executable, "-m", "voicepipe", "directory", "--config", str(config), "--port", "0")
        with supervised(command, tmp_path) as (directory, manager):
            assert manager.wait("READY")["STATUS"] == "answers; 0 calls are relayed"
            seen = manager.count("WATCHDOG")
            manager.wait("WATCHDOG", seen + 1)
            os.kill(directory.pid, signal.SIGTERM)
            assert "EXTEND_TIMEOUT_USEC" in manager.wait("STOPPING")
