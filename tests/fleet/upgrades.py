"""What operators do to a fleet whose callers go on calling: each host gets a new version; keys and passwords are
replaced. No caller notices: each asks a directory and gets a call, which ends when they hang up."""

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import httpx

from tests.fleet import manifests
from tests.fleet.faults import cut, set_up
from tests.fleet.history import REFUSED
from tests.fleet.orders import Load
from tests.fleet.polling import until
from tests.fleet.rig import Rig, write_key
from tests.fleet.scale import Outcome, Scale, Watching, scenario

WAVE_S = 3.0
"""Callers are told to come for so long, again and again."""
TIMES = 3.0
"""The longest of their calls lasts for so many times as long as in other scenarios: it goes on when its PoP is to
end."""
PROGRAMS = ("websocket", "relayed")
KINDS = (*PROGRAMS, "sip")
"""By which callers come: those who ask and then call a PoP, whose calls a directory relays, and telephones."""
OLD, NEW = "1", "2"
"""Versions."""
SECOND = "second"
"""Name of the directories' next key, and end of the next users' names."""


async def upgraded(rig: Rig, scale: Scale) -> Outcome:
    """PoPs one after the other, then directories, then NATS servers; and one PoP goes back to the old version."""
    async with scenario(rig, scale) as seen:
        first, *_ = rig.pops
        before = await _versions(rig)
        async with calling(seen, *KINDS):
            for pop in rig.pops:
                await _replaced(seen, pop, NEW)
            after = await _versions(rig)
            for directory in rig.directories:
                await _restarted(seen, directory)
            for server in rig.nats:
                await _restarted(seen, server)
            await _replaced(seen, first, OLD)
        back = (await _versions(rig))[first]
        told, broken = unnoticed(seen)
        for pop in rig.pops:  # As it was.
            rig.configure(pop, version=OLD)
        broken += [f"{pop} is of version {its}" for pop, its in after.items() if its != NEW]
        saw = (f"{told}; versions {_each(before)} before, {_each(after)} after; {first} again of version {back}; then "
               f"directories and NATS servers, {len(rig.directories)} and {len(rig.nats)}")  # fmt: skip
    return seen.outcome("every host upgraded, one after the other", "no call cut, no set-up refused", saw, broken)


async def keys_replaced(rig: Rig, scale: Scale) -> Outcome:
    """The directories' key, a tenant's, passwords of the bus: each time both are good for a while."""
    async with scenario(rig, scale) as seen:
        write_key(rig.folder, SECOND)
        first, *_ = rig.directories
        shown = await rig.browser_key(first)
        both = (manifests.DIRECTORY, SECOND)
        async with calling(seen, *PROGRAMS):
            await _reloaded(seen, rig.pops, keys=both)
            await _reloaded(seen, rig.directories, keys=both, acme=("ACME_KEY", "ACME_NEXT_KEY"))
            broken = [f"{name} refused the tenant's {which} key while both are good"
                      for name in rig.directories for which, key in KEYS.items()
                      if await _status(rig, name, key) != 200]  # fmt: skip
            for directory in rig.directories:
                rig.configure(directory, key=SECOND)
                await _restarted(seen, directory)
                if await _status(rig, directory, shown) != 200:
                    broken.append(f"{directory} refused an ek_ key of the old key while both are good")
        async with calling(seen, *PROGRAMS, key=manifests.ACME_NEXT):
            await _reloaded(seen, rig.pops, keys=(SECOND,))
            await _reloaded(seen, rig.directories, keys=(), acme=("ACME_NEXT_KEY",))
            broken += [f"{name} still takes the {what}" for name in rig.directories
                       for what, key in (("tenant's old key", manifests.ACME), ("ek_ key of the old key", shown))
                       if await _status(rig, name, key) != 401]  # fmt: skip
            broken += await _passwords_replaced(seen)
        told, few = unnoticed(seen)
        await _as_it_was(seen)
        saw = f"{told}; {len(rig.directories)} directories restarted, {len(rig.pops)} PoPs reloaded twice"
    return seen.outcome("keys and passwords replaced", "no call cut, no set-up refused; what was replaced opens "
                        "nothing", saw, broken + few)  # fmt: skip


KEYS = {"old": manifests.ACME, "new": manifests.ACME_NEXT}


def unnoticed(seen: Watching) -> tuple[str, list[str]]:
    """What callers saw, and what they should not have seen. The checker names calls that were cut."""
    calls = seen.history.calls
    refused = [call for call in calls if call.end == REFUSED]
    elsewhere = sum(len(call.placements) > 1 for call in calls)
    told, broken = seen.share()
    told += f", {set_up(seen.history)}; refused: {len(refused)}; calls cut: {cut(seen.history)}"
    if elsewhere:
        told += f"; {elsewhere} asked twice"
    answers = [[(one.directory, one.status, one.code) for one in call.placements] for call in refused]
    return told, broken + [f"refused after {each}" for each in answers]


