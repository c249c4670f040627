"""Agents are pushed to the whole fleet: a bad one, a good one, and one while a region is cut off."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any

import httpx

from tests.fleet.faults import cut
from tests.fleet.manifests import AGENTS
from tests.fleet.polling import until
from tests.fleet.rig import Rig
from tests.fleet.scale import Outcome, Scale, scenario

LIVE_S = 3.0
BAD = 'name = "bad"\nspeed = "fast"\n'


async def pushed(rig: Rig, scale: Scale) -> Outcome:
    """Calls go on throughout, and are placed."""
    async with scenario(rig, scale) as seen:
        region, *others = rig.regions
        outside, everywhere = _of(rig, others), set(rig.pops)
        live = [(await seen.witnesses(where, 2))[0] for where in rig.regions]
        loads = seen.everywhere(round((scale.cut_s + 10) * scale.per_second))
        at = f"dir-{others[0]}"
        broken = await _bad_one(rig, at)
        good_s = await _timed(
            rig, at, "good", lambda: _all_have(rig, rig.directories, everywhere, "good"), broken, scale
        )
        rig.cut(region)
        await asyncio.sleep(scale.cut_s / 2)
        outside_s = await _timed(rig, at, "later", lambda: _all_have(rig, [at], outside, "later"), broken, scale)
        drift = await _differing(rig, at, "later")
        await asyncio.sleep(scale.cut_s / 2)
        rig.heal(region)
        healed = time.monotonic()
        await _known(rig, rig.directories, everywhere, "later", scale)
        healed_s = time.monotonic() - healed
        await seen.healed(healed)
        await seen.over(loads)
        await seen.hung_up(live)
        crossing = sum(call.end == "lost" and call.region != seen.history.pops[call.pop].region
                       for call in seen.history.calls if call.began)  # fmt: skip
        if drift != everywhere - outside:
            broken.append(
                f"PoPs that were seen to differ: {sorted(drift)}; cut off were {sorted(everywhere - outside)}"
            )
        told, few = seen.share()
        saw = (f"live at all {len(rig.pops)} PoPs after {good_s:.1f} s; with a region cut off, at the other "
               f"{len(outside)} after {outside_s:.1f} s, {len(drift)} seen to differ, and at these {healed_s:.1f} s "
               f"after healing; {told}; live calls cut: {cut(seen.history) - crossing}, and {crossing} across the "
               "cut")  # fmt: skip
    return seen.outcome("agents pushed", f"a bad one is refused with file and key and taken by nobody; a good one is "
                        f"live everywhere within {LIVE_S:g} s, live calls go on; a region that was cut off takes it "
                        "later, and is seen to differ meanwhile", saw, broken + few)  # fmt: skip


def _files(name: str) -> dict[str, str]:
    """The rig's agents, and one of this name."""
    greetings = {**AGENTS, name: ""}
    return {f"agents/{each}.toml": f'name = "{each}"\ngreeting = "{said}"\n' for each, said in greetings.items()}


async def _bad_one(rig: Rig, directory: str) -> list[str]:
    """What is wrong with how it was refused."""
    before = await _editions(rig, directory)
    answer = await rig.push(directory, {**_files("good"), "agents/bad.toml": BAD})
    said = answer.text
    broken = [] if answer.status_code == 400 and "agents/bad.toml: speed: " in said else [f"a bad agent: {said[:200]}"]
    await asyncio.sleep(2)
    return broken + ([] if before == await _editions(rig, directory) else ["a PoP took something of a refused push"])


async def _editions(rig: Rig, directory: str) -> dict[str, Any]:
    return {row["pop"]: row["edition"] for row in await rig.rows(directory)}


async def _timed(
    rig: Rig, directory: str, name: str, known: Callable[[], Awaitable[bool]], broken: list[str], scale: Scale
) -> float:
    """Seconds from a push until the agent of this name is live, as PoPs report it."""
    began = time.monotonic()
    answer = await rig.push(directory, _files(name))
    if answer.status_code != 201:
        broken.append(f"a good agent: {answer.text[:200]}")
    with suppress(TimeoutError):
        await until(known, scale.up_s)
    took_s = time.monotonic() - began
    if took_s > LIVE_S + scale.slack_s:
        broken.append(f"{name!r} was live only after {took_s:.1f} s")
    return took_s


async def _known(rig: Rig, directories: Collection[str], pops: Collection[str], name: str, scale: Scale) -> None:
    with suppress(TimeoutError):
        await until(partial(_all_have, rig, directories, pops, name), scale.up_s)


async def _all_have(rig: Rig, directories: Collection[str], pops: Collection[str], name: str) -> bool:
    """Whether these directories know that these PoPs have an agent of this name."""
    try:
        views = await asyncio.gather(*map(rig.rows, directories))
    except httpx.HTTPError:
        return False
    return all({row["pop"] for row in rows if name in row["agents"]} >= set(pops) for rows in views)


async def _differing(rig: Rig, directory: str, name: str) -> set[str]:
    """PoPs that this directory knows, silent ones as well, to lack that agent."""
    rows = [*await rig.rows(directory), *await rig.rows(directory, "lost")]
    return {row["pop"] for row in rows if name not in row["agents"]}


def _of(rig: Rig, regions: Collection[str]) -> set[str]:
    return {pop for pop, where in rig.plan.pops.items() if where in regions}
