"""Where the processes of a fleet live, and how a region is cut off from the others."""

import random
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from tests.fleet.processes import Process, wait

UP_S = 60.0
PORT, SIP_PORT, BUS_PORT, ROUTE_PORT, API_PORT = 8080, 5060, 4222, 6222, 8081
"""The same at every address. Below those that a system hands out, so that nothing takes a port while its owner is
dead."""


class Host(NamedTuple):
    """One machine, for what runs on it."""

    name: str
    region: str
    address: str
    namespace: int | None = None


class Network(Protocol):
    """Between hosts."""

    round_trips_ms: Mapping[str, float]
    """Of two regions, as "eu us" in the order of the alphabet; empty: there is no way between them."""

    def host(self, name: str, region: str) -> Host:
        """Another one."""

    def start(self) -> None:
        """Once all hosts are named."""

    def way(self, region: str, to: Host, port: int) -> str:
        """The address and port by which hosts of a region reach this one."""

    def cut(self, region: str) -> None:
        """Nothing passes between a region and the others from now on,"""

    def heal(self, region: str) -> None:
        """and now it does again."""

    def close(self) -> None:
        """Idempotent."""


class Link(msgspec.Struct, frozen=True):
    """A proxy's way from one region to a host of another."""

    regions: tuple[str, str]
    listens: tuple[str, int]
    leads: tuple[str, int]


class Loopback:
    """All on this machine, none far from another. What has to be cut goes by a proxy: the ways that were asked for
    before it is started."""

    round_trips_ms: Mapping[str, float] = {}

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._net = _free_net()
        self._hosts = 0
        self._links: dict[tuple[str, Host, int], Link] = {}
        self._proxies: Process | None = None

    def host(self, name: str, region: str) -> Host:
        self._hosts += 1
        return Host(name, region, f"{self._net}.{self._hosts}")

    def start(self) -> None:
        if self._links:
            self._proxies = helper("proxies", self._folder)
            self._proxies.start()
            self._proxies.tell(msgspec.json.encode(list(self._links.values())))
            wait(lambda: bool(self._proxies and self._proxies.serves), "proxies", UP_S)

    def way(self, region: str, to: Host, port: int) -> str:
        if region == to.region:
            return f"{to.address}:{port}"
        key = (region, to, port)
        if key not in self._links:
            listens = (f"{self._net}.250", 2000 + len(self._links))
            self._links[key] = Link((region, to.region), listens, (to.address, port))
        host, number = self._links[key].listens
        return f"{host}:{number}"

    def cut(self, region: str) -> None:
        order(self._proxies, "cut", region)

    def heal(self, region: str) -> None:
        order(self._proxies, "heal", region)

    def close(self) -> None:
        if self._proxies:
            self._proxies.kill()


def helper(module: str, folder: Path, descriptors: tuple[int, ...] = ()) -> Process:
    """A process that stands between hosts."""
    command = (sys.executable, "-m", f"tests.fleet.{module}")
    return Process(module, command, folder / f"{module}.log", f"{module}: ready", descriptors=descriptors)


def order(process: Process | None, what: str, region: str) -> None:
    """It has been carried out then."""
    assert process, "the network is not started"
    done = f"{what} {region}\n"
    before = process.said().count(done)
    process.tell(f"{what} {region}".encode())
    wait(lambda: process.said().count(done) > before, f"{what} {region}", UP_S)


def _free_net() -> str:
    """The first three numbers of addresses of this machine that nobody else uses. Raises OSError: it has none."""
    for _ in range(100):
        net = f"127.{random.randint(1, 254)}.{random.randint(1, 254)}"
        if all(_is_free(f"{net}.1", port) for port in (PORT, BUS_PORT, ROUTE_PORT)):
            return net
    raise OSError(f"no address 127.x.y.z of this machine has its ports {PORT}, {BUS_PORT} and {ROUTE_PORT} free")


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True
