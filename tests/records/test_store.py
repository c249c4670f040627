"""What is written of calls is found again, by who may see it."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests.records.kept_calls import HOST, LONG_AGO, call, said
from voicepipe.base.secret_source import SecretSource
from voicepipe.line import NetworkQuality
from voicepipe.observe.call_followers import CallEnd, CallFacts
from voicepipe.observe.last_turns import FullTurn
from voicepipe.operator_views import CallSelection, Deleted, RecordQuery
from voicepipe.records import store
from voicepipe.records.record import CallRecord
from voicepipe.records.store import Delivery, Store

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@pytest.fixture
def its(tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "fra1.db", HOST)
    yield made
    made.close()


@pytest.fixture
def db(its: Store, tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with store.reading(tmp_path / "fra1.db") as reads:
        yield reads


def kept(its: Store, of: CallFacts, turns: int = 1, reason: str = "caller") -> None:
    its.began(of)
    for number in range(turns):
        its.said(of.id, said(of, number))
    its.ended(of, CallEnd(reason=reason, at=of.since + 60, network=NetworkQuality(loss_percent=0.5)))


def full(record: CallRecord) -> list[FullTurn]:
    return [msgspec.json.decode(raw, type=FullTurn) for raw in record.said]


def test_a_call_in_full(its: Store, db: sqlite3.Connection) -> None:
    one = call(1)
    its.began(one)
    first, second = said(one, 0), said(one, 1, 340.0, heard="on friday")
    its.said(one.id, first)
    its.said(one.id, second)
    its.ended(one, CallEnd(reason="caller", at=one.since + 60, network=NetworkQuality(loss_percent=0.5, jitter_ms=2.0)))
    record = store.found(db, one.id, None)
    assert record
    assert full(record) == [first, second], "tools and figures with them"
    assert (record.pop, record.region, record.caller, record.called) == (
        "fra1",
        "eu-central",
        "+4930123456",
        "+49301000",
    )
    assert (record.began, record.ended, record.reason) == (one.since, one.since + 60, "caller")
    assert (record.turns, record.late, record.p50_ms) == (2, 1, 260.0)
    assert record.network == NetworkQuality(loss_percent=0.5, jitter_ms=2.0)


def test_a_call_is_there_while_it_goes_on(its: Store, db: sqlite3.Connection) -> None:
    its.began(call(1))
    its.said(call(1).id, said(call(1), 0))
    record = store.found(db, call(1).id, None)
    assert record and record.ended is None and len(record.said) == 1


def test_a_turn_that_reads_differently_takes_the_place_of_what_it_was(its: Store, db: sqlite3.Connection) -> None:
    its.began(call(1))
    turn = said(call(1), 0)
    its.said(call(1).id, turn)
    amended = replace(turn, turn=replace(turn.turn, cut_in=True))
    its.said(call(1).id, amended)
    record = store.found(db, call(1).id, None)
    assert record and full(record) == [amended]


def test_tenants_find_their_own(its: Store, db: sqlite3.Connection) -> None:
    kept(its, call(1, tenant="acme"))
    kept(its, call(2, tenant="clinic"))
    assert store.found(db, call(2).id, "acme") is None and store.found(db, call(1).id, "acme")
    assert [row.id for row in store.listed(db, RecordQuery(tenant="acme"))] == [call(1).id]
    assert len(store.listed(db, RecordQuery())) == 2


def test_lists_are_the_newest_first_and_go_on_where_one_ended(its: Store, db: sqlite3.Connection) -> None:
    for number in range(5):
        kept(its, call(number))
    first = store.listed(db, RecordQuery(limit=2))
    assert [row.id for row in first] == [call(4).id, call(3).id]
    assert [row.id for row in store.listed(db, RecordQuery(limit=2, before=(first[-1].began, first[-1].id)))] == [
        call(2).id,
        call(1).id,
    ]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        (RecordQuery(since=LONG_AGO + 2), [3, 2]),
        (RecordQuery(until=LONG_AGO + 2), [1, 0]),
        (RecordQuery(agent="night"), [3]),
        (RecordQuery(caller="999"), [2]),
        (RecordQuery(caller="%"), []),
        (RecordQuery(reason="agent"), [1]),
        (RecordQuery(reason="caller", agent="front-desk"), [2, 0]),
    ],
)
def test_lists_by_what_is_asked(its: Store, db: sqlite3.Connection, query: RecordQuery, numbers: list[int]) -> None:
    kept(its, call(0))
    kept(its, call(1), reason="agent")
    kept(its, call(2, caller="+49170999"))
    kept(its, call(3, agent="night"))
    assert [row.id for row in store.listed(db, query)] == [call(number).id for number in numbers]


def test_calls_that_were_in_progress_when_the_pop_was_killed_are_marked(its: Store, db: sqlite3.Connection) -> None:
    kept(its, call(1))
    its.began(call(2))
    its.said(call(2).id, said(call(2), 7))
    its.began(call(3))
    assert its.in_progress() == [call(2).id, call(3).id]
    for call_id in its.in_progress():
        its.cut(call_id)
    record = store.found(db, call(2).id, None)
    assert record and (record.reason, record.turns, record.ended) == ("cut", 1, call(2).since + 7)
    assert not its.in_progress()


def test_a_call_names_its_trace_also_one_that_was_cut(its: Store, db: sqlite3.Connection) -> None:
    kept(its, replace(call(1), trace_id=TRACE))
    its.began(replace(call(2), trace_id=TRACE))
    its.cut(call(2).id)
    kept(its, call(3))
    assert [row.trace for row in store.listed(db, RecordQuery())] == ["", TRACE, TRACE]


def test_what_an_older_version_wrote_of_a_call_is_read_without_a_trace(its: Store, db: sqlite3.Connection) -> None:
    kept(its, call(1))
    its.began(call(2))
    with its.transaction():
        its._db.execute(
            "UPDATE calls SET facts = json_remove(facts, '$.trace_id'), summary = json_remove(summary, '$.trace')"
        )
    its.cut(call(2).id)
    for number in (1, 2):
        record = store.found(db, call(number).id, None)
        assert record and record.trace == ""


def test_old_calls_are_forgotten_with_all_that_was_said(its: Store, db: sqlite3.Connection) -> None:
    for number in (1, 100):
        kept(its, call(number), turns=3)
    its.began(call(2))
    assert its.forget(LONG_AGO + 90) == 1
    assert [row.id for row in store.listed(db, RecordQuery())] == [call(100).id, call(2).id], "2 goes on"
    assert db.execute("SELECT count(*) FROM said").fetchone() == (3,)


def test_a_call_that_somebody_is_still_to_be_told_of_is_not_forgotten(its: Store, db: sqlite3.Connection) -> None:
    kept(its, call(1))
    delivery = Delivery(id="msg_1", call=call(1).id, url="https://example.com/", secret="HOOK", since=LONG_AGO, due=0)
    its.add_delivery(delivery)
    assert its.forget(LONG_AGO + 90) == 0
    its.delivered(delivery)
    assert its.forget(LONG_AGO + 90) == 1


def told_of(of: CallFacts) -> Delivery:
    """Somebody is to be told of this call."""
    return Delivery(id=f"msg_{of.id}", call=of.id, url="https://example.com/", secret="HOOK", since=LONG_AGO, due=0)


def test_of_a_call_that_is_deleted_nothing_is_left(its: Store, db: sqlite3.Connection) -> None:
    for number in (1, 2):
        kept(its, call(number), turns=3)
        its.add_delivery(told_of(call(number)))
    assert its.delete([call(1).id, "rtc_fra1.none"], None) == Deleted([call(1).id], [])
    assert [row.id for row in store.listed(db, RecordQuery())] == [call(2).id]
    assert db.execute("SELECT DISTINCT call FROM said").fetchall() == [(call(2).id,)]
    assert [delivery.call for delivery in store.due(db, 0, 9)] == [call(2).id]
    assert its.delete([call(1).id], None) == Deleted([], [])


def test_a_call_that_goes_on_or_is_anothers_is_not_deleted(its: Store, db: sqlite3.Connection) -> None:
    its.began(call(1))
    kept(its, call(2, tenant="clinic"))
    assert its.delete([call(1).id, call(2).id], "acme") == Deleted([], [call(1).id])
    assert its.delete([call(2).id], "acme") == Deleted([], [])
    assert len(store.listed(db, RecordQuery())) == 2


def test_a_call_of_no_tenant_is_not_deleted_for_one_who_is_told_of_it(its: Store, db: sqlite3.Connection) -> None:
    its.began(call(1, tenant="local"))
    for number, tenant in ((2, "local"), (3, "clinic"), (4, "acme")):
        kept(its, call(number, tenant=tenant))

    def others(tenant: str | None) -> int:
        return store.not_permitted(db, CallSelection(tenant=tenant, caller=call(1).caller))

    assert (others("acme"), others("clinic"), others("local"), others(None)) == (2, 2, 0, 0)
    assert store.not_permitted(db, CallSelection(tenant="acme", since=0)) == 0, "of a time only the tenant's are meant"
    assert its.delete([call(1).id, call(2).id, call(3).id], "acme") == Deleted([], [], 2)
    assert its.delete([call(1).id, call(2).id], "local") == Deleted([call(2).id], [call(1).id])


def test_who_is_to_be_told_later_of_a_deleted_call_is_not_told(its: Store, db: sqlite3.Connection) -> None:
    """It was deleted while a request was under way, which then failed."""
    kept(its, call(1))
    its.add_delivery(told_of(call(1)))
    its.delete([call(1).id], None)
    its.put_off(replace(told_of(call(1)), due=5, tries=1))
    assert store.spool(db).waiting == 0


def test_a_callers_calls_are_those_of_exactly_that_number(its: Store, db: sqlite3.Connection) -> None:
    for number, caller in enumerate(("+4930123456", "30123456", "+4930123456", "", "%")):
        kept(its, call(number, caller=caller, tenant="clinic" if number == 2 else "acme"))
    its.began(call(9))
    assert store.matching(db, CallSelection(caller="+4930123456", tenant=None)) == [call(0).id, call(2).id, call(9).id]
    assert store.matching(db, CallSelection(caller="+4930123456", tenant="acme")) == [call(0).id, call(9).id]
    assert store.matching(db, CallSelection(caller="%", tenant=None)) == [call(4).id]


@pytest.mark.parametrize("asked", ["+49-30-123456", "+49 (30) 123.456", "+4930123456"])
def test_a_number_is_the_same_however_it_is_spelled(its: Store, db: sqlite3.Connection, asked: str) -> None:
    for number, caller in enumerate(("+4930123456", "+49 30 123456", "4930123456", "+4930123456-x", "alice-b")):
        kept(its, call(number, caller=caller))
    assert store.matching(db, CallSelection(caller=asked, tenant=None)) == [call(0).id, call(1).id]
    assert store.matching(db, CallSelection(caller="aliceb", tenant=None)) == []


def test_calls_of_a_tenant_and_of_a_time(its: Store, db: sqlite3.Connection) -> None:
    for number, tenant in ((1, "acme"), (2, "clinic"), (3, "acme")):
        kept(its, replace(call(number, tenant=tenant), since=LONG_AGO + number))
    assert store.matching(db, CallSelection(tenant="acme")) == [call(1).id, call(3).id]
    assert store.matching(db, CallSelection(since=LONG_AGO + 2, until=LONG_AGO + 3)) == [call(2).id]
    assert store.matching(db, CallSelection(tenant="acme", until=LONG_AGO + 3)) == [call(1).id]


def test_words_that_are_told_of_a_deleted_call_are_not_kept(its: Store, db: sqlite3.Connection) -> None:
    kept(its, call(1))
    its.delete([call(1).id], None)
    kept_turns = db.execute("SELECT count(*) FROM said").fetchone()
    its.said(call(1).id, said(call(1), 7))
    assert db.execute("SELECT count(*) FROM said").fetchone() == kept_turns == (0,)


def test_what_is_deleted_is_gone_from_the_file_and_its_log(its: Store, tmp_path: Path) -> None:
    one = call(1)
    its.began(one)
    for number in range(50):
        its.said(one.id, said(one, number, heard="my name is Rumpelstiltskin " * 40))
    its.ended(one, CallEnd(reason="caller", at=one.since + 60))
    kept(its, call(2))

    def held() -> bool:
        files = [path.read_bytes() for path in tmp_path.iterdir()]
        return any(b"Rumpel" in file or one.id.encode() in file for file in files)

    assert held()
    its.delete([one.id], None)
    assert store.checkpoint(tmp_path / "fra1.db")
    assert not held()


def test_a_log_that_somebody_reads_is_emptied_once_they_have_read(its: Store, tmp_path: Path) -> None:
    with store.reading(tmp_path / "fra1.db") as reads:
        reads.execute("BEGIN")
        reads.execute("SELECT count(*) FROM calls").fetchone()
        kept(its, call(1))
        assert not store.checkpoint(tmp_path / "fra1.db")
    assert store.checkpoint(tmp_path / "fra1.db")


def test_a_log_that_cannot_be_emptied_is_not_empty(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("no database, but long enough to be looked at" * 100)
    assert not store.checkpoint(tmp_path / "no.db")
    assert not store.checkpoint(tmp_path / "none" / "fra1.db")


def test_a_transaction_that_fails_leaves_nothing(its: Store, db: sqlite3.Connection) -> None:
    with pytest.raises(ZeroDivisionError), its.transaction():
        its.began(call(1))
        raise ZeroDivisionError
    assert not store.listed(db, RecordQuery())


def test_only_their_owner_reads_the_file(its: Store, tmp_path: Path) -> None:
    assert (tmp_path / "fra1.db").stat().st_mode & 0o777 == 0o600


def test_each_receiver_gets_its_share_of_what_is_due(its: Store, db: sqlite3.Connection) -> None:
    for number in range(10):
        its.add_delivery(Delivery(id=f"a{number}", call="c", url="https://a.example/", secret="A", since=1, due=number))
    its.add_delivery(Delivery(id="b", call="c", url="https://b.example/", secret="B", since=2, due=9))
    its.add_delivery(Delivery(id="later", call="c", url="https://c.example/", secret="C", since=3, due=99))
    assert [delivery.id for delivery in store.due(db, 50.0, 2)] == ["a0", "a1", "b"]
    assert store.spool(db) == (12, 0, 1)


def test_who_answers_again_gets_the_rest_at_once(its: Store, db: sqlite3.Connection) -> None:
    one, two, refused = (
        Delivery(id=name, call="c", url="https://a.example/", secret="A", since=1, due=600.0, refused=name == "no")
        for name in ("one", "two", "no")
    )
    for delivery in (one, two, refused):
        its.add_delivery(delivery)
    its.delivered(one)
    assert [delivery.id for delivery in store.due(db, 0.0, 9)] == ["two"]


def test_what_an_older_version_left_to_deliver_is_signed_by_its_variable(its: Store, db: sqlite3.Connection) -> None:
    """It kept the variable's name in the column that may now have a file's path."""
    with closing(sqlite3.connect(db.execute("PRAGMA database_list").fetchone()[2])) as older:
        older.execute("INSERT INTO deliveries VALUES ('msg_1', 'c', 'https://a.example/', 'HOOK', 1.0, 2.0, 0, 0)")
        older.commit()
    [delivery] = store.due(db, 5.0, 4)
    assert SecretSource.of_text(delivery.secret) == SecretSource(variable="HOOK")
