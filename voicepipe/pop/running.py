"""A PoP's life: load the engines, warm them up, serve, keep records, drain."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from voicepipe.base import memory, open_files
from voicepipe.base.takeover import TakeoverParts
from voicepipe.base.tasks import supervised
from voicepipe.config import Config
from voicepipe.config.agent_store import AgentStore, hooks_of
from voicepipe.config.pop_config import with_slots
from voicepipe.config.reloader import Reloader
from voicepipe.directory.bus import Bus
from voicepipe.directory.editions.edition_store import EditionStore
from voicepipe.directory.editions.pop_editions import PopEditions, begun, store_of
from voicepipe.engines.base import Engines
from voicepipe.engines.loader import loaded
from voicepipe.languages.loading import load_languages
from voicepipe.observe.traces import traced
from voicepipe.pop.membership import Membership
from voicepipe.pop.pop import Pop
from voicepipe.pop.predecessor import Predecessor
from voicepipe.pop.prepared_agents import beginning
from voicepipe.records.records import Records, kept
from voicepipe.rtp.clock import SWITCH_S
from voicepipe.tools.tool_runner import ToolRunner

logger = logging.getLogger(__name__)
Opened = Callable[[Config], AbstractAsyncContextManager[tuple[Config, AgentStore]]]
"""Opens a PoP's own configuration: the one to use, with its agents. Raises ConfigError."""


@asynccontextmanager
async def running(
    config: Config, agent_file: Path | None = None, reloader: Reloader[Config] | None = None,
    predecessor: Predecessor | None = None,
) -> AsyncIterator["Pop"]:  # fmt: skip
    """Yields a PoP that answers at `config.http`; drained when the context ends. `agent_file`: the one that is wanted,
    as in `AgentStore`. `reloader` reads its files again. `predecessor`: the process whose sockets it takes over. Raises
    ConfigError, EngineError."""
    async with AsyncExitStack() as stack:
        bus: Bus | None = None
        if config.bus.servers:
            from voicepipe.directory.nats_bus import NatsBus  # Its library takes 0.1 s to import.

            bus = await stack.enter_async_context(NatsBus.connected(config.bus, config.tls.ca))
        yield await stack.enter_async_context(
            member(config, bus, agent_file=agent_file, reloader=reloader, predecessor=predecessor)
        )


@asynccontextmanager
async def member(
    config: Config, bus: Bus | None, shared: Engines | None = None, listener: socket.socket | None = None,
    agent_file: Path | None = None, reloader: Reloader[Config] | None = None, predecessor: Predecessor | None = None,
) -> AsyncIterator["Pop"]:  # fmt: skip
    """As `running`, as a member of the fleet on `bus`; None: without a fleet. `shared`: engines of `engines_for`, which
    several PoPs have. `listener`: its socket, from `server.bind`; None: it makes one itself."""
    from voicepipe.pop.pop_http import serve

    open_files.raise_limit()
    sys.setswitchinterval(SWITCH_S)
    if predecessor:
        predecessor.open()
    own, store = with_slots(config), store_of(config)
    its = await asyncio.to_thread(begun, own, store, agent_file)
    config, agents, parts = its.config, its.agents, TakeoverParts()
    lock = predecessor.inherited.lock if predecessor else None
    await asyncio.to_thread(load_languages, agents)  # The first call need not wait for it.
    async with (
        kept(config, partial(hooks_of, config, agents), parts, lock) as records,
        traced(config) as traces,
        warmed(shared, agents) if shared else engines_for(config, agents) as engines,
        ToolRunner(ca=config.tls.ca) as tools,
    ):
        pop = Pop(config, agents, engines, tools, records, traces, parts, predecessor)
        await asyncio.to_thread(pop.log_what_is_missing)
        editions: PopEditions | None = None
        if bus:
            pop.membership = Membership(bus, config, pop.condition)
            pop.rereads.join(pop.membership.reread)
            if store:
                editions = PopEditions(bus, own, store, its, pop.use, pop.membership.reporter.report_now)
                pop.edition = editions.state
        async with asyncio.TaskGroup() as group:
            beside = _beside(pop)
            if editions:
                beside["taking over editions"] = editions.listen
            if predecessor:
                beside["taking over"] = partial(_take_over, predecessor, pop, reloader)
            if reloader:
                opened = editions.rebased if editions else partial(_opened, store, agent_file, agents)
                beside["reading the files again"] = partial(_reload, pop, reloader, own, opened)
            serves = group.create_task(serve(pop, listener))
            jobs = [group.create_task(supervised(what, job)) for what, job in beside.items()]
            await pop.serving.wait()
            try:
                yield pop
            finally:
                try:
                    await pop.drain()
                finally:
                    if predecessor and not serves.done():  # A failure of this process ends no call of the other.
                        predecessor.end_calls()
                serves.cancel()
                if records:  # Calls that did not end by themselves have ended now.
                    await asyncio.wait({serves})
                    await records.deliveries.last()
                for job in jobs:
                    job.cancel()


