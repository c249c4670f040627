"""What one sender's messages cost everybody: the event loop's time, memory, and places. Times are the thread's own."""

import asyncio
import gc
import socket
import time
import tracemalloc
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import Phone, calling, phone, sip
from tests.ingress.sip.test_floods import CARRIER, OTHER
from tests.rtp.test_sdp import formats
from voicepipe.ingress.sip import transactions
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.datagram_check import DatagramCheck, check_datagram
from voicepipe.ingress.sip.header_text import SipError, tagged
from voicepipe.ingress.sip.sip_access import SipAccess
from voicepipe.ingress.sip.sip_limits import CALLS_OWN, SenderKind, SipLimits
from voicepipe.ingress.sip.stack import IncomingRequest, Stack
from voicepipe.ingress.sip.transactions import READING, UdpSocket

RELAY = "application/dtmf-relay"
PEER = "127.0.0.1", 9


@pytest.mark.parametrize("body", ["\n" * 7600 + "x", "\r\n" * 3800 + "x", " " * 7600 + "x", "1" + " " * 7600 + "x"])
async def test_an_info_without_a_key_takes_no_time(body: str) -> None:
    async with calling(FakePop(sip())) as ann:
        await ann.dial()
        before = time.thread_time()
        ann.request("INFO", (), body, kind=RELAY)
        assert (await ann.final("INFO")).code == 400
        ann.request("OPTIONS")
        await ann.final("OPTIONS")
        assert time.thread_time() - before < 0.3, "it was 0.75 s"
        await ann.hang_up()


@pytest.mark.parametrize(
    "blanks", [";tag" + " " * 7000 + "x", ";tag=" + " " * 7000 + "x", ";" + " \t" * 3500 + "tag =x"]
)
def test_a_tag_with_blanks_takes_no_time(blanks: str) -> None:
    before = time.thread_time()
    tagged(f"<sip:1@h>{blanks}", "t")
    assert time.thread_time() - before < 0.05, "it was 0.4 s"


@pytest.mark.parametrize(
    "text",
    ['"' * 8000, "<" * 8000, '"<' * 4000, '"<>' * 2600, "<>" * 4000, "sip:" + "@" * 8000, "sip:" + "a@;" * 2600,
     "sip:" + " " * 7000 + "@h@", 'a"' + "<a" * 4000 + ">", "sip:" + "\u00fc " * 3500 + "@h"],
)  # fmt: skip
def test_no_address_takes_long(text: str) -> None:
    before = time.thread_time()
    with suppress(SipError):
        Address.of(text)
    assert time.thread_time() - before < 0.1


async def test_an_offer_with_more_formats_than_there_are_payload_types_is_refused_in_a_sentence() -> None:
    async with calling(FakePop(sip())) as ann:
        refused = await ann.dial(ann.sdp(formats=formats(129)))
        assert refused.code == 488 and "129 formats; at most 128 are read" in refused.header("warning")
        ann.to_tag = ""
        assert (await ann.dial(ann.sdp(formats=formats(128)))).code == 200
        assert (await ann.hang_up()).code == 200


# --- who cannot be hung up

UNREACHABLE = [
    ("Contact", "<sip:a@127.0.0.1:5070;x=\u00a0y>"),
    ("Contact", "<sip:a@h\u00a0b>"),
    ("Contact", '"=lr" <sip::@:;=tag=x>;tag=1.2.3.4'),
    ("Contact", "<sip:a@127.0.0.1\u2028>"),
    ("Record-Route", "<sip:127.0.0.1;x=\u00a0y>"),
    ("Record-Route", "<sip:p@q;\u00a0lr>"),
]


def say_where(odd: Phone, name: str, value: str) -> list[tuple[str, str]]:
    odd.contact = value if name == "Contact" else ""
    return [] if name == "Contact" else [(name, value)]


