"""Does the directory choose well, and does it know how long turns will take?

Nine PoPs around the world, in one process, whose engines take as long as on a GPU; callers in twenty cities, ten at a
time at most. Round trips are on the wire (`wan.py`): 21 ms for 1000 km of great circle, times a factor drawn for each
way, since cables take detours, and what a city's own network takes. So the map does not always tell who is nearest.
As a page would, a caller measures the round trips to the three PoPs that are nearest on the map, and tells them.
"""

import asyncio
import random
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from latency_probes.components.directory import calls, fleet, placement_report, wan
from latency_probes.components.directory.calls import LISTENS
from latency_probes.components.directory.cities import CALLERS, POPS
from latency_probes.components.directory.load import Connection
from latency_probes.components.directory.placement_report import PlacementCall, PlacementTurn, PopThen
from latency_probes.via import Candidate, Via
from voicepipe.base.environment import made_up
from voicepipe.base.errors import ProbeError
from voicepipe.base.figures import for_tables, keep
from voicepipe.base.places import RTT_MS_PER_KM, distance_km, estimated_rtt_ms
from voicepipe.directory.router import PLAYOUT_MS

AT_ONCE = 10
TURNS = 2
NEAREST = 3
DETOUR = 0.8, 1.6
"""Of a way between a city and a PoP, against what the map says."""
ACCESS_MS = 5.0, 25.0
"""Round trip within a city's own network."""
SEED = 1
PAUSE_S = 1.0
"""Between two calls of one of the ten callers, at most."""
DELAYS = """
[delays]
asr_ms = 60
first_token_ms = 25
token_ms = 7
tts_ms = 60
"""
"""As configs/gpu-like.toml."""


@dataclass(frozen=True, slots=True)
class CallersCity:
    """Where people call from."""

    name: str
    true_ms: Mapping[str, float]
    """Round trip to each PoP."""
    told_ms: Mapping[str, float]
    """What its callers have measured."""

    def taken_ms(self, pop: str) -> float:
        """What a directory takes for the round trip."""
        told = self.told_ms.get(pop)
        return estimated_rtt_ms(CALLERS[self.name], POPS[pop]) if told is None else told


def round_trips() -> dict[str, dict[str, float]]:
    """Emulated, in ms: by city, then by PoP."""
    trips = {}
    for city, place in CALLERS.items():
        lots = random.Random(f"{SEED} {city}")
        access_ms = lots.uniform(*ACCESS_MS)
        trips[city] = {
            pop: access_ms + RTT_MS_PER_KM * distance_km(place, there) * lots.uniform(*DETOUR)
            for pop, there in POPS.items()
        }
    return trips


async def run(count: int, slots: int, json_file: Path | None) -> int:
    """Measure and print; 1 if an aim is missed. Each PoP has `slots`. Raises ConfigError: something does not start,
    ProbeError: `json_file` cannot be written."""
    console = for_tables()
    with console.status(f"{count} calls from {len(CALLERS)} cities to {len(POPS)} PoPs of {slots} slots ..."):
        placed, bus = await measured(count, slots)
    keep(json_file, {"bus": bus, "slots": slots, "placed": placed})
    console.print(f"{len(POPS)} PoPs of {slots} slots, at most {AT_ONCE} calls at a time")
    return 0 if placement_report.show(placed, bus, console) else 1


async def measured(count: int, slots: int) -> tuple[list[PlacementCall], str]:
    """So many calls, and what the fleet speaks by. Raises ConfigError."""
    kind = fleet.PopKind(calls.ENGINES + DELAYS, {LISTENS: calls.AGENTS[LISTENS]}, slots=slots)
    with tempfile.TemporaryDirectory() as folder:
        async with fleet.running(Path(folder), POPS, kind) as up:
            bench = PlacementRun(up, await cities(up), await calls.question())
            return await bench.run(count), up.bus


async def cities(up: fleet.Fleet) -> list[CallersCity]:
    """All of them, once they have measured what they tell."""

    async def city(name: str, true_ms: Mapping[str, float]) -> CallersCity:
        near = sorted(POPS, key=lambda pop: distance_km(CALLERS[name], POPS[pop]))[:NEAREST]
        told = await asyncio.gather(*(measured_ms(up.pops[pop], true_ms[pop]) for pop in near))
        return CallersCity(name, true_ms, dict(zip(near, told, strict=True)))

    return await asyncio.gather(*(city(name, true_ms) for name, true_ms in round_trips().items()))


