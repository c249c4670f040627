"""A PoP takes over what is pushed: it checks each edition as at a start, and keeps the last valid one.

Calls go on with the agent that they began with, as when an agent's file is edited.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, check_together, credentials, load_rules
from voicepipe.config.agent_problems import functions_named
from voicepipe.config.agent_store import AgentStore, open_agents, read_agent
from voicepipe.config.file_kind import RULES
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus, BusMessage, decoding
from voicepipe.directory.editions import messages
from voicepipe.directory.editions.edition import AGENTS, NONE, Edition, EditionId, laid_out, paths_in_edition, unpacked
from voicepipe.directory.editions.edition_store import EditionStore
from voicepipe.directory.editions.messages import EditionAnnouncement, EditionWanted, Proposal, ProposalVerdict
from voicepipe.directory.report import EditionState
from voicepipe.ingress.loopback_only import check_exposure
from voicepipe.records import signing

logger = logging.getLogger(__name__)

REPORTED_LENGTH = 300
"""Characters of a problem that reports contain."""
EXAMPLES = "voicepipe.tools.restaurant"
"""The agents that are shipped."""
AGAIN_S = 30.0
"""Seconds after which an edition that could not be taken over is tried again: a disk may have room again."""


class PopBeginning(NamedTuple):
    """The edition with which a PoP begins."""

    config: Config
    agents: AgentStore
    edition: Edition | None = None
    """None: the PoP's own files."""
    problem: str = ""
    """Why it is not the edition that it should be."""


def store_of(config: Config) -> EditionStore | None:
    """None: this PoP keeps to its own files."""
    folder = config.fleet.editions
    return EditionStore(Path(folder), config.pop.id, "fleet.editions") if folder else None


def begun(
    own: Config, store: EditionStore | None, wanted: Path | None = None, known: AgentStore | None = None
) -> PopBeginning:
    """The edition that the PoP stays at or used last; if that is no longer valid, the newest that is; its own files, if
    it has never taken one over (`wanted`, `known`: as in `AgentStore`). Raises ConfigError: none of them is valid."""
    pinned = own.fleet.edition
    found = store.begin(lambda edition, folder: opened(own, folder), pinned) if store else None
    (config, agents), edition, problem = found or ((own, open_agents(own, wanted, known)), None, "")
    if pinned and not problem and not (edition and edition.number == pinned):
        problem = f"It is to stay at edition {pinned}, which it has not got yet."
    return PopBeginning(config, agents, edition, problem)


def opened(own: Config, folder: Path, known: AgentStore | None = None) -> tuple[Config, AgentStore]:
    """A PoP's own configuration with the agents, routes and tenants of an edition that lies in `folder`; and the
    agents (`known`: as in `AgentStore`). Raises ConfigError, with the paths of the edition: the PoP would not start
    with it."""
    with paths_in_edition(folder):
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
        agents = open_agents(config, known=known)
        for agent in agents:
            if Path(agent.hooks.secret_file).is_relative_to((folder / AGENTS).resolve()):
                raise ConfigError(
                    f"Agent {agent.name}: hooks.secret_file: no secret is pushed along; give an absolute path that "
                    "each PoP has, or one that begins with $CREDENTIALS_DIRECTORY/"
                )
        return config, agents


def _check_functions(folder: Path, modules: Collection[str]) -> None:
    """Raises ConfigError: an agent names a function of a module that neither the PoP's own file lists nor the example
    agent uses. Anybody who can push could otherwise run any code here."""
    problems, allowed = [], (*modules, EXAMPLES)
    for file in sorted(folder.glob("*.toml")):
        for key, function in functions_named(read_agent(file)):
            module = function.rpartition(":")[0]
            if module and not any(module == known or module.startswith(f"{known}.") for known in allowed):
                problems.append(
                    f"{file}: {key}: a pushed agent may not name {function}; list its module in fleet.functions at "
                    "each PoP, where it is to be installed, or use a webhook"
                )
    if problems:
        raise ConfigError("\n".join(problems))


def _short(problem: str) -> str:
    """The first lines of a problem, for reports."""
    first, *others = problem.splitlines() or [""]
    kept = [first]
    while others and len("\n".join((*kept, others[0]))) <= REPORTED_LENGTH:
        kept.append(others.pop(0))
    return "\n".join(kept) + (f" (and {len(others)} more)" if others else "")


