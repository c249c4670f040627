"""A directory takes what operators push: asks every PoP whether it would take it, keeps it, and tells it to the fleet.

The bus stores nothing. Each directory says once a second which edition is the newest that it has; who has an older one
asks for it, be it a PoP that was cut off or a directory that has just begun.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from voicepipe.config import fleet_rules
from voicepipe.config.credentials import keys_of, operator_keys_of
from voicepipe.config.directory_config import DirectoryConfig, check_owners
from voicepipe.config.file_kind import RULES
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus, BusMessage
from voicepipe.directory.directory import Directory
from voicepipe.editions import messages
from voicepipe.editions.edition import Edition, Head, check, packed, unpacked, write
from voicepipe.editions.messages import Proposal, Verdict, Wanted
from voicepipe.editions.shelf import Shelf
from voicepipe.errors import ConfigError, NoPop
from voicepipe.ingress.local import check_who_may_call

logger = logging.getLogger(__name__)

EVERY_S = 1.0
"""Between two words of which edition is the newest."""
VERDICTS_S = 5.0
"""PoPs have so long to say whether they would take an edition; it reads all agents' files."""
SETTLED_S = 0.3
"""Other directories, of which nobody knows how many there are, have so long."""
AGAIN_S = 0.5
"""Several PoPs that ask for one edition within this time are answered at once."""


@dataclass(slots=True)
class _Round:
    """A proposal, and what is said to it."""

    id: str
    waiting: set[str]
    """PoPs that have said nothing yet."""
    problems: dict[str, str] = field(default_factory=dict)
    """By who has said so."""
    all_told: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class Pushed:
    """What became of a push."""

    edition: Edition
    unheard: tuple[str, ...]
    """PoPs that did not say whether they would take it. They get it all the same."""


def shelf_of(config: DirectoryConfig) -> Shelf | None:
    """None: this directory takes no pushes."""
    return Shelf(Path(config.directory.editions), "directory.editions") if config.directory.editions else None


def with_rules(config: DirectoryConfig, files: Mapping[str, str]) -> DirectoryConfig:
    """A directory's configuration with an edition's routes and tenants. Raises ConfigError, which names the file."""
    if RULES not in files:
        return config
    with TemporaryDirectory(prefix="voicepipe-edition-") as folder:
        write({RULES: files[RULES]}, Path(folder))
        try:
            config = fleet_rules.load(Path(folder, RULES)).at_directory(config)
        except ConfigError as error:
            raise ConfigError(str(error).replace(f"{folder}/", "")) from None
    try:
        check_owners(config)
        check_who_may_call(config.http, config.tenants)
        operator_keys_of(config.http, keys_of(config.tenants))
    except ConfigError as error:
        raise ConfigError(f"{RULES}: {error}") from None
    return config