async def measured_ms(pop: str, rtt_ms: float) -> float:
    """A round trip as a page measures it: the shortest of three GET /rtt, after one that opened the connection."""
    parts = urlsplit(pop)
    loop, request = asyncio.get_running_loop(), f"GET /rtt HTTP/1.1\r\nHost: {parts.netloc}\r\n\r\n".encode()
    async with wan.far_away(parts.hostname or "", parts.port or 0, rtt_ms) as port:
        transport, connection = await loop.create_connection(Connection, "127.0.0.1", port)
        times = []
        for _ in range(4):
            began = loop.time()
            await connection.ask(request)
            times.append(1000 * (loop.time() - began))
        transport.close()
    return round(min(times[1:]), 1)


class PlacementRun:
    """Calls from the cities."""

    def __init__(self, up: fleet.Fleet, cities: list[CallersCity], said: Any) -> None:
        self._up = up
        self._cities = cities
        self._said = said
        self._asking = asyncio.Lock()
        self._placed: list[PlacementCall] = []

    async def run(self, count: int) -> list[PlacementCall]:
        """So many, `AT_ONCE` at a time at most."""
        lots = random.Random(SEED)
        waiting = [lots.choice(self._cities) for _ in range(count)]
        async with asyncio.TaskGroup() as group:
            for number in range(AT_ONCE):
                group.create_task(self._caller(waiting, random.Random(f"{SEED} {number}")))
        return self._placed

    async def _caller(self, waiting: list[CallersCity], lots: random.Random) -> None:
        operator = {"Authorization": f"Bearer {made_up(fleet.OPERATOR_ENV)}"}
        async with httpx.AsyncClient(base_url=self._up.url, headers=operator, trust_env=False) as client:
            await asyncio.sleep(lots.uniform(0, PAUSE_S))
            while waiting:
                await self._call(waiting.pop(), client)
                await asyncio.sleep(lots.uniform(0, PAUSE_S))

    async def _call(self, city: CallersCity, client: httpx.AsyncClient) -> None:
        place = CALLERS[city.name]
        via = Via(self._up.url, "websocket", self._up.key, LISTENS, (place.latitude, place.longitude), city.told_ms)
        async with self._asking:  # What the PoPs were like is known only if nobody else is placed meanwhile.
            seen = (await client.get("/v1/pops")).raise_for_status().json()["pops"]
            try:
                told = await via.ask()
            except ProbeError as error:
                self._placed.append(PlacementCall(city.name, then(seen, city), failure=str(error)))
                return
        placed = PlacementCall(city.name, then(seen, city), told.candidates[0].pop, told.degraded)
        self._placed.append(placed)
        for there in told.candidates:
            placed.tries += 1
            try:
                placed.turns = await self._turns(city, there)
            except ProbeError as error:
                placed.failure = str(error)
            else:
                placed.failure = ""
                placed.missing = TURNS - len(placed.turns)
                return

    async def _turns(self, city: CallersCity, there: Candidate) -> list[PlacementTurn]:
        parts = urlsplit(there.url)
        async with wan.far_away(parts.hostname or "", parts.port or 0, city.true_ms[there.pop]) as port:
            caller = calls.straight(f"ws://127.0.0.1:{port}{parts.path}", there.token, LISTENS)
            results = await calls.asked(caller, self._said, TURNS, heard_out=True)
        return [
            PlacementTurn(there.pop, there.turn_ms_est, result.gap_ms, result.stages.get("turn_latency"),
                 city.true_ms[there.pop], city.taken_ms(there.pop))
            for result in results if result.gap_ms is not None and not result.cut_in
        ]  # fmt: skip


def then(seen: list[dict[str, Any]], city: CallersCity) -> list[PopThen]:
    """The PoPs at the moment of the choice, as the directory knew them, and how near they truly are."""
    return [
        PopThen(
            pop=row["pop"],
            near_ms=city.true_ms[row["pop"]] + PLAYOUT_MS["websocket"],
            has_room=row["status"] in ("ok", "late") and row["calls"] + row["coming"] < row["slots"],
            in_budget=row["status"] == "ok" and row["predicted_ms"] <= row["budget_ms"],
            load=(row["calls"] + row["coming"] + 1) / row["slots"],
        )
        for row in seen
    ]
