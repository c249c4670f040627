"""A PoP's records: it follows the calls, and finds them again."""

import asyncio
import fcntl
import logging
import os
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric

from voicepipe.agent import Hooks
from voicepipe.base.errors import ConfigError, RecordsFailing
from voicepipe.base.ranges import is_url
from voicepipe.base.takeover import TakeoverParts
from voicepipe.config import Config
from voicepipe.observe.call_followers import CallEnd, CallFacts, CallFollower
from voicepipe.observe.last_turns import FullTurn
from voicepipe.observe.metric_families import HERE, at_present
from voicepipe.operator_views import CallSelection, CostQuery, Deleted, RecordQuery
from voicepipe.records import signing
from voicepipe.records.costs import Costs, costs
from voicepipe.records.deliveries import RECORDS, Deliveries
from voicepipe.records.json_lines import erase_lines, write_line
from voicepipe.records.record import CUT, CallRecord, CallSummary, RecordedHost
from voicepipe.records.store import (
    AT_A_TIME,
    BUSY_S,
    Delivery,
    Store,
    checkpoint,
    found,
    listed,
    matching,
    not_permitted,
    permitted,
    reading,
)
from voicepipe.records.writer import RecordWriter, Then

logger = logging.getLogger(__name__)

TIDY_S = 3600.0
SOON_S = 10.0
"""Seconds for which a request to delete waits for the file."""
AGAIN_S, LONGEST_S = 0.02, 1.0
"""Seconds between attempts to empty the write-ahead log: the first pause, and the longest; each is twice the one
before."""
READERS = 2
"""Questions that are answered at a time."""
T = TypeVar("T")
HooksOf = Callable[[str, str], Hooks]
"""Gives the receivers of webhooks, by the names of an agent and a tenant."""


class _Notice(NamedTuple):
    hooks: Hooks
    message_id: str


