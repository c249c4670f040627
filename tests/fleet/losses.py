"""More than one part of a fleet is lost at the same time."""

import asyncio
import time

from tests.fleet.faults import cut, latest, set_up
from tests.fleet.rig import Rig
from tests.fleet.scale import Outcome, Scale, scenario


async def most_nats_killed(rig: Rig, scale: Scale) -> Outcome:
    """All NATS servers but one, which the others' hosts find."""
    async with scenario(rig, scale) as seen:
        live = [(await seen.witnesses(region, 2))[0] for region in rig.regions]
        loads = seen.everywhere(round((scale.dead_s + 6) * scale.per_second))
        await asyncio.sleep(1)
        *lost, _ = rig.nats
        for name in lost:
            rig.kill(name)
        killed = time.monotonic()
        for pop in rig.pops:
            await seen.back(pop)
        found_s = time.monotonic() - killed
        await asyncio.sleep(max(0.0, scale.dead_s + killed - time.monotonic()))
        await rig.whole_bus(scale.up_s)
        await seen.healed(time.monotonic())
        await seen.over(loads)
        await seen.hung_up(live)
        told, broken = seen.share()
    return seen.outcome(
        f"{len(lost)} of {len(rig.nats)} NATS servers killed", "calls are placed; live calls go on; views are right "
        f"{scale.healed_s:g} s after they are back", f"{told}; every PoP was heard by every directory {found_s:.1f} s "
        f"after; live calls cut: {cut(seen.history)}", broken,
    )  # fmt: skip


async def bus_lost_for_long(rig: Rig, scale: Scale, lost_s: float) -> Outcome:
    """All NATS servers, for longer than PoPs without a report are known by themselves."""
    async with scenario(rig, scale) as seen:
        live, _ = await seen.witnesses(rig.regions[0], 3)
        loads = seen.everywhere(round((lost_s + 6) * scale.per_second))
        await asyncio.sleep(1)
        for name in rig.nats:
            rig.kill(name)
        await asyncio.sleep(lost_s)
        await rig.whole_bus(scale.up_s)
        right_s = max(await asyncio.gather(*map(seen.back, rig.pops)))
        await seen.healed(time.monotonic())
        await seen.over(loads)
        await seen.hung_up([live])
        told, broken = seen.share()
    return seen.outcome(
        f"all NATS servers killed for {lost_s:g} s", "calls are placed by what was known last; live calls go on",
        f"{told}; live calls cut: {cut(seen.history)}; views were right {right_s:.1f} s after the servers were back",
        broken,
    )  # fmt: skip


async def region_killed(rig: Rig, scale: Scale) -> Outcome:
    """All of it at once: PoPs, directory, NATS server. Its callers are still there."""
    async with scenario(rig, scale) as seen:
        region, *others = rig.regions
        elsewhere = [(await seen.witnesses(where, 2))[0] for where in others]
        loads = seen.everywhere(round((scale.dead_s + 6) * scale.per_second))
        await asyncio.sleep(2)
        lost = [name for name, where in rig.plan.pops.items() if where == region]
        for name in (*lost, f"dir-{region}", f"nats-{region}"):
            rig.kill(name)
        await asyncio.sleep(scale.dead_s)
        await rig.whole_bus(scale.up_s)
        for name in (f"dir-{region}", *lost):
            rig.begin(name)
        for pop in lost:
            await seen.back(pop)
        await seen.healed(time.monotonic())
        await seen.over(loads)
        died = cut(seen.history)
        await seen.hung_up(elsewhere)
        told, broken = seen.share()
        its = [call for call in seen.history.calls if call.region == region and call.placements]
        away = sum(call.began > 0 and seen.history.pops[call.pop].region != region for call in its)
        saw = (f"{told}, {set_up(seen.history)}; of the region's own callers {away} of {len(its)} in another one; its "
               f"PoPs named for up to {latest(seen.history, 'killed'):.1f} s; calls that died with them: {died}; other "
               f"live calls cut: {cut(seen.history) - died}")  # fmt: skip
    return seen.outcome("a whole region killed: PoPs, directory, NATS", f">= {scale.least:.1%} get a call, its callers "
                        "in other regions; no other call is cut", saw, broken)  # fmt: skip
