"""NATS, a directory and three PoPs, each a process of its own, and a probe that calls them.

`python -m tests.probe.probed_fleet` measures how long it takes from a fault to its alert, with the rounds of the
shipped configuration and a real Prometheus.
"""

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from latency_probes.own_server import Started, started
from tests.directory.keys import make_keys
from tests.directory.nats_server import nats_server
from tests.observe.prometheus import Prometheus, scraping
from tests.support.paths import ROOT
from tests.support.ports import free_port

SECRETS = {"ACME_KEY": "k-acme", "OPERATOR_KEY": "k-operator"}
VOICEPIPE = (sys.executable, "-m", "voicepipe")
DIRECTORY = """
[directory]
key = "directory.pem"
place = [50.1, 8.7]
[bus]
servers = ["{bus}"]
[http]
operator_key_env = "OPERATOR_KEY"
[sip]
port = {phone}
[[sip.trunks]]
name = "here"
addresses = ["127.0.0.1"]
[[tenants]]
name = "acme"
key_env = "ACME_KEY"
[[routes]]
tenant = "acme"
"""
POP = """
[pop]
id = "{name}"
region = "{name}"
slots = 8
budget_ms = 600_000
loop_lag_ms = 60_000
drain_ms = 0
agents = "{agents}"
[fleet]
keys = ["directory.pub.pem"]
place = {place}
url = "http://127.0.0.1:{port}"
[http]
port = {port}
[bus]
servers = ["{bus}"]
[engines]
asr = "scripted"
llm = "frontdesk"
tts = "scripted"
[scripted]
hears = ["when do you open on sunday"]
[delays]
first_token_ms = {first_token_ms}
[sip]
port = {phone}
[[sip.trunks]]
name = "here"
addresses = ["127.0.0.1"]
[[tenants]]
name = "acme"
key_env = "ACME_KEY"
[[routes]]
tenant = "acme"
"""
PROBE = """
[probe]
{probe}
[http]
port = 0
[[targets]]
name = "fleet"
directory = "{directory}"
straight = true
operator_key_env = "OPERATOR_KEY"
key_env = "ACME_KEY"
budget_ms = {budget_ms}
[[targets]]
name = "fra"
url = "http://127.0.0.1:{fra}"
by = ["webrtc", "sip"]
phone = "127.0.0.1:{fra_phone}"
key_env = "ACME_KEY"
budget_ms = {budget_ms}
"""
PLACES = {"fra": [50.1, 8.7], "lhr": [51.5, -0.1], "iad": [39.0, -77.5]}
SLOW, DEAD = "lhr", "iad"


@dataclass
class ProbedFleet:
    """They run."""

    folder: Path
    bus: str
    stack: ExitStack
    pops: dict[str, Started] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in PLACES})
    phones: dict[str, int] = field(default_factory=lambda: {name: free_port() for name in PLACES})
    phone: int = field(default_factory=free_port)
    """Of the directory."""
    directory: str = ""

    def begin(self, delays: Mapping[str, int]) -> None:
        """Start all; `delays`: milliseconds that the language model of a PoP takes to its first token."""
        environment = {**os.environ, **SECRETS}
        (file := self.folder / "directory.toml").write_text(DIRECTORY.format(bus=self.bus, phone=self.phone))
        command = (*VOICEPIPE, "directory", "--config", str(file), "--port", "0")
        self.directory = self.stack.enter_context(started(command, environment)).url
        for name in PLACES:
            self.start(name, delays.get(name, 0))

    def start(self, name: str, first_token_ms: int) -> None:
        """Start one PoP."""
        text = POP.format(
            name=name, bus=self.bus, port=self.ports[name], place=PLACES[name], phone=self.phones[name],
            first_token_ms=first_token_ms, agents=ROOT / "configs" / "agents",
        )  # fmt: skip
        (file := self.folder / f"{name}.toml").write_text(text)
        command = (*VOICEPIPE, "pop", "--config", str(file))
        self.pops[name] = self.stack.enter_context(started(command, {**os.environ, **SECRETS}))

    def kill(self, name: str) -> None:
        """By SIGKILL."""
        os.kill(self.pops[name].pid, signal.SIGKILL)

    def probe(self, probe: str, budget_ms: int) -> Path:
        """The configuration of a probe, whose `[probe]` has these lines."""
        file = self.folder / "probe.toml"
        file.write_text(
            PROBE.format(
                probe=probe, directory=self.directory, fra=self.ports["fra"], budget_ms=budget_ms,
                fra_phone=self.phones["fra"],
            )
        )  # fmt: skip
        return file