@pytest.mark.parametrize(("name", "value"), UNREACHABLE)
async def test_who_cannot_be_hung_up_has_no_call(name: str, value: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as odd:
        assert (await odd.dial(headers=say_where(odd, name, value))).code == 400
        assert not pop.calls


@pytest.mark.parametrize(("name", "value"), [one for one in UNREACHABLE if one[0] == "Contact"])
async def test_nor_has_who_cannot_be_after_a_change(name: str, value: str) -> None:
    pop = FakePop(sip())
    async with calling(pop) as odd:
        assert (await odd.dial()).code == 200
        odd.contact = value
        assert (await odd.dial()).code == 400
        odd.contact = ""
        assert (await odd.hang_up()).code == 200


@pytest.mark.parametrize(
    "contact",
    [
        '"J\u00fcrgen" <sip:ann@127.0.0.1:5070>',
        "<sip:j\u00fcrgen@127.0.0.1:5070>",
        '<sip:a%20b@127.0.0.1;transport=udp;x-y=%41~!*\'()>;+sip.instance="<urn:uuid:1>"',
        "<sip:ann@[2001:db8::1]:5070;ob>",
    ],
)
async def test_honest_contacts_are_taken(contact: str) -> None:
    assert Address.of(contact).uri.isascii()
    async with calling(FakePop(sip())) as ann:
        ann.contact = contact
        assert (await ann.dial()).code == 200
        await ann.hang_up()


async def test_a_call_that_cannot_say_goodbye_gives_way_all_the_same(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pop = FakePop(sip(trunks=(CARRIER, OTHER)))
    most = pop.config.pop.slots // 2

    def fails(*_: Any, **__: Any) -> None:
        raise ValueError("no request")

    async with serving(pop), phone(pop, "127.0.0.9") as eve, phone(pop, "127.0.0.8") as ann:
        eve.answers = False
        answers = []
        for number in range(most):
            eve.call_id, eve.to_tag = f"eve{number}", ""
            eve.invite()
            answers.append(await eve.final("INVITE", len(eve.said)))
        with monkeypatch.context() as patched:
            patched.setattr("voicepipe.ingress.sip.dialog.Dialog.send", fails)
            assert (await ann.dial()).code == 200
        assert "its BYE cannot be sent" in caplog.text
        await ann.hang_up()
        for answer in answers:  # Else we would wait for their ACKs.
            eve.call_id = answer.header("call-id")
            eve.took(answer)
            await eve.hang_up()


# --- time


async def test_after_each_datagram_that_is_no_junk_there_is_a_look_at_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And what it took is owed in full, also if it ends in an exception."""
    worked_s, read = 0.0, 0

    def works(data: bytes, source: tuple[str, int]) -> bool:
        nonlocal worked_s, read
        worked_s, read = worked_s + 3.0, read + 1
        if data == b"fails":
            raise ValueError("on purpose")
        return True

    # As long on the wall's clock as on the thread's.
    clock = SimpleNamespace(thread_time=lambda: worked_s, monotonic=lambda: 1000.0 + worked_s)
    monkeypatch.setattr(transactions, "time", clock)
    for data in (b"x", b"fails"):
        ours = UdpSocket(works, lambda data, address: None)
        ours.open(("127.0.0.1", 0))
        worked_s, read = 0.0, 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as theirs:
            for _ in range(4):
                theirs.sendto(data, ours.address)
            before = asyncio.get_running_loop().time()
            try:
                ours._readable()
            except ValueError:
                assert data == b"fails"
            assert read == 1
            assert ours._resume and 2.5 < ours._resume.when() - before < 3.5, "it was 20 ms"
        ours.close()
    assert READING.per_s == 500


def within_a_call() -> DatagramCheck:
    seen = check_datagram(
        b"INFO sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\n"
        b"To: <sip:a@b>;tag=2\r\nCall-ID: one\r\nCSeq: 1 INFO\r\n\r\n"
    )
    assert seen
    return seen


def test_a_call_has_so_much_of_the_time_and_no_more() -> None:
    keeper, seen = SipLimits(SipAccess(sip().sip), lambda seen: True), within_a_call()
    other, taken_ms = seen._replace(headers={**seen.headers, "Call-ID": ["other"]}), 0.0
    for number in range(1000):
        now = number / 10
        judged = keeper.judge(seen, "127.0.0.1", now)
        assert judged.kind is SenderKind.CALL
        if judged.read:
            taken_ms += 20
            keeper.took(judged, 20)
    assert taken_ms <= CALLS_OWN.burst + 100 * CALLS_OWN.per_s + 20, "it was 200 ms a second"
    assert keeper.judge(other, "127.0.0.1", now).read, "that is its own affair"


def test_a_call_that_took_very_long_is_heard_again_before_its_goodbye_is_given_up() -> None:
    keeper, seen = SipLimits(SipAccess(sip().sip), lambda seen: True), within_a_call()
    keeper.took(keeper.judge(seen, "127.0.0.1", 0.0), 60_000)
    assert not keeper.judge(seen, "127.0.0.1", 15.0).read
    assert keeper.judge(seen, "127.0.0.1", 21.0).read


# --- memory


def opened(on_request: Any) -> Stack:
    stack = Stack("127.0.0.1", 0, "", on_request, lambda seen, source: None)
    stack.open()
    return stack


def request(method: str, number: int, more: str = "") -> DatagramCheck:
    seen = check_datagram(
        f"{method} sip:c@d SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:9;branch=z9hG4bK{number}{more}\r\n"
        f"From: <sip:a@b>;tag=x{number}\r\nTo: <sip:c@d>\r\nCall-ID: abc{number}\r\nCSeq: 5 {method}\r\n"
        "Contact: <sip:a@b>\r\nContent-Length: 0\r\n\r\n".encode()
    )
    assert seen
    return seen


@pytest.mark.parametrize("padding", [";rport;x=" + "y" * 7500, ";rport"])
async def test_answers_that_are_remembered_take_little(padding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of the bound, since memory is counted slowly."""
    monkeypatch.setattr(transactions, "CACHED_BYTES", transactions.CACHED_BYTES // 10)
    stack = opened(lambda asked: asked.respond(200, "OK"))
    try:
        stack.read(request("OPTIONS", -1, padding), PEER)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for number in range(1000):
            stack.read(request("OPTIONS", number, padding), PEER)
        gc.collect()
        took = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
        stack.close()
    assert took < 1_000_000, "of large ones it was 8.7 MB"


async def test_a_message_that_comes_again_is_answered_from_memory() -> None:
    asked = list[IncomingRequest]()

    def answer(one: IncomingRequest) -> None:
        asked.append(one)
        one.respond(200, "OK")

    stack = opened(answer)
    for number in (1, 1, 2, 1):
        stack.read(request("OPTIONS", number), PEER)
    assert len(asked) == 2
    stack._transactions.rCachePurge()
    stack.read(request("OPTIONS", 1), PEER)
    assert len(asked) == 2, "a purge leaves the latest"
    stack.close()


@pytest.mark.parametrize("how", ["cancelled", "expired"])
async def test_who_gives_up_and_acknowledges_nothing_is_soon_forgotten(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transactions, "MOST_DOUBTFUL", 5)
    ended, requests = 0, list[IncomingRequest]()

    def rings(asked: IncomingRequest) -> None:
        requests.append(asked)
        asked.on_cancel = end
        asked.respond(180, "Ringing", tag="t")

    def end() -> None:
        nonlocal ended
        ended += 1

    stack = opened(rings)
    for number in range(20):
        stack.read(request("INVITE", number), PEER)
        if how == "cancelled":
            stack.read(request("CANCEL", number), PEER)
        else:
            stack._transactions.timerE(requests[-1]._transaction)
    assert ended == 20 and len(stack._transactions.tserver) == 5, "it was 20"
    stack.close()


FAR = "127.0.0.2", 9
"""Another telephone than PEER."""


@pytest.mark.parametrize("forged", ["refused", "cancelled", "of many addresses"])
async def test_who_gives_up_is_told_so_until_they_acknowledge_whatever_others_leave_unacknowledged(
    forged: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The 487 was forgotten with the 257th answer that came after it, which is within 0.6 s of a flood."""
    monkeypatch.setattr(transactions, "MOST_DOUBTFUL", 10)

    def answer(asked: IncomingRequest) -> None:
        if asked.call_id == "abc0" or forged == "cancelled":
            asked.respond(180, "Ringing", tag="t")
        else:
            asked.respond(503, "Service Unavailable")

    stack = opened(answer)
    for method in ("INVITE", "CANCEL"):
        stack.read(request(method, 0), PEER)
    for number in range(1, 50):
        source = PEER if forged == "refused" else FAR if forged == "cancelled" else (f"127.0.1.{number}", 9)
        for method in ("INVITE", "CANCEL"):
            stack.read(request(method, number), source)
    waiting = [call_id for call_id, *_ in stack._transactions.tserver]
    assert len(waiting) == 10 and waiting[0] == "abc0", "the others are forgotten, the oldest first"
    stack.close()


async def test_a_hang_up_of_who_did_not_acknowledge_is_repeated_whatever_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transactions, "MOST_DOUBTFUL", 5)
    stack = opened(lambda asked: asked.respond(503, "Service Unavailable"))
    from_to = "From: <sip:a@b>;tag=1\r\nTo: <sip:a@b>;tag=2\r\n"
    head = f"BYE sip:a@127.0.0.1:9 SIP/2.0\r\n{from_to}Call-ID: one\r\nCSeq: 1 BYE\r\n"
    stack.send(head, "127.0.0.1", PEER, lambda said: None, doubtful=True)
    for number in range(20):
        stack.read(request("INVITE", number), PEER)
    assert len(stack._transactions.tclient) == 1 and len(stack._transactions.tserver) == 4
    stack.close()
