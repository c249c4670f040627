"""A PoP takes over what is pushed: it checks each edition as if it began with it, and keeps the last good one.

Calls go on with the agent that they began with, as when an agent's file is edited.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, check_together, credentials, load_rules
from voicepipe.config.agent_store import AgentStore, open_agents, read_agent
from voicepipe.config.file_kind import RULES
from voicepipe.directory.bus import Bus, BusMessage, reading
from voicepipe.directory.editions import messages
from voicepipe.directory.editions.edition import AGENTS, NONE, Edition, Head, laid_out, told_by_path, unpacked
from voicepipe.directory.editions.edition_store import EditionStore
from voicepipe.directory.editions.messages import EditionWanted, Newest, Proposal, ProposalVerdict
from voicepipe.directory.report import EditionState
from voicepipe.ingress.loopback_only import check_exposure
from voicepipe.records import signing

logger = logging.getLogger(__name__)

TOLD = 300
"""Characters of a problem that reports tell of."""
EXAMPLES = "voicepipe.tools.restaurant"
"""Of the agents that are shipped."""
AGAIN_S = 30.0
"""An edition that could not be taken over is tried again after so long: a disk may have room again."""


class PopBeginning(NamedTuple):
    """What a PoP begins with."""

    config: Config
    agents: AgentStore
    edition: Edition | None = None
    """None: its own files."""
    problem: str = ""
    """Why it is not the one that it should be."""


def shelf_of(config: Config) -> EditionStore | None:
    """None: this PoP keeps to its own files."""
    folder = config.fleet.editions
    return EditionStore(Path(folder), config.pop.id, "fleet.editions") if folder else None


def begun(own: Config, store: EditionStore | None, wanted: Path | None = None) -> PopBeginning:
    """The edition that it stays at or went by last; if that is not good any more, the newest that is; its own files, if
    it has never taken one over (`wanted`: as in `AgentStore`). Raises ConfigError: none of them is good."""
    pinned = own.fleet.edition
    found = store.begin(lambda edition, folder: opened(own, folder), pinned) if store else None
    (config, agents), edition, problem = found or ((own, open_agents(own, wanted)), None, "")
    if pinned and not problem and not (edition and edition.number == pinned):
        problem = f"It is to stay at edition {pinned}, which it has not got yet."
    return PopBeginning(config, agents, edition, problem)


def opened(own: Config, folder: Path) -> tuple[Config, AgentStore]:
    """A PoP's own configuration with the agents, routes and tenants of an edition that lies in `folder`; and the
    agents. Raises ConfigError, with the paths of the edition: the PoP would not begin with it."""
    with told_by_path(folder):
        config = replace(own, pop=replace(own.pop, agents=str(folder / AGENTS)))
        if (rules := folder / RULES).exists():
            config = load_rules(rules).at_pop(config)
            check_together(config)
            check_exposure(config)
            credentials.check(config)
            for index, tenant in enumerate(config.tenants):
                if lacks := signing.lacks(tenant.hooks):
                    raise ConfigError(f"tenants[{index}].{lacks}")
        _check_functions(folder / AGENTS, own.fleet.functions)  # Before any is loaded.
        return config, open_agents(config)


def _check_functions(folder: Path, modules: Collection[str]) -> None:
    """Raises ConfigError: an agent names a function of a module that the PoP's own file does not list, nor is it the
    example agent's. Whoever may push would otherwise run any code here."""
    problems, allowed = [], (*modules, EXAMPLES)
    for file in sorted(folder.glob("*.toml")):
        for index, tool in enumerate(read_agent(file).tools):
            module = tool.function.rpartition(":")[0]
            if module and not any(module == known or module.startswith(f"{known}.") for known in allowed):
                problems.append(
                    f"{file}: tools[{index}].function: a pushed agent may not name {tool.function}; list its module in "
                    "fleet.functions at each PoP, where it is to be installed, or use a webhook"
                )
    if problems:
        raise ConfigError("\n".join(problems))