class Records(CallFollower):
    """The records of a PoP: it follows the calls, writes them down, and finds them again. Implements
    `operator_views.RecordsApi`."""

    def __init__(
        self, path: Path, host: RecordedHost, deliveries: Deliveries, lines: str, keep_s: float, hooks: HooksOf,
        parts: TakeoverParts,
    ) -> None:  # fmt: skip
        self._parts = parts
        self.writer = deliveries.writer
        self.deliveries = deliveries
        self.lock: int | None = None
        """The descriptor of the lock that keeps other PoPs away from the file."""
        self._in_progress: dict[str, None] = {}
        """Ids of the calls in progress."""
        self._elsewhere: list[str] = []
        """Ids of those that go on in the process before this one."""
        parts.join(RECORDS, list[str], lambda: [*self._elsewhere, *self._in_progress], self._take_over)
        self.deleted: list[Callable[[Collection[str]], object]] = []
        """Called with the ids of calls that were deleted."""
        self._path = path
        self._host = host
        self._readers = ThreadPoolExecutor(READERS, "records-read")
        self._lines = lines
        self._keep_s = keep_s
        self.after_call: Callable[[str, dict[str, Any]], object] | None = None
        """Calls a function of `hooks.after_call` with a record, which is as JSON."""
        self.hooks = hooks
        """Gives the receivers of webhooks; called when a call has ended."""
        self._dirty, self._clean = asyncio.Event(), asyncio.Event()
        """Set when the write-ahead log contains deleted data; set when it does not."""

    def close(self) -> None:
        """Write what waits. Blocks."""
        self.writer.close()
        self._readers.shutdown(wait=False)

    # --- written

    def _take_over(self, in_progress: list[str]) -> None:
        self._elsewhere = in_progress
        self.deliveries.wake()

    def began(self, call: CallFacts) -> None:
        self._in_progress[call.id] = None
        self._parts.changed(RECORDS)
        self.writer.put(lambda store: store.began(call), always=True)

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        self.writer.put(lambda store: store.said(call.id, full))

    replied = amended = turn

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        notice = self._notice(call.agent, call.tenant)
        self._in_progress.pop(call.id, None)
        self.writer.put(lambda store: self._over(store, store.ended(call, end), notice), always=True)

    def left(self, call: CallFacts) -> None:
        notice, now = self._notice(call.agent, call.tenant), time.time()
        self._in_progress.pop(call.id, None)
        self.writer.put(lambda store: self._over(store, store.left(call, now), notice), always=True)

    def mark_cut(self, store: Store) -> None:
        """Mark the calls that were in progress when the PoP was killed as ended."""
        for call_id in store.in_progress():
            self.writer.put(partial(self._cut, call_id), always=True)

    def cut_elsewhere(self) -> None:
        """Mark calls as ended that were still in progress when the process before this one has ended: it was
        killed."""
        for call_id in self._elsewhere:
            self.writer.put(partial(self._cut, call_id), always=True)

    def _cut(self, call_id: str, store: Store) -> Then | None:
        record = store.cut(call_id)
        return self._over(store, record, self._notice(record.agent, record.tenant)) if record else None

    def _notice(self, agent: str, tenant: str) -> _Notice:
        """The deliveries for a call; made before it is written, which may be tried twice."""
        return _Notice(self.hooks(agent, tenant), f"msg_{secrets.token_hex(12)}")

    def _over(self, store: Store, record: CallRecord | None, notice: _Notice) -> Then | None:
        """Follow-up of a call that has ended. None: none has."""
        if record is None:
            return None
        after_call = notice.hooks.after_call
        if is_url(after_call):
            now = time.time()
            store.add_delivery(Delivery(id=notice.message_id, call=record.id, url=after_call,
                               secret=notice.hooks.secret.text, since=record.ended or now, due=now))  # fmt: skip

        def then() -> None:
            write_line(record, self._lines)
            self.deliveries.wake()
            if after_call and not is_url(after_call) and self.after_call and record.reason != CUT:
                read = msgspec.json.decode(msgspec.json.encode(record))
                self.deliveries.loop.call_soon_threadsafe(self.after_call, after_call, read)

        return then

    async def tidy(self) -> None:
        """Delete old records, until cancelled."""
        while True:
            before = time.time() - self._keep_s
            while await self.writer.carried_out(lambda store: store.forget(before)) == AT_A_TIME:  # noqa: B023
                pass
            self._dirty.set()
            await asyncio.sleep(TIDY_S)

    async def empty_log(self) -> None:
        """Take deleted data out of the write-ahead log as soon as nobody reads the file, until cancelled."""
        while True:
            await self._dirty.wait()
            pause_s = AGAIN_S
            while self._dirty.is_set():
                self._dirty.clear()
                if not await asyncio.to_thread(checkpoint, self._path):
                    self._dirty.set()
                    await asyncio.sleep(pause_s)
                    pause_s = min(LONGEST_S, 2 * pause_s)
            self._clean.set()

    # --- deleted

    async def delete(self, call_id: str, tenant: str | None) -> Deleted:
        """As `Store.delete`. Raises RecordsFailing."""
        return await self._deleted([call_id], tenant)

    async def delete_matching(self, query: CallSelection) -> Deleted:
        """As `RecordsApi.delete_matching`."""
        await self._written(lambda store: None)  # What was reported of calls until now is read, too.
        others = await self._asked(lambda db: not_permitted(db, query))
        deleted = await self._deleted(await self._asked(lambda db: matching(db, query)), query.tenant)
        return deleted._replace(not_permitted=others)

    async def _deleted(self, ids: Sequence[str], tenant: str | None) -> Deleted:
        gone, in_progress, others = list[str](), list[str](), 0
        # Before the records, by which they are found when somebody asks again.
        read = await self._lines_erased(await self._asked(lambda db: permitted(db, ids, tenant)))
        for at in range(0, len(ids), AT_A_TIME):
            some = ids[at : at + AT_A_TIME]
            done = await self._written(lambda store: store.delete(some, tenant), self._gone)  # noqa: B023
            gone += done.ids
            in_progress += done.in_progress
            others += done.not_permitted
        if gone:
            await self._lines_erased(gone, read)  # Of calls that ended meanwhile.
            with suppress(TimeoutError):
                async with asyncio.timeout(BUSY_S):
                    await self._clean.wait()
            if not self._clean.is_set():
                logger.warning("what was deleted is still in %s-wal, since another program reads the records, or they "
                               "cannot be written; it is taken out soon after that", self._path.name)  # fmt: skip
        return Deleted(gone, in_progress, others)

    async def _lines_erased(self, ids: Collection[str], start: int = 0) -> int:
        """As `erase_lines`. Raises RecordsFailing."""
        try:
            if not ids:
                return 0
            return await asyncio.get_running_loop().run_in_executor(
                self._readers, erase_lines, frozenset(ids), self._lines, start
            )
        except OSError as error:
            raise RecordsFailing(f"{self._lines} (records.lines) cannot be written at present ({error.strerror}). What "
                                 "you asked for is not deleted: ask again later.") from None  # fmt: skip

    def _gone(self, deleted: Deleted) -> None:
        """Calls were deleted from the file: have all else that holds them delete them."""
        if deleted.ids:
            for notify in self.deleted:
                notify(frozenset(deleted.ids))
            self._clean.clear()
            self._dirty.set()
            self.deliveries.wake()

    async def _written(self, work: Callable[[Store], T], then: Callable[[T], object] = lambda result: None) -> T:
        """The result of `RecordWriter.carried_out`, if it comes soon. Raises RecordsFailing."""
        try:
            async with asyncio.timeout(SOON_S):
                return await self.writer.carried_out(work, then)
        except TimeoutError:
            why = self.writer.failing or "the disk is too slow"
            raise RecordsFailing(f"Records cannot be written at present ({why}). What you asked for may still be "
                                 "deleted: ask again later.") from None  # fmt: skip

    # --- read

    async def listed(self, query: RecordQuery) -> list[CallSummary]:
        """The calls, the newest first."""
        return await self._asked(lambda db: listed(db, query))

    async def found(self, call_id: str, tenant: str | None) -> CallRecord | None:
        """As `store.found`."""
        return await self._asked(lambda db: found(db, call_id, tenant))

    async def costs(self, query: CostQuery) -> Costs:
        """As `costs.costs`."""
        return await self._asked(lambda db: costs(db, query, self._host, time.time()))

    def read_metrics(self, here: tuple[str, str]) -> Iterator[Metric]:
        """The metrics of records and deliveries. `here`: the PoP's labels, as in HERE. The number of records that wait
        to be written is among the queues."""
        spool = self.deliveries.spool
        age_s = 0.0 if spool.since is None else max(0.0, time.time() - spool.since)
        for name, help_text, value in (
            ("voicepipe_records_failing", "1: the file of records cannot be written; they wait.",
             float(bool(self.writer.failing))),
            ("voicepipe_deliveries_waiting", "Records that receivers are still to be sent (hooks.after_call).",
             spool.waiting),
            ("voicepipe_deliveries_oldest_seconds", "For how long the oldest of them has waited.", age_s),
        ):  # fmt: skip
            yield at_present(GaugeMetricFamily, name, help_text, HERE, [(here, value)])
        failed, help_text = self.deliveries.failed, "Tries that no receiver took."
        yield at_present(CounterMetricFamily, "voicepipe_deliveries_failed", help_text, HERE, [(here, failed)])

    async def _asked(self, question: Callable[[sqlite3.Connection], T]) -> T:
        """Answer a question in one of a few threads: long questions do not take those of the engines."""
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, question)

    def _read(self, question: Callable[[sqlite3.Connection], T]) -> T:
        with reading(self._path) as db:
            return question(db)


