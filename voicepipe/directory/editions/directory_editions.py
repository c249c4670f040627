"""A directory takes what operators push: it asks every host whether it would take it, keeps it, and publishes it.

The bus stores nothing. Each directory says once a second which edition is the newest that it has; who has an older one
asks for it, be it a PoP that was cut off or a directory that has just begun.
"""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from voicepipe.base.errors import ConfigError, NoPop
from voicepipe.config import parse_rules
from voicepipe.config.agent_store import AgentStore, read_agent
from voicepipe.config.credentials import keys_of, operator_keys
from voicepipe.config.cross_checks import check_owners
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.file_kind import RULES
from voicepipe.directory import subjects
from voicepipe.directory.bus import Bus, BusMessage, decoding
from voicepipe.directory.directory import Directory
from voicepipe.directory.editions import messages
from voicepipe.directory.editions.edition import AGENTS, NONE, Edition, EditionId, laid_out, packed, unpacked
from voicepipe.directory.editions.edition_store import EditionStore
from voicepipe.directory.editions.messages import EditionAnnouncement, EditionWanted, Proposal, ProposalVerdict
from voicepipe.ingress.loopback_only import check_who_may_call

logger = logging.getLogger(__name__)

EVERY_S = 1.0
"""Seconds between announcements of the newest edition."""
THERE_S = 3.5
"""Seconds of silence after which a directory counts as gone."""
AT_ONCE_S = 0.5
"""Seconds within which several hosts' requests for one edition get one answer."""
AGAIN_S = 30.0
"""Seconds after which an edition that could not be kept is tried again."""
VERDICTS_S = 5.0
"""Seconds in which hosts have to answer whether they would take an edition; each reads all agents' files."""
SAYS_NOTHING = (
    f"says nothing within {VERDICTS_S:g} s: push again; if that does not help, look whether it may hear vp.fleet.> on "
    "the bus"
)


@dataclass(frozen=True, slots=True)
class PushOutcome:
    """The outcome of a push."""

    edition: Edition
    unheard: tuple[str, ...]
    """Hosts that have not answered, and report no more. They take the edition over when they receive it."""


class DirectoryBeginning(NamedTuple):
    """The edition with which a directory begins."""

    config: DirectoryConfig
    edition: Edition | None = None
    problem: str = ""
    """Why it is not the newest edition."""


def store_of(config: DirectoryConfig) -> EditionStore | None:
    """None: this directory takes no pushes."""
    its = config.directory
    return EditionStore(Path(its.editions), its.id, "directory.editions") if its.editions else None


def begun(own: DirectoryConfig, store: EditionStore | None) -> DirectoryBeginning:
    """The edition that the directory used last; if its routes and tenants are no longer valid, the newest one whose
    are. Raises ConfigError: none is valid."""
    operator_keys(own.http, ())  # An error in its own file is not to look like one of an edition.
    found = store.begin(lambda edition, folder: with_rules(own, edition.files)) if store else None
    return DirectoryBeginning(*found) if found else DirectoryBeginning(own)


def with_rules(config: DirectoryConfig, files: Mapping[str, str]) -> DirectoryConfig:
    """A directory's configuration with an edition's routes and tenants. Raises ConfigError with the file's name."""
    if RULES not in files:
        return config
    config = parse_rules(files[RULES], RULES).at_directory(config)
    try:
        check_owners(config)
        check_who_may_call(config.http, config.tenants)
        if config.tenants and not config.http.operator_key:
            raise ConfigError(
                "tenants: this directory has no operator's key, so nobody could push, list or drain any more; set "
                "http.operator_key_env in its file first"
            )
        operator_keys(config.http, keys_of(config.tenants))
    except ConfigError as error:
        raise ConfigError(f"{RULES}: {error}") from None
    return config


