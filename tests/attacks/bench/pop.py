"""The PoP that attacks are aimed at: a child process of its own, with keys that are made up for it."""

import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import psutil

from latency_probes import health
from latency_probes.caller import Caller
from latency_probes.machine import stolen_s
from latency_probes.own_server import started
from latency_probes.plan import CallPlan
from latency_probes.realtime import RealtimeCaller
from latency_probes.sip import SipCaller, Subscriber
from latency_probes.webrtc import WebRtcCaller
from tests.support.ports import free_port
from voicepipe.base.errors import ProbeError

CHECKOUT = Path(__file__).resolve().parents[3]
CONFIG = Path(__file__).parent / "pop.toml"
KEYS = "VOICEPIPE_ATTACKS_{}_KEY"
DESCRIPTORS = 1024
"""What a shell gives a process on most systems (`ulimit -n`)."""
CARRIER = "127.0.0.9"
"""The trunk's calls come from here; attackers come from elsewhere, unless they forge it."""
DESK = "127.0.0.10"
"""A telephone with a password calls from here."""
SECRETS = ("CALLERS", "ATTACKERS", "OPERATOR", "DESK", "TWILIO", "TELNYX")
DOORS = ("websocket", "webrtc", "websocket", "trunk", "websocket", "webrtc", "websocket", "desk")
"""Of calls that are placed one after another: of eight at a time, half by WebSocket, two by WebRTC, two by SIP."""


class Held(msgspec.Struct, frozen=True):
    """What the PoP's process holds at one moment."""

    rss_mb: float
    descriptors: int
    threads: int
    tasks: int | None
    """None where it does not answer."""
    cpu_s: float
    """Processor time so far."""
    waited_s: float
    """For so long its event loop could have run and had no core: what it was late by then is the machine's doing."""
    stolen_s: float
    """So much of its cores a virtual machine did not get from its host, in seconds of one core since it started."""


@dataclass(frozen=True, slots=True)
class BenchPop:
    """One that answers."""

    url: str
    pid: int
    sip_port: int
    callers_key: str
    attackers_key: str
    desk: Subscriber
    log: Path

    def caller(self, plan: CallPlan) -> Caller:
        """A well-behaved one; the number of the call says by which door it comes."""
        match DOORS[plan.number % len(DOORS)]:
            case "trunk" | "desk" as by:
                phone, subscriber = f"127.0.0.1:{self.sip_port}", Subscriber(CARRIER) if by == "trunk" else self.desk
                return SipCaller(self.url, plan.noise, 1, self.callers_key, phone=phone, subscriber=subscriber)
            case "webrtc":
                return WebRtcCaller(self.url, plan.noise, 1, self.callers_key)
            case _:
                return RealtimeCaller(self.url, plan.noise, 1, self.callers_key)

    def held(self) -> Held | None:
        """None: the process has ended. Blocks."""
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            with process.oneshot():
                rss, threads, times = process.memory_info().rss, process.num_threads(), process.cpu_times()
            descriptors = process.num_fds()
        except psutil.NoSuchProcess:
            return None
        try:
            tasks: int | None = round(health.figures(self.url)["tasks"])
        except (ProbeError, KeyError):
            tasks = None
        return Held(
            rss / 2**20, descriptors, threads, tasks, times.user + times.system, _waited_s(self.pid), stolen_s()
        )


def _waited_s(pid: int) -> float:
    """By Linux's scheduler, of the main thread; 0 where it does not tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


@contextmanager
def bench_pop(checkout: Path = CHECKOUT, descriptors: int = DESCRIPTORS) -> Iterator[BenchPop]:
    """One of this checkout, or of another; it is stopped at the end. Raises ProbeError where it does not start."""
    keys = {owner: secrets.token_urlsafe(12) for owner in SECRETS}
    variables = {**{KEYS.format(owner): key for owner, key in keys.items()}, "PYTHONPATH": str(checkout)}
    sip_port = free_port()
    pop = (
        sys.executable,
        "-m",
        "voicepipe",
        "pop",
        "--port",
        "0",
        "--sip-port",
        str(sip_port),
        "--config",
        str(CONFIG),
    )
    few = ("sh", "-c", f'ulimit -n {descriptors} && exec "$@"', "sh")
    with started((*few, *pop), {**os.environ, **variables}, checkout) as child:
        desk = Subscriber(DESK, "desk", keys["DESK"])
        yield BenchPop(child.url, child.pid, sip_port, keys["CALLERS"], keys["ATTACKERS"], desk, child.log)
