"""How large a run is, what is placed in it, and what comes of it."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec

from tests.fleet.caller import Order
from tests.fleet.checker import Bounds, violations
from tests.fleet.manifests import ACME, PLACES
from tests.fleet.orders import Load
from tests.fleet.rig import Rig
from tests.fleet.watch import watched

FOR_EVER_S = 3600.0


class Scale(NamedTuple):
    """Of one run. Seconds are as long as the machine needs; bounds are what is promised."""

    bounds: Bounds
    per_second: float
    """Set-ups, of all regions together."""
    set_ups: int
    """While PoPs are killed."""
    dead_s: float
    """What was killed stays dead so long."""
    cut_s: float
    paused_s: float
    hold_s: tuple[float, float]
    patience_s: float
    """Of a caller with a directory and with a candidate."""
    healed_s: float
    """Views are right so long after healing."""
    up_s: float
    """Every wait for what must come ends after this."""
    watch_s: float = 0.5
    least: float = 0.999
    """Of set-ups, get a call while a part of the fleet fails."""
    slack_s: float = 0.0
    """Views have so much longer to become right, on machines that may be slow."""


class Outcome(NamedTuple):
    """A row of the table."""

    fault: str
    should: str
    saw: str
    broken: list[str]


class Watching:
    """A scenario in progress: its loads and its history."""

    def __init__(self, rig: Rig, scale: Scale) -> None:
        self.rig = rig
        self.scale = scale
        self.history = rig.history()
        self._loads: list[Load] = []

    def place(self, region: str, count: int, **changes: Any) -> Load:
        """Calls by the callers of one region, who ask their own directory first."""
        own_first = sorted(self.rig.directories, key=lambda name: self.rig.directories[name].region != region)
        settings: dict[str, Any] = {
            "directories": {name: self.rig.url(name) for name in own_first},
            "pops": {host.address: name for name, host in self.rig.pops.items()},
            "key": ACME,
            "region": region,
            "place": list(PLACES[region]),
            "count": count,
            "hold_s": list(self.scale.hold_s),
            "patience_s": self.scale.patience_s,
            "alive_s": max(20.0, 2 * self.scale.paused_s, self.scale.patience_s),
            **changes,
        }
        callers = self.rig.telnyx if settings.get("kind") == "telnyx" else self.rig.callers[region]
        load = callers.place(lambda name, out: Order(name=name, out=out, **settings))
        self._loads.append(load)
        self.history.placed += count
        return load

    def everywhere(self, count: int, part: float = 1.0, **changes: Any) -> list[Load]:
        """Calls by the callers of all regions, who come as often as the scale says; a `part` of it if there are more
        such loads."""
        regions = self.rig.regions
        each = part * self.scale.per_second / len(regions)
        shares = [count // len(regions) + (at < count % len(regions)) for at in range(len(regions))]
        return [self.place(region, share, per_second=each, **changes)
                for region, share in zip(regions, shares, strict=True)]  # fmt: skip

    async def witnesses(self, region: str, count: int, **changes: Any) -> tuple[Load, list[str]]:
        """Calls that last until they are hung up, and the PoPs that they are at."""
        load = self.place(region, count, hold_s=[FOR_EVER_S, FOR_EVER_S], **changes)
        return load, await load.begun(count, self.scale.up_s)

    async def over(self, loads: Sequence[Load]) -> None:
        """They are; their calls go into the history."""
        for load in loads:
            self.history.calls += await load.over(load.order.count / (load.order.per_second or 1e9) + self.scale.up_s)
            self._loads.remove(load)

    async def hung_up(self, loads: Sequence[Load]) -> None:
        """Witnesses, who have seen enough."""
        for load in loads:
            load.hang_up()
        await self.over(loads)

    async def healed(self, since: float) -> None:
        """So long after this second as the scale says, all directories have to know that all PoPs take calls."""
        await asyncio.sleep(max(0.0, since + self.scale.healed_s - time.monotonic()))
        deadline = time.monotonic() + self.scale.slack_s
        views = await self.rig.views()
        while views.at < deadline and any(view != views.should for view in views.of.values()):
            await asyncio.sleep(0.2)
            views = await self.rig.views()
        self.history.views.append(views)

    async def back(self, pop: str) -> float:
        """The seconds until all directories have heard from a PoP that has just been started, or goes on. Raises
        TimeoutError."""
        since = time.monotonic()
        return await self.rig.heard(pop, since, self.scale.up_s) - since

    def outcome(self, fault: str, should: str, saw: str, broken: Sequence[str] = ()) -> Outcome:
        """Broken is what the checker finds, and what the scenario found itself."""
        (self.rig.folder / f"{fault}.json").write_bytes(msgspec.json.encode(self.history))
        unwatched = [] if self.history.health else ["nobody heard how the PoPs were"]
        return Outcome(fault, should, saw, [*broken, *unwatched, *violations(self.history, self.scale.bounds)])

    def share(self) -> tuple[str, list[str]]:
        """How many got a call, and whether these are too few."""
        answered = sum(call.began > 0 for call in self.history.calls)
        share = answered / max(1, self.history.placed)
        told = f"{answered} of {self.history.placed} set-ups got a call ({share:.2%})"
        return told, [] if share >= self.scale.least else [f"only {told}"]


@asynccontextmanager
async def scenario(rig: Rig, scale: Scale) -> AsyncIterator[Watching]:
    """On a fleet that is whole and idle."""
    await rig.whole()
    watching = Watching(rig, scale)
    try:
        async with watched(rig, watching.history, scale.watch_s):
            yield watching
    finally:
        for load in watching._loads:  # It was left in the middle.
            load.hang_up()