@contextmanager
def probed_fleet(folder: Path, delays: Mapping[str, int]) -> Iterator[ProbedFleet]:
    make_keys(folder)
    with ExitStack() as stack:
        fleet = ProbedFleet(folder, stack.enter_context(nats_server(folder)).url, stack)
        fleet.begin(delays)
        yield fleet


@contextmanager
def watched(fleet: ProbedFleet, file: Path, every: str) -> Iterator[Prometheus]:
    """A probe of these PoPs, and a Prometheus that scrapes it so often and has our alerts."""
    port = free_port()
    command = (*VOICEPIPE, "probe", "--config", str(file), "--port", str(port))
    (folder := fleet.folder / "prometheus").mkdir()
    with (
        started(command, {**os.environ, **SECRETS}),
        scraping(folder, every, {"voicepipe-probe": [f"127.0.0.1:{port}"]}) as prometheus,
    ):
        yield prometheus


def firing(prometheus: Prometheus) -> list[dict[str, str]]:
    """The labels of the alerts."""
    return [json.loads(labels) for labels in prometheus.asked('ALERTS{alertstate="firing"}')]


def wait(condition: Callable[[], object], what: str, seconds: float = 300.0) -> float:
    """Until `condition()` holds; how many seconds that took. Raises AssertionError: much longer than it should."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, what
        time.sleep(0.2)
    return time.monotonic() - began


def is_called(prometheus: Prometheus, series: int) -> bool:
    """So many series have been answered."""
    return list(prometheus.asked("voicepipe_probe_up == 1").values()) == [1.0] * series


def main() -> None:
    """Print the seconds from each fault to its alert, again and again: as often as the command line says, or once."""
    again = int(sys.argv[1]) if sys.argv[1:] else 1
    with tempfile.TemporaryDirectory() as folder, probed_fleet(Path(folder), {}) as fleet:
        with watched(fleet, fleet.probe("every_s = 60", 400), "10s") as prometheus:
            for _ in range(again):
                wait(
                    lambda: is_called(prometheus, 6) and not firing(prometheus),
                    "all are answered, and no alert is left",
                )
                time.sleep(random.uniform(0, 60))
                fleet.kill(DEAD)
                told(prometheus, "ProbeFails", DEAD)
                fleet.start(DEAD, 0)
                fleet.kill(SLOW)
                fleet.start(SLOW, 700)
                told(prometheus, "ProbeLate", SLOW)
                fleet.kill(SLOW)
                fleet.start(SLOW, 0)


def told(prometheus: Prometheus, alert: str, pop: str) -> None:
    """Wait for this alert, and print how long that took."""

    def of_pop() -> list[dict[str, str]]:
        return [one for one in firing(prometheus) if (one["alertname"], one.get("pop")) == (alert, pop)]

    seconds = wait(of_pop, alert)
    [one] = of_pop()
    unsure = sum(prometheus.asked("voicepipe_probe_unsure_total").values())
    of_all = sum(prometheus.asked("voicepipe_probe_calls_total").values())
    print(f"{alert} after {seconds:.0f} s: {one['fault']} {one.get('stage', '')} at {one['pop']} "
          f"({unsure:.0f} of {of_all:.0f} calls so far were unsure)", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
