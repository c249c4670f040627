"""Callers all over the globe, and how far nine PoPs really are from each."""

from dataclasses import dataclass
from random import Random

from tests.directory.reports import seen
from voicepipe.base.places import Place, apart_ms
from voicepipe.directory.fleet_view import SeenPop
from voicepipe.directory.round_trips import RoundTrips
from voicepipe.directory.router import WantedCall, choose

POPS = {
    "fra": Place(50.1, 8.7), "lhr": Place(51.5, -0.1), "iad": Place(39.0, -77.5), "sfo": Place(37.6, -122.4),
    "gru": Place(-23.4, -46.5), "nrt": Place(35.7, 139.7), "sin": Place(1.4, 104.0), "syd": Place(-33.9, 151.2),
    "bom": Place(19.1, 72.9),
}  # fmt: skip
CITIES = [
    Place(*degrees)
    for degrees in [
        (48.9, 2.4), (40.4, -3.7), (52.5, 13.4), (41.9, 12.5), (59.3, 18.1), (55.7, 37.6), (41.0, 29.0), (30.0, 31.2),
        (6.5, 3.4), (-1.3, 36.8), (-26.2, 28.0), (25.2, 55.3), (28.6, 77.2), (13.1, 80.3), (13.8, 100.5), (-6.2, 106.8),
        (14.6, 121.0), (22.3, 114.2), (31.2, 121.5), (37.6, 127.0), (34.7, 135.5), (-37.8, 145.0), (-31.9, 115.9),
        (-36.9, 174.8), (40.7, -74.0), (41.9, -87.6), (29.8, -95.4), (34.1, -118.2), (47.6, -122.3), (19.4, -99.1),
        (4.7, -74.1), (-12.0, -77.0), (-33.4, -70.7), (-34.6, -58.4), (45.5, -73.6), (53.3, -6.3), (39.7, -105.0),
    ]
]  # fmt: skip
RIGHT_MS = 10.0
"""So much farther than the nearest one a PoP may be and is still the right one."""
NETWORK = "198.51.100.0/24"


@dataclass(frozen=True)
class Globe:
    """One caller of many, whose place may be a lie. They call once in `every_s`."""

    true_ms: dict[str, float]
    place: Place
    every_s: float = 20.0
    first_slower_ms: float = 0.0
    """By so much the first call's line is worse."""

    def calls(self, number: int, lots: Random) -> list[str]:
        """The PoPs that their calls went to, one after the other."""
        trips, went = RoundTrips(), []
        for call in range(number):
            now = call * self.every_s
            learned = trips.of(NETWORK, now)
            wanted = WantedCall(kind="webrtc", place=self.place, learned_ms=learned.ms, unsure=learned.unsure,
                                tries=trips.may_try(NETWORK, now))  # fmt: skip
            first = choose(ALL, wanted, lots).candidates[0]
            pop = first.seen.pop
            if first.by == "guess" and wanted.tries and pop not in learned.ms:
                trips.tries(NETWORK, pop, now)
            slower_ms = self.first_slower_ms if call == 0 else 0.0
            trips.heard(NETWORK, pop, self.true_ms[pop] + lots.uniform(-2, 3) + slower_ms, now + self.every_s / 2)
            went.append(pop)
        return went

    def too_far_ms(self, pop: str) -> float:
        """Than the nearest one."""
        return self.true_ms[pop] - min(self.true_ms.values())


ALL: list[SeenPop] = [seen(pop, place=place, region=pop) for pop, place in POPS.items()]


def caller(
    lots: Random,
    access_ms: tuple[float, float],
    *,
    lies: bool,
    stretch: tuple[float, float] = (0.9, 1.1),
    first_slower_ms: float = 0.0,
) -> Globe:
    """Somewhere; cables are by such factors shorter or longer than is reckoned."""
    city = lots.choice(CITIES)
    there = Place(city.latitude + lots.uniform(-3, 3), city.longitude + lots.uniform(-3, 3))
    access = lots.uniform(*access_ms)
    true_ms = {pop: access + lots.uniform(*stretch) * apart_ms(there, place) for pop, place in POPS.items()}
    return Globe(true_ms, lots.choice(CITIES) if lies else there, first_slower_ms=first_slower_ms)


def right(callers: list[list[float]], call: int) -> float:
    """The share of callers whose n-th call, the first being 0, went to a right PoP; by how much too far each went."""
    return sum(too_far[call] <= RIGHT_MS for too_far in callers) / len(callers)
