"""PoPs that only report: what a directory hears of a large fleet."""

import asyncio
import math
from random import Random

import msgspec

from voicepipe.base.places import Place
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus
from voicepipe.directory.report import Condition
from voicepipe.directory.reporter import Reporter
from voicepipe.directory.subjects import Assignment

SLOTS = 1000
"""Of each: what is assigned during the bench finds room."""


class SimulatedPop:
    """One of them. Calls that directories assign to it begin at once, and its reports say so."""

    def __init__(self, bus: Bus, number: int, seed: int) -> None:
        self.name = f"sim{number:02}"
        self._lots = Random(f"{seed} {number}")
        self._place = on_globe(self._lots)
        self.reporter = Reporter(bus, self.name, self._condition, lots=self._lots)

    def _condition(self) -> Condition:
        return Condition(
            status="ok",
            slots=SLOTS,
            calls=self._lots.randint(200, 400),
            predicted_ms=float(self._lots.randint(160, 220)),
            budget_ms=300.0,
            region=self.name,
            place=self._place,
            url=f"https://{self.name}.example.com",
            kinds=("websocket", "webrtc"),
            agents={"front-desk": "en"},
            model="frontdesk",
        )


def on_globe(lots: Random) -> Place:
    """Somewhere where people live: between 40 degrees south and 60 north, each area as likely."""
    low, high = (math.sin(math.radians(degrees)) for degrees in (-40, 60))
    return Place(round(math.degrees(math.asin(lots.uniform(low, high))), 1), round(lots.uniform(-180, 180), 1))


async def report(bus: Bus, pops: int, seed: int = 1) -> None:
    """So many PoPs report once a second, until cancelled."""
    fleet = [SimulatedPop(bus, number, seed) for number in range(pops)]
    reporters = {pop.name: pop.reporter for pop in fleet}
    async with asyncio.TaskGroup() as group, bus.listen(subjects.ASSIGNMENTS) as assigned:
        for pop in fleet:
            group.create_task(pop.reporter.run())
        async for message in assigned:
            if reporter := reporters.get(subjects.pop_of(message.subject) or ""):
                reporter.began(msgspec.json.decode(message.data, type=Assignment).call)