class DirectoryEditions:
    """Of one directory. `own` is its own configuration, without any edition; `current` the edition that it began with;
    `take` has it go by other routes and tenants."""

    def __init__(
        self,
        bus: Bus,
        directory: Directory,
        own: DirectoryConfig,
        shelf: Shelf,
        current: Edition | None,
        take: Callable[[DirectoryConfig], None],
    ) -> None:
        self.current = current
        self.problem = ""
        """What kept this directory from going by the routes and tenants of `current`; empty: nothing did."""
        self._bus = bus
        self._directory = directory
        self._own = own
        self._shelf = shelf
        self._take = take
        self._pushing = asyncio.Lock()
        self._round: _Round | None = None
        self._published: dict[int, float] = {}

    # --- what operators order

    async def push(self, files: Mapping[str, str], like: int = 0) -> Pushed:
        """Have the fleet go by these files, unless a host finds something wrong with them. Raises ConfigError, with a
        line for each problem, before anybody has taken them; NoPop: this directory has lost the bus."""
        async with self._pushing:
            if not self._bus.is_connected():
                raise NoPop("This directory has lost the bus, so no PoP would hear of it: push again soon.")
            edition = Edition(self._next_number(), dict(files), time.time(), like)
            check(edition.files)
            said = await asyncio.to_thread(packed, edition)
            asked = await self._judged(edition, said)
            if asked.problems:
                raise ConfigError("\n".join(_told(asked.problems)))
            await self._go_by(edition)
            await self._publish(edition, said)
            await self._say_newest()
            return Pushed(edition, tuple(sorted(asked.waiting)))

    async def roll_back(self, number: int) -> Pushed:
        """Push the files of an earlier edition again. Raises as `push`; ConfigError: it is not kept."""
        older = await asyncio.to_thread(self._shelf.find, number)
        if older is None:
            kept = ", ".join(str(edition.number) for edition in await self.kept()) or "none"
            raise ConfigError(f"There is no edition {number} here; kept: {kept}.")
        return await self.push(older.files, older.like or number)

    async def kept(self) -> list[Edition]:
        """All that it may be rolled back to, the newest first."""
        return await asyncio.to_thread(self._shelf.all)

    # --- what it says, and hears

    async def run(self) -> None:
        """Say which edition is the newest, until cancelled."""
        while True:
            await self._say_newest()
            await asyncio.sleep(EVERY_S)

    async def listen(self) -> None:
        """Hear of other directories' editions, and of who asks for one, until cancelled."""
        patterns = (messages.HEADS, messages.EDITIONS, messages.PROPOSALS, messages.DIRECTORIES_WANT,
                    messages.DIRECTORIES_SAY, messages.POPS_WANT, messages.POPS_SAY)  # fmt: skip
        async with self._bus.listen(*patterns) as heard:
            async for message in heard:
                try:
                    await self._hear(message)
                except ConfigError as error:
                    logger.error("%s", error)
                except (msgspec.DecodeError, RecursionError, ValueError) as error:
                    logger.warning("%s: a message cannot be read, is it of another version? %s", message.subject, error)

    async def _hear(self, message: BusMessage) -> None:
        match message.subject:
            case messages.HEADS:
                head = msgspec.json.decode(message.data, type=Head)
                if head > self._head:
                    await self._bus.publish(messages.DIRECTORIES_WANT, msgspec.json.encode(Wanted(head.number)))
            case messages.EDITIONS:
                edition = unpacked(message.data)
                if edition.head > self._head:
                    await self._go_by(edition)
            case messages.PROPOSALS:
                await self._judge(msgspec.json.decode(message.data, type=Proposal))
            case messages.DIRECTORIES_SAY:
                said = msgspec.json.decode(message.data, type=Verdict)
                self._note(said, f"directory {said.directory}")
            case subject if pop := subjects.pop_of(subject):
                if subject == messages.verdict_of(pop):
                    self._note(msgspec.json.decode(message.data, type=Verdict), pop)
                else:
                    await self._send(msgspec.json.decode(message.data, type=Wanted))
            case _:
                await self._send(msgspec.json.decode(message.data, type=Wanted))

    @property
    def _head(self) -> Head:
        return self.current.head if self.current else Head(0, "")

    def _next_number(self) -> int:
        """Beyond all that were ever heard of here, also by PoPs that got theirs from a directory that is gone."""
        states = (seen.condition.edition for seen in self._directory.heard())
        return max([self._head.number, *(state.number for state in states if state)]) + 1

    async def _say_newest(self) -> None:
        if self.current:
            await self._bus.publish(messages.HEADS, msgspec.json.encode(self.current.head))

    async def _send(self, wanted: Wanted) -> None:
        if time.monotonic() - self._published.get(wanted.number, -AGAIN_S) < AGAIN_S:
            return
        edition = await asyncio.to_thread(self._shelf.find, wanted.number)
        if edition:
            await self._publish(edition, await asyncio.to_thread(packed, edition))

    async def _publish(self, edition: Edition, said: bytes) -> None:
        self._published[edition.number] = time.monotonic()
        await self._bus.publish(messages.EDITIONS, said)

    async def _go_by(self, edition: Edition) -> None:
        """Keep it, and go by its routes and tenants; if they cannot be had here, by those before, and say so. Raises
        ConfigError: it cannot be kept."""
        await asyncio.to_thread(self._shelf.keep, edition)
        await asyncio.to_thread(self._shelf.go_by, edition)
        self.current, self.problem = edition, ""
        try:
            self._take(await asyncio.to_thread(with_rules, self._own, edition.files))
        except ConfigError as error:
            self.problem = str(error)
            logger.error("the routes and tenants of edition %d are not taken over: %s", edition.number, error)

    # --- whether a proposal is good

    async def _judged(self, edition: Edition, said: bytes) -> _Round:
        """What all hosts say of it that are heard; first of all this one, which need not ask anybody for it."""
        taking = {seen.pop for seen in self._directory.pops() if not seen.silent and _takes(seen.condition.edition)}
        its = self._round = _Round(secrets.token_hex(8), taking)
        try:
            if problem := await asyncio.to_thread(_own_problem, self._own, edition):
                its.problems["this directory"] = problem
                return its
            proposal = Proposal(its.id, said)
            await self._bus.publish(messages.PROPOSALS, msgspec.json.encode(proposal))
            await asyncio.sleep(SETTLED_S)
            if its.waiting:
                try:
                    async with asyncio.timeout(VERDICTS_S):
                        await its.all_told.wait()
                except TimeoutError:
                    logger.warning("edition %d: not heard of from %s", edition.number, ", ".join(sorted(its.waiting)))
            return its
        finally:
            self._round = None

    async def _judge(self, proposal: Proposal) -> None:
        """What another directory asks. Our own, which we hear as well, was judged before."""
        if self._round and self._round.id == proposal.id:
            return
        problem = await asyncio.to_thread(_own_problem, self._own, unpacked(proposal.edition))
        said = Verdict(proposal.id, problem, self._own.directory.id)
        await self._bus.publish(messages.DIRECTORIES_SAY, msgspec.json.encode(said))

    def _note(self, said: Verdict, whose: str) -> None:
        its = self._round
        if its is None or said.id != its.id:
            return
        if said.problem:
            its.problems[whose] = said.problem
        its.waiting.discard(whose)
        if not its.waiting:
            its.all_told.set()


def _takes(state: object) -> bool:
    return state is not None and not getattr(state, "pinned", False)


def _own_problem(own: DirectoryConfig, edition: Edition) -> str:
    """What would keep this directory from going by it; empty: nothing."""
    try:
        check(edition.files)
        with_rules(own, edition.files)
    except ConfigError as error:
        return str(error)
    return ""


def _told(problems: Mapping[str, str]) -> list[str]:
    """A line for each problem, with who has it; what all say is said once."""
    whose: dict[str, list[str]] = {}
    for host, problem in problems.items():
        for line in problem.splitlines():
            whose.setdefault(line, []).append(host)
    return [f"{line} (so {', '.join(sorted(hosts))})" for line, hosts in whose.items()]