@asynccontextmanager
async def kept(
    config: Config, hooks: HooksOf, parts: TakeoverParts | None = None, inherited_lock: int | None = None
) -> AsyncIterator[Records | None]:
    """Yields a PoP's records, until all calls have ended; None: it keeps none. `parts`: what the process that takes
    over gets of them; `inherited_lock`: the lock's descriptor of the process before, which writes to them as well, and
    None where this process replaces none. Raises ConfigError: they cannot be kept."""
    if not config.records.folder:
        yield None
        return
    with ExitStack() as stack:
        loop = asyncio.get_running_loop()
        records = await asyncio.to_thread(_open, config, hooks, loop, stack, parts, inherited_lock)
        try:
            yield records
        finally:
            await asyncio.to_thread(records.close)


def _open(
    config: Config, hooks: HooksOf, loop: asyncio.AbstractEventLoop, stack: ExitStack, parts: TakeoverParts | None,
    inherited_lock: int | None,
) -> Records:  # fmt: skip
    for index, tenant in enumerate(config.tenants):
        if lacks := signing.lacks(tenant.hooks):
            raise ConfigError(f"tenants[{index}].{lacks}")
    folder, pop = Path(config.records.folder), config.pop
    path, host = folder / f"{pop.id}.db", RecordedHost(pop.id, pop.region, pop.slots, pop.price_per_hour)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = stack.enter_context((folder / f"{pop.id}.lock").open("w"))
        shares = inherited_lock is not None and os.path.sameopenfile(lock.fileno(), inherited_lock)
        if inherited_lock is not None and shares:  # Both processes have the lock, until the last of them ends.
            lock = stack.enter_context(os.fdopen(inherited_lock, "w"))
        elif inherited_lock is not None:
            os.close(inherited_lock)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        store = Store(path, host)
    except BlockingIOError:
        raise ConfigError(
            f"records.folder: another PoP {pop.id} keeps its records in {folder}; give this one an id of its own "
            "(pop.id), or another folder"
        ) from None
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"records.folder: records cannot be kept in {folder}: {error}") from None
    keep_s = config.records.keep_days * 86_400.0
    parts = parts or TakeoverParts()
    deliveries = Deliveries(path, RecordWriter(store), loop, config.tls.ca, parts)
    records = Records(path, host, deliveries, config.records.lines, keep_s, hooks, parts)
    records.lock = lock.fileno()
    if not shares:
        records.writer.put(records.mark_cut)
    return records
