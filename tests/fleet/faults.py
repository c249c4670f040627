"""What is broken, and what has to be seen of it. Each function is a row of the table."""

import asyncio
import time
from contextlib import suppress
from itertools import cycle

from tests.fleet.checker import placements, spans
from tests.fleet.history import HUNG_UP, REFUSED, History
from tests.fleet.manifests import CLINIC
from tests.fleet.polling import until
from tests.fleet.rig import Rig
from tests.fleet.scale import Outcome, Scale, scenario
from tests.fleet.skewed import SKEW

BETWEEN_S = 3.0
SKEW_S = 300.0
LEAST = {"sip": 0.995, "twilio": 0.99, "telnyx": 0.99}
"""Of set-ups by telephone that get a call."""


async def pops_killed(rig: Rig, scale: Scale, kind: str = "websocket") -> Outcome:
    """One PoP after another, under load. Each comes back before the next one goes."""
    scale = _least(scale, kind)
    async with scenario(rig, scale) as seen:
        loads = seen.everywhere(scale.set_ups, kind=kind)
        lasts = scale.set_ups / scale.per_second
        ends = asyncio.get_running_loop().time() + lasts
        for pop in cycle(rig.pops):
            await asyncio.sleep(min(BETWEEN_S, lasts / 4))
            rig.kill(pop)
            await asyncio.sleep(scale.dead_s)
            if asyncio.get_running_loop().time() + scale.dead_s > ends:
                break
            rig.begin(pop)
            await seen.back(pop)
        await seen.over(loads)
        told, broken = seen.share()
        killed = sum(event.what == "killed" for event in seen.history.happened)
        named_s = latest(seen.history, "killed")
        saw = (f"{told}, {set_up(seen.history)}; {killed} killed, named for up to {named_s:.1f} s after; calls that "
               f"died with their PoP: {cut(seen.history)}")  # fmt: skip
    return seen.outcome(f"PoP killed under load{_by(kind)}", f">= {scale.least:.1%} get a call; none is sent to it "
                        f"after {scale.bounds.died_s:g} s", saw, broken)  # fmt: skip


async def undisturbed(rig: Rig, scale: Scale, kind: str) -> Outcome:
    """Nothing fails: how long a set-up takes."""
    async with scenario(rig, scale) as seen:
        await seen.over(seen.everywhere(scale.set_ups, kind=kind))
        told, broken = seen.share()
    return seen.outcome(f"nothing, calls by {kind}", "all get a call", f"{told}, {set_up(seen.history)}", broken)


def latest(history: History, what: str) -> float:
    """The latest placement on a PoP to which this had happened, in seconds after it."""
    after = [0.0]
    for pop in history.pops:
        for span in spans(history, pop, what, "started", "resumed"):
            after += [
                placement.asked - span.began
                for _, placement in placements(history)
                if span.began <= placement.asked and placement.answered <= span.ended
                and any(candidate.pop == pop for candidate in placement.candidates)
            ]  # fmt: skip
    return max(after)


async def pop_paused(rig: Rig, scale: Scale) -> Outcome:
    """SIGSTOP: connections are taken by the kernel, and nobody answers. Then it goes on where it was."""
    async with scenario(rig, scale) as seen:
        region = rig.regions[0]
        live, at = await seen.witnesses(region, 3)
        pop = at[0]
        lasts = 4 + scale.paused_s
        loads = seen.everywhere(round(lasts * scale.per_second))
        await asyncio.sleep(1)
        rig.pause(pop)
        await asyncio.sleep(scale.paused_s)
        rig.resume(pop)
        resumed = time.monotonic()
        alive_s = await seen.back(pop)
        await seen.healed(resumed)
        later = seen.place(region, 3)
        await seen.over(loads)
        await seen.over([later])
        await seen.hung_up([live])
        told, broken = seen.share()
        saw = (f"{told}; named for up to {latest(seen.history, 'paused'):.1f} s; known again {alive_s:.1f} s after; "
               f"live calls cut: {cut(seen.history)}")  # fmt: skip
        since = _last(seen.history, "resumed")
        if alive_s > scale.healed_s + scale.slack_s:
            broken.append(f"{pop} was known again only after {alive_s:.1f} s")
        if not any(call.pop == pop and call.began > since for call in seen.history.calls):
            broken.append(f"no call came to {pop} since")
    return seen.outcome(f"PoP paused for {scale.paused_s:g} s", f"as if dead after {scale.bounds.died_s:g} s, alive by "
                        "its next report; its live calls go on", saw, broken)  # fmt: skip