def _short(problem: str) -> str:
    """Its first lines, for reports."""
    first, *others = problem.splitlines() or [""]
    told = [first]
    while others and len("\n".join((*told, others[0]))) <= TOLD:
        told.append(others.pop(0))
    return "\n".join(told) + (f" (and {len(others)} more)" if others else "")


class PopEditions:
    """Of one PoP. `own` is its own configuration, without any edition; `begun` what it began with; `take` has the PoP
    go by another one, with its agents; `tell` reports to directories at once; `clock` gives monotonic seconds."""

    def __init__(
        self,
        bus: Bus,
        own: Config,
        store: EditionStore,
        begun: PopBeginning,
        take: Callable[[Config, AgentStore], Awaitable[None]],
        tell: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._own = own
        self._pop = own.pop.id
        self._pinned = own.fleet.edition
        self._store = store
        self._current = begun.edition.head if begun.edition else NONE
        self._take = take
        self._tell = tell
        self._clock = clock
        self._failed, self._again_at = NONE, 0.0
        """The last one that it could not take over, and when it is tried again."""
        self._problem = _short(begun.problem)

    def state(self) -> EditionState:
        """For reports."""
        return EditionState(self._current.number, self._current.digest, self._problem, bool(self._pinned))

    async def listen(self) -> None:
        """Take over what comes, until cancelled."""
        hearing = self._bus.listen(messages.HEADS, messages.EDITIONS, messages.PROPOSALS)
        async with hearing as heard:
            async for message in heard:
                with reading(message):
                    await self._hear(message)

    async def _hear(self, message: BusMessage) -> None:
        if message.subject == messages.HEADS:
            head = msgspec.json.decode(message.data, type=Newest).head
            if self._wants(head):
                wanted = msgspec.json.encode(EditionWanted(self._pinned or head.number))
                await self._bus.publish(messages.wanted_by(self._pop), wanted)
        elif message.subject == messages.EDITIONS:
            edition = await asyncio.to_thread(unpacked, message.data)
            is_meant = edition.number == self._pinned or not self._pinned
            if is_meant and self._wants(edition.head):
                await self._take_over(edition)
        elif not self._pinned:
            proposal = msgspec.msgpack.decode(message.data, type=Proposal)
            problem = await asyncio.to_thread(self._problem_of, proposal.edition)
            said = msgspec.json.encode(ProposalVerdict(proposal.id, problem[: messages.PROBLEM_LENGTH]))
            await self._bus.publish(messages.verdict_of(self._pop), said)

    def _wants(self, head: Head) -> bool:
        """One that is newer than ours, and did not fail a moment ago; where the PoP stays at one, that one."""
        if self._pinned:
            failed = self._failed.number == self._pinned and self._clock() < self._again_at
            return self._current.number != self._pinned and not failed
        return head > self._current and not (head == self._failed and self._clock() < self._again_at)

    async def _take_over(self, edition: Edition) -> None:
        """Go by it, or stay as we are and say why."""
        try:
            config, agents = await asyncio.to_thread(self._kept, edition)
            await self._take(config, agents)
        except ConfigError as error:
            self._failed, self._again_at = edition.head, self._clock() + AGAIN_S
            self._problem = _short(f"edition {edition.number}: {error}")
            logger.error("edition %d is not taken over: %s", edition.number, error)
        else:
            self._current, self._problem = edition.head, ""
            logger.info("edition %d (%s) is taken over: agents %s", edition.number, edition.digest,
                        ", ".join(agents.names()))  # fmt: skip
        self._tell()

    def _kept(self, edition: Edition) -> tuple[Config, AgentStore]:
        """It is good, and on the disk as the one that counts. Raises ConfigError."""
        if problem := self._problem_of(edition):  # Before anything is written.
            raise ConfigError(problem)
        config, agents = opened(self._own, self._store.keep(edition))
        self._store.go_by(edition)
        return config, agents

    def _problem_of(self, said: bytes | Edition) -> str:
        """What would keep this PoP from taking it over; empty: nothing."""
        try:
            edition = unpacked(said) if isinstance(said, bytes) else said
            with laid_out(edition.files) as folder:
                opened(self._own, folder)
        except (ConfigError, ValueError) as error:
            return str(error)
        return ""
