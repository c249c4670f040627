"""One PoP's records in one SQLite file. Blocking: a thread's work, never the event loop's.

One connection writes (`Store`); who reads has a short-lived one of its own (`reading`), which write-ahead logging lets
go on beside it.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import asdict, astuple, replace

from voicepipe.base.caller_number import SEPARATORS, compact
from voicepipe.call_api import NO_TENANT
from voicepipe.observe.call_followers import CallEnd, CallFacts
from voicepipe.observe.last_turns import FullTurn
from voicepipe.operator_views import CallSelection, Deleted, RecordQuery
from voicepipe.records.record import CUT, CallRecord, CallSummary, RecordedHost, summary

VERSION = 1
"""Version of the tables; `user_version` of the file."""
TABLES = """
CREATE TABLE calls (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, agent TEXT NOT NULL, caller TEXT NOT NULL, began REAL NOT NULL,
    ended REAL, reason TEXT NOT NULL, output_tokens INTEGER NOT NULL, facts BLOB NOT NULL,
    summary BLOB NOT NULL
) WITHOUT ROWID;
CREATE INDEX calls_by_time ON calls (began, id);
CREATE INDEX calls_of_tenant ON calls (tenant, began, id);
CREATE INDEX calls_in_progress ON calls (id) WHERE ended IS NULL;
CREATE TABLE said (call TEXT NOT NULL, number INTEGER NOT NULL, full BLOB NOT NULL, PRIMARY KEY (call, number))
    WITHOUT ROWID;