class ProposalRound:
    """Collects the answers of hosts to one proposal. `asked`: the names of the hosts whose answers count."""

    def __init__(self, asked: set[str]) -> None:
        self.id = secrets.token_hex(8)
        self._asked = frozenset(asked)
        self._waiting = set(asked)
        self._problems: dict[str, list[str]] = {}
        """Problems, with the hosts that report them."""
        self._all_answered = asyncio.Event()
        if not asked:
            self._all_answered.set()

    def said(self, host: str, problem: str) -> None:
        """A host has answered; empty: it would take the edition."""
        if host not in self._asked:
            return
        for line in problem.splitlines():
            self._problems.setdefault(line, []).append(host)
        self._waiting.discard(host)
        if not self._waiting:
            self._all_answered.set()

    async def over(self, heard: Callable[[], set[str]]) -> tuple[str, ...]:
        """Wait for all answers. Returns the hosts without an answer that have fallen silent meanwhile: they are not
        waited for. `heard`: the hosts that report at a moment. A missing answer of another one is a problem."""
        try:
            async with asyncio.timeout(VERDICTS_S):
                await self._all_answered.wait()
        except TimeoutError:
            there = heard()
            for host in self._waiting & there:
                self._problems.setdefault(SAYS_NOTHING, []).append(host)
            return tuple(sorted(self._waiting - there))
        return ()

    def lines(self) -> list[str]:
        """A line for each problem, with the hosts that have it."""
        return [f"{line} (so {', '.join(sorted(hosts))})" for line, hosts in self._problems.items()]