async def clocks_wrong(rig: Rig, scale: Scale) -> Outcome:
    """One PoP's clock is five minutes fast, another's five minutes slow."""
    async with scenario(rig, scale) as seen:
        fast, *_, slow = rig.pops
        for pop, by in ((fast, SKEW_S), (slow, -SKEW_S)):
            rig.kill(pop)
            rig.begin(pop, **{SKEW: str(by)})
        known_s = [await seen.back(pop) for pop in (fast, slow)]
        loads = seen.everywhere(round(10 * scale.per_second))
        await seen.over(loads)
        told, broken = seen.share()
        there = sum(call.pop in (fast, slow) for call in seen.history.calls)
        if not all(any(call.pop == pop for call in seen.history.calls) for pop in (fast, slow)):
            broken.append("no call at a PoP whose clock is wrong")
        for pop in (fast, slow):  # Set right again: the fast one's new run is dated before its last one.
            rig.kill(pop)
            rig.begin(pop)
        set_back_s = await seen.back(fast)
        await seen.back(slow)
        again = seen.everywhere(round(5 * scale.per_second))
        await seen.over(again)
        await seen.healed(time.monotonic())
        saw = (f"{told}, {there} of them there; known {sum(known_s):.1f} s after they began to start; one whose clock "
               f"was set back, {set_back_s:.1f} s")  # fmt: skip
    return seen.outcome("two PoPs' clocks 5 minutes off", "their tokens are good and their leases hold", saw, broken)


async def directory_killed(rig: Rig, scale: Scale, kind: str = "websocket") -> Outcome:
    """Its callers ask another one. It comes back and knows nothing at first."""
    scale = _least(scale, kind)
    async with scenario(rig, scale) as seen:
        region = rig.regions[0]
        live, _ = await seen.witnesses(region, 3, kind=kind)
        loads = seen.everywhere(round((scale.dead_s + 6) * scale.per_second), kind=kind)
        await asyncio.sleep(1)
        rig.kill(f"dir-{region}")
        await asyncio.sleep(scale.dead_s)
        rig.begin(f"dir-{region}")
        await _serves(rig, f"dir-{region}", scale)
        await seen.healed(time.monotonic())
        await seen.over(loads)
        await seen.hung_up([live])
        told, broken = seen.share()
    elsewhere = sum(len(call.placements) > 1 for call in seen.history.calls)
    if not elsewhere and not scale.slack_s:  # On a slow machine callers may come only after it is back.
        broken.append("nobody had to ask another directory")
    saw = f"{told}, {elsewhere} by another directory, {set_up(seen.history)}; live calls cut: {cut(seen.history)}"
    return seen.outcome(f"directory killed{_by(kind)}", "its callers get calls by another one; live calls go on; "
                        f"views are right {scale.healed_s:g} s after it is back", saw, broken)  # fmt: skip


async def nats_killed(rig: Rig, scale: Scale) -> Outcome:
    """One of the servers: who was connected to it finds another."""
    async with scenario(rig, scale) as seen:
        region = rig.regions[0]
        live, _ = await seen.witnesses(region, 3)
        loads = seen.everywhere(round((scale.dead_s + 6) * scale.per_second))
        await asyncio.sleep(1)
        rig.kill(f"nats-{region}")
        missed = await _missing(rig, scale.dead_s)
        rig.begin(f"nats-{region}")
        await _serves(rig, f"nats-{region}", scale)
        await seen.healed(time.monotonic())
        await seen.over(loads)
        await seen.hung_up([live])
        told, broken = seen.share()
    return seen.outcome("one of three NATS servers killed", "calls are placed; live calls go on; views are right "
                        f"{scale.healed_s:g} s after it is back", f"{told}; PoPs missing in some view for "
                        f"{missed:.1f} s; live calls cut: {cut(seen.history)}", broken)  # fmt: skip