CREATE TABLE deliveries (
    id TEXT PRIMARY KEY, call TEXT NOT NULL, url TEXT NOT NULL, secret_env TEXT NOT NULL, since REAL NOT NULL,
    due REAL NOT NULL, tries INTEGER NOT NULL, refused INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX deliveries_due ON deliveries (url, due);
CREATE INDEX deliveries_of_call ON deliveries (call);
"""
_BARE = reduce(lambda column, separator: f"replace({column}, '{separator}', '')", SEPARATORS, "caller")
FROM_CALLER = f"(caller = ? OR {_BARE} = ?)"
"""Condition for calls from a caller as they were written down, or from their number with other separators in it."""
BUSY_S = 10.0
"""Seconds for which a connection waits for another one's lock."""
AT_A_TIME = 200
"""Calls that are deleted in one transaction, so that others do not wait long for it."""

_encode = msgspec.json.Encoder().encode
_facts = msgspec.json.Decoder(CallFacts)
_full = msgspec.json.Decoder(FullTurn)
_summary = msgspec.json.Decoder(CallSummary)


class Delivery(msgspec.Struct, frozen=True):
    """A webhook that is to be delivered after a call has ended. The fields are in the order of the columns."""

    id: str
    """The same at each attempt, so that a receiver can recognise repetitions."""
    call: str
    url: str
    secret: str
    """Where the secret is, as `SecretSource.text`: it is read at each attempt, so that a new one counts. The column is
    `secret_env`, from before secrets were in files, too."""
    since: float
    """Unix seconds at which the call ended."""
    due: float
    """Unix second of the next attempt, at the earliest."""
    tries: int = 0
    refused: bool = False
    """The last answer was a refusal: the receiver is reachable and does not want it."""


class Store:
    """The PoP's records in a SQLite file, by the connection that writes. Raises sqlite3.Error: the file cannot be
    opened or written."""

    def __init__(self, path: Path, host: RecordedHost) -> None:
        self._host = host
        self._db = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None, check_same_thread=False)
        path.chmod(0o600)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA secure_delete = ON")  # What is forgotten, or was a card number after all, is gone.
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version not in (0, VERSION):
            self._db.close()
            raise sqlite3.DatabaseError(f"{path.name} was written by another version of voicepipe: use another folder")
        if not version:
            self._db.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Writes everything until the context ends, or nothing of it."""
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # SQLite ends it by itself where the disk is full.
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def began(self, call: CallFacts) -> None:
        self._put(call, summary(call, self._host))

    def said(self, call_id: str, full: FullTurn) -> None:
        """Write a turn, in place of one with the same number, unless the call was deleted meanwhile."""
        self._db.execute(
            "INSERT OR REPLACE INTO said SELECT id, ?, ? FROM calls WHERE id = ?", (full.number, _encode(full), call_id)
        )

    def ended(self, call: CallFacts, end: CallEnd) -> CallRecord:
        """Write a call's final record."""
        ends = summary(call, self._host, self._said(call.id), end)
        self._put(call, ends)
        return _record(self._db, ends)

    def in_progress(self) -> list[str]:
        """Ids of calls that have not ended. When a PoP starts, they were in progress as its last run ended."""
        return [call_id for (call_id,) in self._db.execute("SELECT id FROM calls WHERE ended IS NULL")]

    def cut(self, call_id: str) -> CallRecord | None:
        """Mark a call that was in progress when its process ended; None: it was not, or its record cannot be read any
        more."""
        found = self._db.execute("SELECT facts FROM calls WHERE id = ? AND ended IS NULL", (call_id,)).fetchone()
        if found is None:
            return None
        try:
            call = _facts.decode(found[0])
            said = self._said(call.id)
        except msgspec.DecodeError:
            self._db.execute("UPDATE calls SET ended = began, reason = ? WHERE id = ?", (CUT, call_id))
            return None
        last = max([call.since, *(full.turn.at for full in said)])
        ends = summary(call, self._host, said, CallEnd(reason=CUT, at=last))
        self._put(call, ends)
        return _record(self._db, ends)

    def left(self, call: CallFacts, at: float) -> CallRecord | None:
        """The call is no longer in progress. If its end was not reported, that was a fault of ours, and its record is
        returned; else None."""
        open_ = self._db.execute("SELECT 1 FROM calls WHERE id = ? AND ended IS NULL", (call.id,)).fetchone()
        return self.ended(call, CallEnd(reason="error", at=at)) if open_ else None

    def forget(self, before: float) -> int:
        """Delete some of the calls that ended before this Unix second, and that have no deliveries left; returns how
        many."""
        gone = self._db.execute(
            "SELECT id FROM calls WHERE began < ? AND ended < ? AND id NOT IN (SELECT call FROM deliveries) LIMIT ?",
            (before, before, AT_A_TIME),
        ).fetchall()
        self._delete(gone)
        return len(gone)

    def delete(self, ids: Sequence[str], tenant: str | None) -> Deleted:
        """Delete those of these calls that have ended and are `tenant`'s (None: anybody's), also if deliveries are
        left."""
        gone, in_progress, not_permitted = list[str](), list[str](), 0
        for call_id in ids:
            for owner, goes_on in self._db.execute("SELECT tenant, ended IS NULL FROM calls WHERE id = ?", (call_id,)):
                if tenant not in (None, owner):
                    not_permitted += owner == NO_TENANT
                else:
                    (in_progress if goes_on else gone).append(call_id)
        self._delete([(call_id,) for call_id in gone])
        return Deleted(gone, in_progress, not_permitted)

    def _delete(self, ids: Sequence[tuple[str]]) -> None:
        self._db.executemany("DELETE FROM said WHERE call = ?", ids)
        self._db.executemany("DELETE FROM deliveries WHERE call = ?", ids)
        self._db.executemany("DELETE FROM calls WHERE id = ?", ids)

    def add_delivery(self, delivery: Delivery) -> None:
        """Add a delivery to the spool, in place of one with the same id."""
        self._db.execute("INSERT OR REPLACE INTO deliveries VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(delivery))

    def put_off(self, delivery: Delivery) -> None:
        """Deliver later, unless the call has been deleted meanwhile."""
        self._db.execute("UPDATE deliveries SET due = ?, tries = ?, refused = ? WHERE id = ?",
                         (delivery.due, delivery.tries, delivery.refused, delivery.id))  # fmt: skip

    def delivered(self, delivery: Delivery) -> None:
        """Remove a delivery that has succeeded. Other deliveries to the same receiver, which was out of reach, are due
        at once."""
        self.given_up(delivery)
        self._db.execute("UPDATE deliveries SET due = 0 WHERE url = ? AND due > 0 AND NOT refused", (delivery.url,))

    def given_up(self, delivery: Delivery) -> None:
        """Give these deliveries up."""
        self._db.execute("DELETE FROM deliveries WHERE id = ?", (delivery.id,))

    def _put(self, call: CallFacts, summed_up: CallSummary) -> None:
        row = (call.id, call.tenant, call.agent, call.caller, call.since, summed_up.ended, summed_up.reason,
               summed_up.output_tokens, _encode(call), _encode(summed_up))  # fmt: skip
        self._db.execute("INSERT OR REPLACE INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _said(self, call_id: str) -> list[FullTurn]:
        rows = self._db.execute("SELECT full FROM said WHERE call = ? ORDER BY number", (call_id,))
        return [_full.decode(full) for (full,) in rows]


def checkpoint(path: Path) -> bool:
    """Remove overwritten data from the write-ahead log, too. False: not yet, since the file is in use, or cannot be
    written."""
    try:
        # SQLite itself would wait for readers with its lock held, and nobody could write meanwhile.
        with closing(sqlite3.connect(path, timeout=0)) as db:
            (busy, *_) = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            return not busy
    except sqlite3.Error:
        return False


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Yields a connection for one question. Raises sqlite3.Error."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=BUSY_S)) as db:
        yield db


def listed(db: sqlite3.Connection, query: RecordQuery) -> list[CallSummary]:
    """The calls, the newest first, at most `query.limit`."""
    began, before_id = query.before or (None, None)
    conditions = (
        ("tenant = ?", query.tenant),
        ("began <= ?", began),
        ("(began < ? OR id < ?)", None if began is None else (began, before_id)),
        ("began >= ?", query.since),
        ("began < ?", query.until),
        ("agent = ?", query.agent or None),
        ("caller LIKE ? ESCAPE '\\'", f"%{_literal(query.caller)}" if query.caller else None),
        ("reason = ?", query.reason or None),
    )
    where, values = _where(*conditions)
    rows = db.execute(f"SELECT summary FROM calls {where} ORDER BY began DESC, id DESC LIMIT ?", (*values, query.limit))
    return [_summary.decode(encoded) for (encoded,) in rows]


def _where(*conditions: tuple[str, Any]) -> tuple[str, list[Any]]:
    """The WHERE clause of those conditions that have a value, and their values: one, or a tuple of several."""
    asked = [(condition, value) for condition, value in conditions if value is not None]
    where = f"WHERE {' AND '.join(condition for condition, _ in asked)}" if asked else ""
    return where, [each for _, value in asked for each in (value if isinstance(value, tuple) else (value,))]


def found(db: sqlite3.Connection, call_id: str, tenant: str | None) -> CallRecord | None:
    """The record of a call. None: there is none, it was deleted, or it is another tenant's (`tenant` None: all
    tenants')."""
    row = db.execute("SELECT summary, tenant FROM calls WHERE id = ?", (call_id,)).fetchone()
    if row is None or tenant not in (None, row[1]):
        return None
    return _record(db, _summary.decode(row[0]))


def matching(db: sqlite3.Connection, query: CallSelection) -> list[str]:
    """Ids of the calls that are to be deleted, also of those that go on."""
    where, values = _where(
        ("tenant = ?", query.tenant),
        (FROM_CALLER, (query.caller, compact(query.caller) or None) if query.caller else None),
        ("began >= ?", query.since),
        ("began < ?", query.until),
    )
    return [call_id for (call_id,) in db.execute(f"SELECT id FROM calls {where}", values)]


def permitted(db: sqlite3.Connection, ids: Sequence[str], tenant: str | None) -> list[str]:
    """Those of these calls that have ended and that `tenant` may delete."""
    asked = "SELECT 1 FROM calls WHERE id = ? AND ended IS NOT NULL AND tenant = coalesce(?, tenant)"
    return [call_id for call_id in ids if db.execute(asked, (call_id, tenant)).fetchone()]


def not_permitted(db: sqlite3.Connection, query: CallSelection) -> int:
    """Calls of no tenant from the caller whose calls a tenant deletes."""
    if not query.caller or query.tenant in (None, NO_TENANT):
        return 0
    return len(matching(db, replace(query, tenant=NO_TENANT)))


def due(db: sqlite3.Connection, now: float, of_each: int) -> list[Delivery]:
    """Deliveries that are due at this Unix second, so many for each receiver at most."""
    rows = db.execute(
        "SELECT id, call, url, secret_env, since, due, tries, refused FROM"
        " (SELECT *, row_number() OVER (PARTITION BY url ORDER BY due) AS place FROM deliveries WHERE due <= ?)"
        " WHERE place <= ? ORDER BY due",
        (now, of_each),
    )
    return [Delivery(*row) for row in rows]  # `refused` as 0 or 1: SQLite has no booleans.


class Spool(NamedTuple):
    """The deliveries that are left."""

    waiting: int
    next_due: float | None
    """Unix seconds."""
    since: float | None
    """Unix seconds: when the call ended whose delivery waits longest."""


def spool(db: sqlite3.Connection) -> Spool:
    """How many deliveries are left, and since when."""
    return Spool(*db.execute("SELECT count(*), min(due), min(since) FROM deliveries").fetchone())


def _record(db: sqlite3.Connection, summed_up: CallSummary) -> CallRecord:
    rows: Sequence[tuple[bytes]] = db.execute(
        "SELECT full FROM said WHERE call = ? ORDER BY number", (summed_up.id,)
    ).fetchall()
    return CallRecord(**asdict(summed_up), said=tuple(msgspec.Raw(full) for (full,) in rows))


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