class DirectoryEditions:
    """The editions of a directory: it accepts pushes, agrees on them with the fleet, and keeps them. `own` is its own
    configuration, without any edition; `begun` the one with which it began; `take` makes it use other routes and
    tenants; `clock` gives monotonic seconds."""

    def __init__(
        self,
        bus: Bus,
        directory: Directory,
        own: DirectoryConfig,
        store: EditionStore,
        begun: DirectoryBeginning,
        take: Callable[[DirectoryConfig], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.current = begun.edition
        self._problem = begun.problem
        self._bus = bus
        self._directory = directory
        self._own = own
        self._store = store
        self._take = take
        self._clock = clock
        self._pushing, self._changing = asyncio.Lock(), asyncio.Lock()
        self._round: ProposalRound | None = None
        self._published: dict[int, float] = {}
        """When each edition was last published."""
        self._failed, self._again_at = NONE, 0.0
        """The last edition that could not be kept, and when it is tried again."""
        self._others: dict[str, tuple[EditionId, float]] = {}
        """The newest edition of each other directory, and when it was announced."""

    @property
    def problem(self) -> str:
        """Why this directory does not use the newest edition; empty: it does."""
        beyond = [name for name, number in self._at_pops().items() if number > self._head.number]
        if beyond and not self._problem:
            return f"{', '.join(beyond)} have a newer edition, which no directory has that is heard here: push again."
        return self._problem

    def differing(self) -> dict[str, int]:
        """Other directories that have another edition, and its number."""
        return {name: head.number for name, head in self._there().items() if head.digest != self._head.digest}

    @asynccontextmanager
    async def rebased(self, own: DirectoryConfig) -> AsyncIterator[DirectoryConfig]:
        """Yields the edition in use with another configuration of the directory's own, which is `own` from the end of
        the context on; no edition is taken over meanwhile. Raises ConfigError: they do not go together."""
        async with self._changing:
            yield await asyncio.to_thread(with_rules, own, self.current.files if self.current else {})
            self._own = own

    # --- what operators order

    async def push(
        self, files: Mapping[str, str], like: int = 0, *, own_rules: bool = False, dry: bool = False
    ) -> PushOutcome:
        """Have the fleet use these files, unless a host finds an error in them. Without routes and tenants those of the
        last push stay, or with `own_rules` each host goes back to its own. `dry`: only check. Raises ConfigError, with
        a line for each problem, and no host has taken anything; NoPop: this directory has lost the bus."""
        async with self._pushing:
            if not self._bus.is_connected():
                raise NoPop("This directory has lost the bus, so no PoP would hear of it: push again soon.")
            if RULES not in files and self.current and RULES in self.current.files and not (own_rules or like):
                files = {**files, RULES: self.current.files[RULES]}
            edition = Edition(self._next_number(), dict(files), time.time(), like)
            try:
                said, unheard = await self._judged(edition)
                if not dry:
                    await self._put_first(edition, said)
            except ConfigError as error:
                logger.warning("a push is refused: %s", error)
                raise
            return PushOutcome(edition, unheard)

    async def roll_back(self, number: int) -> PushOutcome:
        """Push the files of an earlier edition again. Raises as `push`; ConfigError: it is not kept."""
        older = await asyncio.to_thread(self._store.find, number)
        if older is None:
            kept = ", ".join(str(edition.number) for edition in await self.kept()) or "none"
            raise ConfigError(f"There is no edition {number} here; kept: {kept}.")
        return await self.push(older.files, older.like or number)

    async def kept(self) -> list[Edition]:
        """The editions to which the fleet may be rolled back, the newest first."""
        return await asyncio.to_thread(self._store.all)

    # --- what it publishes, and receives

    async def run(self) -> None:
        """Announce the newest edition, until cancelled."""
        while True:
            await self._say_newest()
            await asyncio.sleep(EVERY_S)

    async def listen(self) -> None:
        """Receive other directories' editions, and requests for editions, until cancelled."""
        patterns = (messages.HEADS, messages.EDITIONS, messages.PROPOSALS, messages.DIRECTORIES_WANT,
                    messages.DIRECTORIES_SAY, messages.POPS_WANT, messages.POPS_SAY)  # fmt: skip
        async with self._bus.listen(*patterns) as heard:
            async for message in heard:
                with decoding(message):
                    await self._receive(message)

    async def _receive(self, message: BusMessage) -> None:
        match message.subject:
            case messages.HEADS:
                await self._receive_newest(msgspec.json.decode(message.data, type=EditionAnnouncement))
            case messages.EDITIONS:
                await self._offered(await asyncio.to_thread(unpacked, message.data))
            case messages.PROPOSALS:
                await self._judge(msgspec.msgpack.decode(message.data, type=Proposal))
            case messages.DIRECTORIES_SAY:
                said = msgspec.json.decode(message.data, type=ProposalVerdict)
                self._note(said, f"directory {said.directory}")
            case subject if (pop := subjects.pop_of(subject)) and subject == subjects.of_pop(messages.POPS_SAY, pop):
                self._note(msgspec.json.decode(message.data, type=ProposalVerdict), pop)
            case _:
                await self._send(msgspec.json.decode(message.data, type=EditionWanted))

    async def _receive_newest(self, newest: EditionAnnouncement) -> None:
        head = newest.head
        if newest.directory != self._own.directory.id:
            self._others[newest.directory] = head, self._clock()
        if self._wants(head):
            await self._bus.publish(messages.DIRECTORIES_WANT, msgspec.json.encode(EditionWanted(head.number)))

    async def _offered(self, edition: Edition) -> None:
        """Process an edition from the bus: another directory's, or our own come back."""
        async with self._changing:
            if not self._wants(edition.head):
                return
            try:
                await self._use(edition)
            except ConfigError as error:
                self._failed, self._again_at = edition.head, self._clock() + AGAIN_S
                self._problem = f"edition {edition.number}: {error}"
                logger.error("edition %d is not kept: %s", edition.number, error)

    def _wants(self, head: EditionId) -> bool:
        return head > self._head and not (head == self._failed and self._clock() < self._again_at)

    @property
    def _head(self) -> EditionId:
        return self.current.head if self.current else NONE

    def _next_number(self) -> int:
        """The next number: above all that were ever seen here, also at PoPs that got theirs from a directory that is
        gone."""
        there = (head.number for head in self._there().values())
        return max([self._head.number, *self._at_pops().values(), *there]) + 1

    def _at_pops(self) -> dict[str, int]:
        states = {seen.pop: seen.condition.edition for seen in self._directory.heard()}
        return {pop: state.number for pop, state in states.items() if state}

    def _there(self) -> dict[str, EditionId]:
        """The other directories that announce editions at present."""
        now = self._clock()
        return {name: head for name, (head, at) in self._others.items() if now - at < THERE_S}

    async def _say_newest(self) -> None:
        newest = EditionAnnouncement(self._own.directory.id, self._head)
        await self._bus.publish(messages.HEADS, msgspec.json.encode(newest))

    async def _send(self, wanted: EditionWanted) -> None:
        if self._clock() - self._published.get(wanted.number, -AT_ONCE_S) < AT_ONCE_S:
            return
        edition = await asyncio.to_thread(self._store.find, wanted.number)
        if edition:
            await self._publish(edition, await asyncio.to_thread(packed, edition))

    async def _publish(self, edition: Edition, said: bytes) -> None:
        self._published[edition.number] = self._clock()
        await self._bus.publish(messages.EDITIONS, said)

    async def _put_first(self, edition: Edition, said: bytes) -> None:
        """Keep the edition here, then publish it. Raises ConfigError: it cannot be kept, or is no longer the newest."""
        async with self._changing:
            if edition.head <= self._head:
                raise ConfigError(f"Another push came meanwhile, and is edition {self._head.number}: push again.")
            await self._use(edition)
        logger.info("edition %d (%s) is pushed: %d files", edition.number, edition.digest, len(edition.files))
        await self._publish(edition, said)
        await self._say_newest()

    async def _use(self, edition: Edition) -> None:
        """Keep the edition, and use its routes and tenants; if they are not valid here, the ones before stay, and
        `problem` says so. Raises ConfigError: it cannot be kept."""
        await asyncio.to_thread(self._store.keep, edition)
        await asyncio.to_thread(self._store.use, edition)
        self.current, self._problem = edition, ""
        try:
            await self._take(await asyncio.to_thread(with_rules, self._own, edition.files))
        except ConfigError as error:
            self._problem = str(error)
            logger.error("the routes and tenants of edition %d are not taken over: %s", edition.number, error)

    # --- whether a proposal is good

    async def _judged(self, edition: Edition) -> tuple[bytes, tuple[str, ...]]:
        """The edition packed for the bus, and the hosts that fell silent: all others would take it. Raises
        ConfigError."""
        await asyncio.to_thread(_check, self._own, edition)
        said = await asyncio.to_thread(packed, edition)
        self._round = its = ProposalRound(self._asked())
        try:
            await self._bus.publish(messages.PROPOSALS, msgspec.msgpack.encode(Proposal(its.id, said)))
            unheard = await its.over(self._asked)
        finally:
            self._round = None
        if problems := its.lines():
            raise ConfigError("\n".join(problems))
        return said, unheard

    def _asked(self) -> set[str]:
        """Hosts that report now, and take pushes."""
        seen = [seen for seen in self._directory.pops() if not seen.silent and (state := seen.condition.edition)
                and not state.pinned]  # fmt: skip
        return {one.pop for one in seen} | {f"directory {name}" for name in self._there()}

    async def _judge(self, proposal: Proposal) -> None:
        """Answer another directory's proposal. Our own, which comes back to us, was checked before."""
        if self._round and self._round.id == proposal.id:
            return
        try:
            await asyncio.to_thread(_check, self._own, await asyncio.to_thread(unpacked, proposal.edition))
            problem = ""
        except (ConfigError, ValueError) as error:
            problem = str(error)[: messages.PROBLEM_LENGTH]
        said = ProposalVerdict(proposal.id, problem, self._own.directory.id)
        await self._bus.publish(messages.DIRECTORIES_SAY, msgspec.json.encode(said))

    def _note(self, said: ProposalVerdict, whose: str) -> None:
        if self._round and said.id == self._round.id:
            self._round.said(whose, said.problem)


def _check(own: DirectoryConfig, edition: Edition) -> None:
    """Raises ConfigError: a file has an error on any host, or this directory could not use it."""
    with laid_out(edition.files) as folder:
        AgentStore(folder / AGENTS, read=read_agent)
    with_rules(own, edition.files)