@asynccontextmanager
async def calling(seen: Watching, *kinds: str, **changes: str) -> AsyncIterator[None]:
    """Callers of these kinds come everywhere meanwhile. All their calls are over afterwards."""
    over = asyncio.Event()
    coming = asyncio.create_task(_come(seen, over, kinds, changes))
    try:
        yield
    finally:
        over.set()
        waves = await coming
    for wave in waves:
        await seen.over(wave)


async def _come(seen: Watching, over: asyncio.Event, kinds: Sequence[str], changes: dict[str, str]) -> list[list[Load]]:
    waves: list[list[Load]] = []
    shortest, longest = seen.scale.hold_s
    each, part = round(WAVE_S * seen.scale.per_second / len(kinds)), 1 / len(kinds)
    while not over.is_set():
        for kind in kinds:
            hold_s = [shortest, TIMES * longest]
            waves.append(seen.everywhere(each, part, hold_s=hold_s, seed=len(waves), kind=kind, **changes))
        await asyncio.sleep(WAVE_S)
    return waves


async def _replaced(seen: Watching, pop: str, version: str) -> None:
    """The PoP ends with its last call, by the operator's command, and another version is started in its place."""
    await seen.rig.drain(pop, next(iter(seen.rig.directories)))
    await until(lambda: not seen.rig.processes[pop].runs, seen.scale.up_s)
    assert seen.rig.processes[pop].status == 0, f"{pop} ended with status {seen.rig.processes[pop].status}"
    seen.rig.configure(pop, version=version)
    seen.rig.begin(pop)
    await seen.back(pop)


async def _restarted(seen: Watching, name: str) -> None:
    """A directory or a NATS server; all PoPs are known again, everywhere."""
    await seen.rig.stopped(name, seen.scale.up_s)
    seen.rig.begin(name)
    await until(lambda: seen.rig.processes[name].serves, seen.scale.up_s)
    for pop in seen.rig.pops:
        await seen.back(pop)


async def _reloaded(seen: Watching, names: Iterable[str], **changes: tuple[str, ...]) -> None:
    for name in names:
        seen.rig.configure(name, **changes)
        await seen.rig.reload(name, seen.scale.up_s)


async def _passwords_replaced(seen: Watching) -> list[str]:
    """A PoP and all directories get users of the bus in place of theirs: first both are let in. Returns what is
    wrong."""
    rig = seen.rig
    pop, *_ = rig.pops
    rig.users |= {f"{name}-{SECOND}": name for name in (pop, manifests.DIRECTORY)}
    await _servers_reloaded(seen)
    rig.configure(pop, user=f"{pop}-{SECOND}")
    await _replaced(seen, pop, OLD)
    for directory in rig.directories:
        rig.configure(directory, user=f"{manifests.DIRECTORY}-{SECOND}")
        await _restarted(seen, directory)
    for name in (pop, manifests.DIRECTORY):
        del rig.users[name]
    await _servers_reloaded(seen)
    unknown = [name for name in rig.pops if not await _is_known(seen, name)]
    return [f"{name} is not known once old passwords are gone" for name in unknown]


async def _servers_reloaded(seen: Watching) -> None:
    for server in seen.rig.nats:
        await seen.rig.reload(server, seen.scale.up_s)


async def _is_known(seen: Watching, pop: str) -> bool:
    try:
        await seen.back(pop)
    except TimeoutError:
        return False
    return True


async def _as_it_was(seen: Watching) -> None:
    """For the scenario that comes next."""
    rig = seen.rig
    pop, *_ = rig.pops
    rig.users = {manifests.DIRECTORY: manifests.DIRECTORY} | {name: name for name in rig.pops}
    await _servers_reloaded(seen)
    for name in rig.pops:
        rig.configure(name, keys=(manifests.DIRECTORY,), user="")
    for name in rig.directories:
        rig.configure(name, **manifests.DirectorySettings()._asdict())
    for name in (*rig.directories, *rig.pops):
        rig.kill(name)


async def _status(rig: Rig, directory: str, key: str) -> int:
    """With which a directory answers a caller who shows this key."""
    async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
        headers = {"Authorization": f"Bearer {key}"}
        return (await client.post(f"{rig.url(directory)}/v1/calls", json={}, headers=headers)).status_code


async def _versions(rig: Rig) -> dict[str, str]:
    """Of each PoP, as the first directory knows it."""
    return {row["pop"]: row["version"] for row in await rig.rows(next(iter(rig.directories)))}


def _each(versions: dict[str, str]) -> str:
    return ", ".join(f"{list(versions.values()).count(one)} of {one!r}" for one in sorted(set(versions.values())))
