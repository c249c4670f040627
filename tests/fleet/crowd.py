"""More callers at once than there are places."""

import asyncio
from statistics import median

from tests.fleet.checker import refused_beside_room
from tests.fleet.history import REFUSED, History
from tests.fleet.rig import Rig
from tests.fleet.scale import FOR_EVER_S, Outcome, Scale, scenario


async def crowded(rig: Rig, scale: Scale, crowd: int, runs: int, most: float) -> Outcome:
    """All of them call at the same time, `runs` times. At most so many are to be refused by a PoP while another had
    room: the median of the runs."""
    places = len(rig.pops) * rig.plan.slots
    bounced: list[int] = []
    placed: list[int] = []
    broken: list[str] = []
    for run in range(runs):
        history, found = await _once(rig, scale, crowd, run)
        placed.append(sum(call.began > 0 for call in history.calls))
        refused = sum(call.end == REFUSED for call in history.calls)
        if (placed[-1], refused) != (places, crowd - places):
            broken.append(f"run {run + 1}: {placed[-1]} placed and {refused} refused")
        broken += found
        bounced.append(refused_beside_room(history))
    if median(bounced) > most:
        broken.append(f"a PoP refused while another had room: {bounced}")
    saw = f"placed {', '.join(map(str, placed))}; refused by a PoP while another had room: {bounced}"
    should = (f"{places} placed, {crowd - places} refused with Retry-After, none over capacity; at most {most:g} "
              "refused by a PoP while another had room (median)")  # fmt: skip
    return Outcome(f"{crowd} calls at once on {places} places", should, saw, broken)


async def _once(rig: Rig, scale: Scale, crowd: int, run: int) -> tuple[History, list[str]]:
    regions = len(rig.regions)
    async with scenario(rig, scale) as seen:
        loads = [
            seen.place(region, crowd // regions + (at < crowd % regions), hold_s=[FOR_EVER_S, FOR_EVER_S], seed=run)
            for at, region in enumerate(rig.regions)
        ]
        for load in loads:
            await load.settled(scale.up_s)
        await asyncio.sleep(2 * scale.watch_s)  # What PoPs say meanwhile is in the history.
        await seen.hung_up(loads)
    return seen.history, seen.outcome(f"crowd {run + 1}", "", "").broken
