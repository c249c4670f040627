"""Hosts as network namespaces, where this machine allows them: `unshare -Urn`, and a TUN device in each."""

import ctypes
import fcntl
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tests.fleet.manifests import PLACES
from tests.fleet.network import UP_S, Host, helper, order
from tests.fleet.processes import CLONE_NEWNET, LIBC, Process, wait
from tests.fleet.wan import End, Wan

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
INSIDE = "VOICEPIPE_FLEET_INSIDE"
"""Set in the environment of what runs within `unshare -Urn`."""
ROUND_TRIPS_MS = {"ap ap": 2.0, "ap eu": 220.0, "ap us": 160.0, "eu eu": 2.0, "eu us": 90.0, "us us": 2.0}
LOSS = 0.001
RIG = "11.250.0.1"


def inside() -> bool:
    """Whether this process may make hosts."""
    return bool(os.environ.get(INSIDE))


def forbidden() -> str:
    """Why hosts cannot be made on this machine; empty: they can."""
    for program, package in (("unshare", "util-linux"), ("ip", "iproute2")):
        if shutil.which(program) is None:
            return f"{program} is missing (apt install {package})"
    trial = "from tests.fleet.namespaces import device; device('11.0.0.1')"
    try:
        tried = subprocess.run((*ENTER, sys.executable, "-c", trial), capture_output=True, text=True, timeout=UP_S,
                               check=False)  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    said = tried.stderr.strip().splitlines()
    return "" if tried.returncode == 0 else (said[-1] if said else f"unshare ended with status {tried.returncode}")


ENTER = ("unshare", "-Urn")


def device(address: str) -> int:
    """The descriptor of a TUN device in this thread's network namespace, by which it reaches 11.0.0.0/8: directories
    learn of public addresses alone. Raises OSError."""
    made = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(made, TUNSETIFF, struct.pack("16sH22x", b"wan", IFF_TUN | IFF_NO_PI))
    for command in ("ip link set lo up", f"ip addr add {address}/8 dev wan", "ip link set wan up"):
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        if done.returncode:
            raise OSError(f"{command}: {done.stderr.strip()}")
    return made


class Namespaces:
    """Implements `network.Network`. The process that makes it is a host as well, which nothing cuts off."""

    round_trips_ms: Mapping[str, float] = ROUND_TRIPS_MS

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._home = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        self._ends = [End(RIG, "", device(RIG))]
        self._opened = [self._home, self._ends[0].device]
        self._router: Process | None = None

    def host(self, name: str, region: str) -> Host:
        number = len(self._ends)
        address = f"11.{list(PLACES).index(region) + 1}.0.{number}"
        self._enter(None)
        try:
            end = End(address, region, device(address))
            namespace = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        finally:
            self._enter(self._home)
        self._ends.append(end)
        self._opened += [end.device, namespace]
        return Host(name, region, address, namespace)

    def start(self) -> None:
        devices = tuple(end.device for end in self._ends)
        self._router = router = helper("wan", self._folder, devices)
        router.start()
        router.tell(msgspec.json.encode(Wan(self._ends, ROUND_TRIPS_MS, loss=LOSS)))
        wait(lambda: router.serves, "the wide-area network", UP_S)

    def way(self, region: str, to: Host, port: int) -> str:
        return f"{to.address}:{port}"

    def cut(self, region: str) -> None:
        order(self._router, "cut", region)

    def heal(self, region: str) -> None:
        order(self._router, "heal", region)

    def close(self) -> None:
        if self._router:
            self._router.kill()
        while self._opened:
            os.close(self._opened.pop())

    @staticmethod
    def _enter(namespace: int | None) -> None:
        """None: a new one."""
        failed = LIBC.unshare(CLONE_NEWNET) if namespace is None else LIBC.setns(namespace, CLONE_NEWNET)
        if failed:
            raise OSError(ctypes.get_errno(), "no network namespace can be entered")