async def bus_killed(rig: Rig, scale: Scale) -> Outcome:
    """All NATS servers: nobody hears anybody."""
    async with scenario(rig, scale) as seen:
        live, _ = await seen.witnesses(rig.regions[0], 3)
        loads = seen.everywhere(round((scale.dead_s + 6) * scale.per_second))
        await asyncio.sleep(1)
        for name in rig.nats:
            rig.kill(name)
        await asyncio.sleep(scale.dead_s)
        for name in rig.nats:
            rig.begin(name)
        for name in rig.nats:
            await _serves(rig, name, scale)
        back = time.monotonic()
        right_s = max(await asyncio.gather(*map(seen.back, rig.pops)))
        await seen.healed(back)
        await seen.over(loads)
        await seen.hung_up([live])
        told, broken = seen.share()
    return seen.outcome("all three NATS servers killed", "calls are placed by what was known last; live calls go on; "
                        "views are right again", f"{told}; live calls cut: {cut(seen.history)}; views were right "
                        f"{right_s:.1f} s after the servers were back", broken)  # fmt: skip


async def region_cut_off(rig: Rig, scale: Scale) -> Outcome:
    """Its callers, its directory and its PoPs hear each other, and nobody else."""
    async with scenario(rig, scale) as seen:
        region = rig.regions[0]
        live = [(await seen.witnesses(where, 2))[0] for where in rig.regions]
        loads = seen.everywhere(round((scale.cut_s + 6) * scale.per_second))
        await asyncio.sleep(2)
        rig.cut(region)
        await asyncio.sleep(scale.cut_s)
        outside = {
            name: view for name, view in (await rig.views()).of.items() if rig.directories[name].region != region
        }
        noticed = sum(view.get(pop) != "takes" for view in outside.values() for pop in _of(rig, region))
        rig.heal(region)
        await seen.healed(time.monotonic())
        await seen.over(loads)
        await seen.hung_up(live)
        told, broken = seen.share()
        inside = [call for call in seen.history.calls if call.region == region]
        crossing = sum(call.end == "lost" and call.region != seen.history.pops[call.pop].region
                       for call in seen.history.calls if call.began)  # fmt: skip
        if noticed < len(outside) * len(_of(rig, region)) and scale.cut_s > scale.bounds.cut_s:
            broken.append("directories outside still took some of its PoPs for reachable")
        saw = (f"{told}, {sum(call.began > 0 for call in inside)} of {len(inside)} within it; unknown outside at the "
               f"end: {noticed} of {len(outside) * len(_of(rig, region))}; live calls cut: "
               f"{cut(seen.history) - crossing} on one side of it, {crossing} across it")  # fmt: skip
    return seen.outcome(f"region cut off for {scale.cut_s:g} s", "both sides place calls among themselves; live calls "
                        f"go on; views are right {scale.healed_s:g} s after healing", saw, broken)  # fmt: skip


