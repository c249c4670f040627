"""A PoP takes over what is pushed: it checks each edition as if it began with it, and keeps the last good one.

Calls go on with the agent that they began with, as when an agent's file is edited.
"""

import asyncio
import logging
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
from msgspec.structs import replace

from voicepipe.config import Config, check_together, credentials, fleet_rules
from voicepipe.config.agent_store import AgentStore, open_agents
from voicepipe.config.file_kind import RULES
from voicepipe.directory.bus import Bus, BusMessage
from voicepipe.directory.report import EditionState
from voicepipe.editions import messages
from voicepipe.editions.edition import AGENTS, Edition, Head, check, unpacked, write
from voicepipe.editions.messages import Proposal, Verdict, Wanted
from voicepipe.editions.shelf import Shelf
from voicepipe.errors import ConfigError
from voicepipe.ingress.local import check_exposure
from voicepipe.records import signing

logger = logging.getLogger(__name__)

TOLD = 300
"""Characters of a problem that reports tell of."""
NONE = Head(0, "")


def shelf_of(config: Config) -> Shelf | None:
    """None: this PoP keeps to its own files."""
    return Shelf(Path(config.fleet.editions), "fleet.editions") if config.fleet.editions else None


def with_files(config: Config, folder: Path) -> Config:
    """A PoP's own configuration, with the agents, routes and tenants of an edition that was written into `folder`.
    Raises ConfigError: the PoP would not begin with it."""
    config = replace(config, pop=replace(config.pop, agents=str(folder / AGENTS)))
    rules = folder / RULES
    if not rules.exists():
        return config
    config = fleet_rules.load(rules).at_pop(config)
    try:
        check_together(config)
        check_exposure(config)
        credentials.check(config)
        for index, tenant in enumerate(config.tenants):
            if lacks := signing.lacks(tenant.hooks):
                raise ConfigError(f"tenants[{index}].{lacks}")
    except ConfigError as error:
        raise ConfigError(f"{rules}: {error}") from None
    return config


def begun_with(config: Config, shelf: Shelf | None) -> tuple[Config, Edition | None]:
    """What a PoP begins with: the edition that it went by last, or its own files. Raises ConfigError."""
    edition = shelf.current() if shelf else None
    if shelf is None or edition is None:
        return config, None
    logger.info("agents, routes and tenants are those of edition %d (%s), whatever pop.agents has", edition.number,
                edition.digest)  # fmt: skip
    return with_files(config, shelf.keep(edition)), edition


class PopEditions:
    """Of one PoP. `own` is its own configuration, without any edition; `take` has the PoP go by another one, with its
    agents; `current` is the edition that it began with; `tell` reports to directories at once."""

    def __init__(
        self,
        bus: Bus,
        own: Config,
        shelf: Shelf,
        current: Edition | None,
        take: Callable[[Config, AgentStore], Awaitable[None]],
        tell: Callable[[], None],
    ) -> None:
        self._bus = bus
        self._own = own
        self._pop = own.pop.id
        self._pinned = own.fleet.edition
        self._shelf = shelf
        self._current = current.head if current else NONE
        self._take = take
        self._tell = tell
        self._refused = NONE
        """The last one that it could not take over."""
        self._problem = ""

    def state(self) -> EditionState:
        """For reports."""
        return EditionState(self._current.number, self._current.digest, self._problem, bool(self._pinned))

    async def listen(self) -> None:
        """Take over what comes, until cancelled."""
        hearing = self._bus.listen(messages.HEADS, messages.EDITIONS, messages.PROPOSALS)
        async with hearing as heard:
            async for message in heard:
                try:
                    await self._hear(message)
                except (msgspec.DecodeError, RecursionError, ValueError) as error:
                    logger.warning("%s: a message cannot be read, is it of another version? %s", message.subject, error)

    async def _hear(self, message: BusMessage) -> None:
        if message.subject == messages.HEADS:
            head = msgspec.json.decode(message.data, type=Head)
            if self._wants(head):
                wanted = msgspec.json.encode(Wanted(self._pinned or head.number))
                await self._bus.publish(messages.wanted_by(self._pop), wanted)
        elif message.subject == messages.EDITIONS:
            edition = unpacked(message.data)
            is_meant = edition.number == self._pinned or not self._pinned
            if is_meant and self._wants(edition.head):
                await self._take_over(edition)
        else:
            proposal = msgspec.json.decode(message.data, type=Proposal)
            problem = await asyncio.to_thread(self._problem_of, unpacked(proposal.edition))
            said = msgspec.json.encode(Verdict(proposal.id, problem))
            await self._bus.publish(messages.verdict_of(self._pop), said)

    def _wants(self, head: Head) -> bool:
        """One that is newer than ours, and was not found wanting; where the PoP stays at one, that one."""
        if self._pinned:
            return self._current.number != self._pinned != self._refused.number
        return head > self._current and head != self._refused

    async def _take_over(self, edition: Edition) -> None:
        """Go by it, or stay as we are and say why."""
        try:
            config, agents = await asyncio.to_thread(self._opened, edition)
            await asyncio.to_thread(self._shelf.go_by, edition)
            await self._take(config, agents)
        except ConfigError as error:
            self._refused, self._problem = edition.head, str(error)[:TOLD]
            logger.error("edition %d is not taken over: %s", edition.number, error)
        else:
            self._current, self._problem = edition.head, ""
            logger.info("edition %d (%s) is taken over: agents %s", edition.number, edition.digest,
                        ", ".join(agents.names()))  # fmt: skip
        self._tell()

    def _opened(self, edition: Edition) -> tuple[Config, AgentStore]:
        """Raises ConfigError, whose lines begin with the edition's files."""
        check(edition.files)
        return self._read(self._shelf.keep(edition))

    def _problem_of(self, edition: Edition) -> str:
        """What would keep this PoP from taking it over; empty: nothing."""
        try:
            check(edition.files)
            with tempfile.TemporaryDirectory(prefix="voicepipe-edition-") as folder:
                write(edition.files, Path(folder))
                self._read(Path(folder))
        except ConfigError as error:
            return str(error)
        except OSError as error:
            return f"This host cannot write it down to look at it: {error}"
        return ""

    def _read(self, folder: Path) -> tuple[Config, AgentStore]:
        try:
            config = with_files(self._own, folder)
            return config, open_agents(config)
        except ConfigError as error:
            said = str(error).replace(f"{folder}/", "")
            is_ours = said.startswith(("routes[", "tenants[")) and (folder / RULES).exists()
            raise ConfigError(f"{RULES}: {said}" if is_ours else said) from None
