"""How far off directories learn their callers to be, and where callers go whose place is a lie."""

import asyncio
from collections.abc import Sequence
from functools import partial

from tests.fleet.manifests import PLACES
from tests.fleet.rig import Rig
from tests.fleet.scale import Outcome, Scale, Watching, scenario
from voicepipe.base.networks import network_of

CALLS = 3
"""Of one network, at each PoP; and until a network whose place is a lie is at home."""
WITHIN_MS = 10.0
MORE = 5
"""Calls of a network, whose PoPs are looked at then."""
RIGHT = 0.9
"""Of them are to be answered in their own region."""
HEARD_S = 1.0
"""A call that has ended is heard of by all directories."""


async def distances_learned(rig: Rig, scale: Scale) -> Outcome:
    """Every region's callers call every PoP; then they begin anew, and say that they are in another region."""
    what = "callers' distances are learned"
    should = (f"after {CALLS} calls of a network within {WITHIN_MS:g} ms at every directory; {RIGHT:.0%} of later "
              "calls whose place is a lie are answered in their region")  # fmt: skip
    if not rig.network.round_trips_ms:
        return Outcome(what, should, "not tried: on loopback all PoPs are as near", [])
    async with scenario(rig, scale) as seen:
        errors, broken = await _distances(seen)
        right = await _misplaced(seen)
        told = f"{sum(right)} of {len(right)} calls whose place is a lie were answered in their region"
        saw = f"{len(errors)} round trips, off by {max(errors, default=0):.1f} ms at most; {told}"
        if sum(right) < RIGHT * len(right):
            broken.append(f"only {told}")
    return seen.outcome(what, should, saw, broken)


async def _distances(seen: Watching) -> tuple[list[float], list[str]]:
    """By how many ms each learned round trip is off, and what is wrong with them."""
    rig, errors, broken = seen.rig, list[float](), list[str]()
    keys = {region: await rig.browser_key(f"dir-{region}") for region in rig.regions}
    for pop in rig.pops:
        others = [other for other in rig.pops if other != pop]
        await seen.over([seen.place(region, CALLS, avoid=others, key=key) for region, key in keys.items()])
    await asyncio.sleep(HEARD_S)
    for directory in rig.directories:
        learned = await rig.learned(directory)
        for region, callers in rig.callers.items():
            for pop, host in rig.pops.items():
                ms = learned.get((network_of(callers.host.address), pop))
                if ms is None:
                    broken.append(f"{directory} does not know how far {region} is from {pop}")
                    continue
                errors.append(abs(ms - _true_ms(rig, region, host.region)))
                if errors[-1] > WITHIN_MS:
                    broken.append(f"{directory} takes {pop} to be {ms:.0f} ms from {region}")
    return errors, broken


def _true_ms(rig: Rig, *regions: str) -> float:
    return rig.network.round_trips_ms[" ".join(sorted(regions))]


async def _misplaced(seen: Watching) -> list[bool]:
    """Of each call after the first ones, whether its own region has answered it. The callers of each region are said to
    be in each other one."""
    rig, right = seen.rig, list[bool]()
    for shift in range(1, len(rig.regions)):
        await _forget(rig)
        claimed = [*rig.regions[shift:], *rig.regions[:shift]]
        for region, found in zip(rig.regions, await asyncio.gather(*map(partial(_calls, seen), rig.regions, claimed)),
                                 strict=True):  # fmt: skip
            right += [rig.plan.pops.get(pop) == region for pop in found]
    return right


async def _forget(rig: Rig) -> None:
    """All directories begin anew."""
    for name in rig.directories:
        rig.kill(name)
        rig.begin(name)
    await rig.whole()


async def _calls(seen: Watching, region: str, claimed: str) -> Sequence[str]:
    """The PoPs that answer the later calls."""
    place, key = list(PLACES[claimed]), await seen.rig.browser_key(f"dir-{region}")
    for _ in range(CALLS):
        await seen.over([seen.place(region, 1, place=place, key=key)])
        await asyncio.sleep(HEARD_S)
    first = [call.pop for call in seen.history.calls if call.region == region][-CALLS:]
    before = len(seen.history.calls)
    await seen.over([seen.place(region, MORE, place=place, key=key)])
    later = [call.pop for call in seen.history.calls[before:] if call.region == region]
    if any(seen.rig.plan.pops.get(pop) != region for pop in later):
        print(f"{region}, said to be in {claimed}: {', '.join(first)}, and then {', '.join(later)}")
    return later