def _beside(pop: Pop) -> dict[str, Callable[[], Awaitable[None]]]:
    """What the PoP does beside its calls, by names for the log."""
    beside: dict[str, Callable[[], Awaitable[None]]] = {
        "measuring the process": pop.watch.run,
        "giving back memory": memory.trimmed,
        "watching the engines": pop.watch_engines,
        "rereading agents": pop.prepared.reread,
        "rehearsing": pop.tts_cache.run,
        "timing the recogniser": pop.time_recogniser,
    }
    if pop.records:
        beside["forgetting old records"] = pop.records.tidy
        beside["emptying the log of records"] = pop.records.empty_log
        beside["telling of calls that ended"] = partial(_deliver, pop, pop.records)
    if pop.membership:
        beside["reporting to directories"] = pop.membership.reporter.run
        beside["hearing directories"] = pop.membership.listen
        beside["telling round trips"] = pop.membership.round_trips.run
    return beside


async def _deliver(pop: Pop, records: Records) -> None:
    """Deliver what is due, once this process takes the calls: until then the one before it does."""
    await pop.serving.wait()
    await records.deliveries.run()


async def _take_over(predecessor: Predecessor, pop: Pop, reloader: Reloader[Config] | None) -> None:
    """Tell the process before that this one takes the calls; once it has ended, nothing is asked of it any more."""
    await pop.serving.wait()
    predecessor.serving()
    if reloader:
        reloader.ask()  # The files may have changed while the engines loaded, and only the process before was told.
    ends = {asyncio.create_task(event.wait()) for event in (predecessor.gone, predecessor.withdrawn)}
    try:
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for end in ends:
            end.cancel()
    if predecessor.withdrawn.is_set():
        logger.error("this process has taken too long to take over: the one before it goes on, and this one ends")
        pop.end_calls()
        signal.raise_signal(signal.SIGTERM)
        return
    if pop.records:
        pop.records.cut_elsewhere()
    pop.takeover_parts.empty()


async def _reload(pop: Pop, reloader: Reloader[Config], own: Config, opened: Opened) -> None:
    """Read the files again whenever that is asked for, until cancelled. `own`: the PoP's own configuration."""

    async def take(fresh: Config) -> None:
        async with opened(fresh) as (config, agents):
            use = await asyncio.to_thread(pop.rereads.read, config)
            await pop.use(config, agents)
            use()

    await pop.serving.wait()  # Now every part has joined `rereads`.
    await reloader.run(own, pop.rereads, take)


@asynccontextmanager
async def _opened(
    store: EditionStore | None, agent_file: Path | None, agents: AgentStore, own: Config
) -> AsyncIterator[tuple[Config, AgentStore]]:
    its = await asyncio.to_thread(begun, own, store, agent_file, agents)
    yield its.config, its.agents


@asynccontextmanager
async def engines_for(config: Config, agents: AgentStore) -> AsyncIterator[Engines]:
    """The configured engines, prepared for these agents. Raises EngineError."""
    async with loaded(config, [beginning(agent) for agent in agents]) as engines:
        memory.give_back()  # Only now: how the memory of models is laid out is left to glibc.
        yield engines


@asynccontextmanager
async def warmed(shared: Engines, agents: AgentStore) -> AsyncIterator[Engines]:
    """Engines that are loaded, prepared for these agents, too: each PoP has read its own. Raises EngineError."""
    for agent in agents:
        await shared.llm.warm(beginning(agent))
    yield shared