async def drained(rig: Rig, scale: Scale) -> Outcome:
    """By the operator's order and by SIGTERM, under load."""
    async with scenario(rig, scale) as seen:
        live = [await seen.witnesses(region, 4) for region in rig.regions[:2]]
        loads = seen.everywhere(round((scale.dead_s + 4) * scale.per_second))
        await asyncio.sleep(1)
        first, second = (at[0] for _, at in live)
        await rig.order_drain(first, next(iter(rig.directories)))
        rig.terminate(second)
        await asyncio.sleep(scale.dead_s)
        broken = [f"{pop} ended under its calls" for pop in (first, second) if not rig.processes[pop].runs]
        await seen.over(loads)
        await seen.hung_up([load for load, _ in live])
        told, few = seen.share()
        ended = [await _ended(rig, pop, scale) for pop in (first, second)]
        broken += few + [f"{pop} ended with status {status}" for pop, status in
                         zip((first, second), ended, strict=True) if status != 0]  # fmt: skip
        saw = (f"{told}; named for up to {latest(seen.history, 'drained'):.2f} s; live calls cut: {cut(seen.history)}; "
               f"status with which they ended once their last calls had: {ended}")  # fmt: skip
    return seen.outcome("PoPs drained under load", "no live call is cut; none is sent there "
                        f"{scale.bounds.drained_s:g} s later", saw, broken)  # fmt: skip


async def zone_dead(rig: Rig, scale: Scale) -> Outcome:
    """Calls that may not leave a zone of which every PoP is dead."""
    async with scenario(rig, scale) as seen:
        for pop in _of(rig, "eu"):
            rig.kill(pop)
        bound = [seen.place(region, 10, per_second=2.0, key=CLINIC, zone="eu") for region in rig.regions]
        free = seen.everywhere(round(5 * scale.per_second))
        await seen.over(bound)
        await seen.over(free)
        ended = [call.end for call in seen.history.calls if call.zone]
        others = [call for call in seen.history.calls if not call.zone]
        broken = [f"a call of the zone: {end}" for end in ended if end != REFUSED]
        if not any(call.began for call in others):
            broken.append("no other call was placed")
        saw = (f"{ended.count(REFUSED)} of {len(ended)} refused with Retry-After; of others "
               f"{sum(call.began > 0 for call in others)} of {len(others)} got a call")  # fmt: skip
    return seen.outcome("EU-only calls with every EU PoP dead", "all refused with 503, none placed elsewhere", saw,
                        broken)  # fmt: skip


# --- what they have in common


def _by(kind: str) -> str:
    return "" if kind == "websocket" else f", calls by {kind}"


def _least(scale: Scale, kind: str) -> Scale:
    """Telephones are owed a smaller share: their side asks but once."""
    return scale._replace(least=min(scale.least, LEAST.get(kind, 1.0)))


def set_up(history: History) -> str:
    """From the first question to the first event."""
    took = sorted(call.began - call.placements[0].asked for call in history.calls if call.began)
    if not took:
        return "none"
    half, most, nearly_all = (round(1000 * took[len(took) * percent // 100]) for percent in (50, 95, 99))
    return f"after {half} ms (median; 95 %: {most}, 99 %: {nearly_all} ms)"


def _of(rig: Rig, region: str) -> list[str]:
    """Its PoPs."""
    return [pop for pop, where in rig.plan.pops.items() if where == region]


def cut(history: History) -> int:
    """Calls that began and were ended by others than their callers."""
    return sum(call.began > 0 and call.end != HUNG_UP for call in history.calls)


def _last(history: History, what: str) -> float:
    return max(event.at for event in history.happened if event.what == what)


async def _serves(rig: Rig, name: str, scale: Scale) -> None:
    await until(lambda: rig.processes[name].serves, scale.up_s)


async def _ended(rig: Rig, pop: str, scale: Scale) -> int | None:
    """The status with which it ended; None: it goes on."""
    with suppress(TimeoutError):
        await until(lambda: not rig.processes[pop].runs, scale.up_s)
    return rig.processes[pop].status


async def _missing(rig: Rig, seconds: float) -> float:
    """So long within `seconds` some directory did not know some PoP."""
    loop = asyncio.get_running_loop()
    ends, missed, before = loop.time() + seconds, 0.0, loop.time()
    while (now := loop.time()) < ends:
        views = (await rig.views()).of.values()
        if any(view.get(pop) != "takes" for view in views for pop in rig.pops):
            missed += now - before
        before = now
        await asyncio.sleep(0.2)
    return missed