class PopEditions:
    """The editions of a PoP: it checks each new one as at a start, and keeps the last valid one. `own` is its own
    configuration, without any edition; `begun` the one with which it began; `take` makes the PoP use another one, with
    its agents; `report_now` reports to directories at once; `clock` gives monotonic seconds."""

    def __init__(
        self,
        bus: Bus,
        own: Config,
        store: EditionStore,
        begun: PopBeginning,
        take: Callable[[Config, AgentStore], Awaitable[None]],
        report_now: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._bus = bus
        self._own = own
        self._pop = own.pop.id
        self._pinned = own.fleet.edition
        self._store = store
        self._agents = begun.agents
        """Those that the PoP uses: the store becomes others."""
        self._current = begun.edition.head if begun.edition else NONE
        self._take = take
        self._report_now = report_now
        self._clock = clock
        self._changing = asyncio.Lock()
        """Held while it changes what the PoP uses."""
        self._failed, self._again_at = NONE, 0.0
        """The last edition that it could not take over, and when it is tried again."""
        self._problem = _short(begun.problem)

    def state(self) -> EditionState:
        """The state for reports."""
        return EditionState(self._current.number, self._current.digest, self._problem, bool(self._pinned))

    @asynccontextmanager
    async def rebased(self, own: Config) -> AsyncIterator[tuple[Config, AgentStore]]:
        """Yields the edition in use, opened with another configuration of the PoP's own, which is `own` from the end of
        the context on; no edition is taken over meanwhile. Raises ConfigError: the PoP would not start with them."""
        async with self._changing:
            yield await asyncio.to_thread(self._opened, own)
            self._own = own

    def _opened(self, own: Config) -> tuple[Config, AgentStore]:
        edition = self._store.find(self._current.number) if self._current != NONE else None
        if edition:
            return opened(own, self._store.keep(edition), self._agents)
        return own, open_agents(own, known=self._agents)

    async def listen(self) -> None:
        """Take over what is published, until cancelled."""
        hearing = self._bus.listen(messages.HEADS, messages.EDITIONS, messages.PROPOSALS)
        async with hearing as heard:
            async for message in heard:
                with decoding(message):
                    await self._receive(message)

    async def _receive(self, message: BusMessage) -> None:
        if message.subject == messages.HEADS:
            head = msgspec.json.decode(message.data, type=EditionAnnouncement).head
            if self._wants(head):
                wanted = msgspec.json.encode(EditionWanted(self._pinned or head.number))
                await self._bus.publish(subjects.of_pop(messages.POPS_WANT, self._pop), wanted)
        elif message.subject == messages.EDITIONS:
            edition = await asyncio.to_thread(unpacked, message.data)
            is_meant = edition.number == self._pinned or not self._pinned
            if is_meant and self._wants(edition.head):
                await self._take_over(edition)
        elif not self._pinned:
            proposal = msgspec.msgpack.decode(message.data, type=Proposal)
            problem = await asyncio.to_thread(self._problem_of, proposal.edition)
            said = msgspec.json.encode(ProposalVerdict(proposal.id, problem[: messages.PROBLEM_LENGTH]))
            await self._bus.publish(subjects.of_pop(messages.POPS_SAY, self._pop), said)

    def _wants(self, head: EditionId) -> bool:
        """Whether to take an edition over: it is newer than ours, and did not fail a moment ago; where the PoP stays at
        one, only that one."""
        if self._pinned:
            failed = self._failed.number == self._pinned and self._clock() < self._again_at
            return self._current.number != self._pinned and not failed
        return head > self._current and not (head == self._failed and self._clock() < self._again_at)

    async def _take_over(self, edition: Edition) -> None:
        """Use the edition, or stay at the present one and report the problem."""
        try:
            async with self._changing:
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
        self._report_now()

    def _kept(self, edition: Edition) -> tuple[Config, AgentStore]:
        """The edition is valid, and on the disk as the one in use. Raises ConfigError."""
        if problem := self._problem_of(edition):  # Before anything is written.
            raise ConfigError(problem)
        config, agents = opened(self._own, self._store.keep(edition))
        self._store.use(edition)
        return config, agents

    def _problem_of(self, said: bytes | Edition) -> str:
        try:
            edition = unpacked(said) if isinstance(said, bytes) else said
            with laid_out(edition.files) as folder:
                opened(self._own, folder)
        except (ConfigError, ValueError) as error:
            return str(error)
        return ""
