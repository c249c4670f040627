"""The wide-area network of `make chaos` delays, keeps the order, loses and cuts."""

import random
from collections.abc import Callable
from itertools import pairwise

from tests.fleet.wan import End, Router, Wan

FRA, LHR, IAD = End("10.1.0.1", "eu", 1), End("10.1.0.2", "eu", 2), End("10.2.0.1", "us", 3)
RIG = End("10.250.0.1", "", 4)
ROUND_TRIPS = {"eu eu": 2.0, "eu us": 90.0, "us us": 2.0}


class Time:
    """A clock, and what is to be done at which time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def later(self, seconds: float, do: Callable[[], None]) -> None:
        self._due.append((self.now + seconds, len(self._due), do))

    def pass_by(self) -> None:
        """All of it is done."""
        for at, _, do in sorted(self._due, key=lambda due: due[:2]):
            self.now = at
            do()
        self._due.clear()


class Site:
    def __init__(self, loss: float = 0.0) -> None:
        self.time = Time()
        self.arrived: list[tuple[int, bytes, float]] = []
        """Device, what, and when."""
        wan = Wan([FRA, LHR, IAD, RIG], ROUND_TRIPS, jitter_ms=5.0, loss=loss)
        self.router = Router(wan, lambda device, packet: self.arrived.append((device, packet[20:], self.time.now)),
                             self.time.later, random.Random(1))  # fmt: skip

    def send(self, one: End, address: str, data: bytes = b"x", version: int = 4) -> None:
        header = bytes([version << 4 | 5]) + bytes(15) + bytes(map(int, address.split(".")))
        self.router.take(one, header + data)


def test_a_packet_takes_half_the_round_trip_and_some_jitter() -> None:
    site = Site()
    site.send(FRA, IAD.address)
    site.send(FRA, LHR.address)
    site.time.pass_by()
    (near, _, soon), (far, _, late) = site.arrived
    assert (near, far) == (LHR.device, IAD.device)
    assert 0.001 <= soon <= 0.006 and 0.045 <= late <= 0.05


def test_none_overtakes_another_of_the_same_way() -> None:
    site = Site()
    for number in range(50):
        site.send(FRA, IAD.address, bytes([number]))
        site.time.now += 0.0001
    site.time.pass_by()
    assert [packet for _, packet, _ in site.arrived] == [bytes([number]) for number in range(50)]
    assert all(one[2] <= other[2] for one, other in pairwise(site.arrived))


def test_some_are_lost_between_regions_and_none_within_one() -> None:
    site = Site(loss=0.5)
    for _ in range(200):
        site.send(FRA, IAD.address)
        site.send(FRA, LHR.address)
    site.time.pass_by()
    devices = [device for device, _, _ in site.arrived]
    assert devices.count(LHR.device) == 200 and 60 < devices.count(IAD.device) < 140


def test_a_region_that_is_cut_off_hears_itself_and_who_measures() -> None:
    site = Site()
    site.send(FRA, IAD.address)
    site.router.cut("eu")
    for one, other in ((FRA, IAD), (IAD, FRA), (FRA, LHR), (RIG, FRA), (FRA, RIG), (RIG, IAD)):
        site.send(one, other.address)
    site.time.pass_by()
    assert sorted(device for device, _, _ in site.arrived) == [FRA.device, LHR.device, IAD.device, RIG.device]
    site.router.heal("eu")
    site.send(FRA, IAD.address)
    site.time.pass_by()
    assert site.arrived[-1][0] == IAD.device


def test_what_goes_nowhere_is_dropped() -> None:
    site = Site()
    site.send(FRA, "10.9.9.9")
    site.send(FRA, IAD.address, version=6)
    site.time.pass_by()
    assert site.arrived == []
