"""A PoP's records: it follows the calls, and finds them again."""

import asyncio
import fcntl
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

from voicepipe.agent import Hooks
from voicepipe.call_api import CostQuery, RecordQuery
from voicepipe.config import Config
from voicepipe.errors import ConfigError
from voicepipe.observe.calls import CallEnd, CallFacts, CallFollower
from voicepipe.observe.turns import FullTurn
from voicepipe.records import signing, store
from voicepipe.records.costs import Costs, costs
from voicepipe.records.deliveries import Deliveries
from voicepipe.records.lines import Lines
from voicepipe.records.record import CallRecord, CallSummary, Host
from voicepipe.records.store import AT_A_TIME, Delivery, Store
from voicepipe.records.writer import Then, Writer

TIDY_S = 3600.0
T = TypeVar("T")
HooksOf = Callable[[str, str], Hooks]
"""Of an agent and a tenant, by their names: who is told of a call when it has ended."""


class Records(CallFollower):
    """Implements `call_api.RecordsApi`."""

    def __init__(
        self, path: Path, host: Host, writer: Writer, lines: Lines, keep_s: float, hooks: HooksOf,
        loop: asyncio.AbstractEventLoop,
    ) -> None:  # fmt: skip
        self.writer = writer
        self.deliveries = Deliveries(path, writer, loop)
        self._path = path
        self._host = host
        self._lines = lines
        self._keep_s = keep_s
        self._hooks = hooks

    # --- written

    def began(self, call: CallFacts) -> None:
        self.writer.put(lambda its: its.began(call))

    def turn(self, call: CallFacts, full: FullTurn) -> None:
        self.writer.put(lambda its: its.said(call.id, full))

    replied = amended = turn

    def ended(self, call: CallFacts, end: CallEnd) -> None:
        hooks = self._hooks(call.agent, call.tenant)
        self.writer.put(lambda its: self._over(its, its.ended(call, end), hooks, end.at))

    def mark_cut(self, its: Store) -> Then:
        """Calls that were in progress when the PoP ended without a word have ended, too."""
        for record in its.cut():
            self._over(its, record, self._hooks(record.agent, record.tenant), time.time())
        return self.deliveries.wake

    def _over(self, its: Store, record: CallRecord, hooks: Hooks, now: float) -> Then | None:
        self._lines.write(record)
        if not hooks.after_call:
            return None
        its.spool(Delivery(id=f"msg_{secrets.token_hex(12)}", call=record.id, url=hooks.after_call,
                           secret_env=hooks.secret_env, since=now, due=now))  # fmt: skip
        return self.deliveries.wake

    async def tidy(self) -> None:
        """Forget what is old, until cancelled."""
        while True:
            before = time.time() - self._keep_s
            while await self.writer.carried_out(lambda its: its.forget(before)) == AT_A_TIME:  # noqa: B023
                pass
            await asyncio.sleep(TIDY_S)

    # --- read

    async def listed(self, query: RecordQuery) -> list[CallSummary]:
        """The newest first."""
        return await asyncio.to_thread(self._read, lambda db: store.listed(db, query))

    async def found(self, call_id: str, tenant: str | None) -> CallRecord | None:
        """As `store.found`."""
        return await asyncio.to_thread(self._read, lambda db: store.found(db, call_id, tenant))

    async def costs(self, query: CostQuery) -> Costs:
        """As `costs.costs`."""
        return await asyncio.to_thread(self._read, lambda db: costs(db, query, self._host, time.time()))

    def _read(self, question: Callable[[sqlite3.Connection], T]) -> T:
        with store.reading(self._path) as db:
            return question(db)


@asynccontextmanager
async def kept(config: Config, hooks: HooksOf) -> AsyncIterator[Records | None]:
    """A PoP's records, until all calls have ended; None: it keeps none. Raises ConfigError: they cannot be kept."""
    if not config.records.folder:
        yield None
        return
    with ExitStack() as stack:
        records = await asyncio.to_thread(_open, config, hooks, asyncio.get_running_loop(), stack)
        try:
            yield records
        finally:
            await asyncio.to_thread(records.writer.close)


def _open(config: Config, hooks: HooksOf, loop: asyncio.AbstractEventLoop, stack: ExitStack) -> Records:
    for index, tenant in enumerate(config.tenants):
        if lacks := signing.lacks(tenant.hooks):
            raise ConfigError(f"tenants[{index}].{lacks}")
    folder, pop = Path(config.records.folder), config.pop
    path, host = folder / f"{pop.id}.db", Host(pop.id, pop.region, pop.slots, pop.price_per_hour)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = stack.enter_context((folder / f"{pop.id}.lock").open("w"))
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        its = Store(path, host)
    except BlockingIOError:
        raise ConfigError(
            f"records.folder: another PoP {pop.id} keeps its records in {folder}; give this one an id of its own "
            "(pop.id), or another folder"
        ) from None
    except (OSError, sqlite3.Error) as error:
        raise ConfigError(f"records.folder: records cannot be kept in {folder}: {error}") from None
    keep_s = config.records.keep_days * 86_400.0
    records = Records(path, host, Writer(its), Lines(config.records.lines), keep_s, hooks, loop)
    records.writer.put(records.mark_cut)
    return records
