"""Requests in, answers out; and how long those are remembered that nobody acknowledges."""

import asyncio
import gc
import secrets
import tracemalloc
from typing import Any

import pytest

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.sip.peer import phone, sip
from voicepipe.ingress.sip import transactions
from voicepipe.ingress.sip.datagram_check import DatagramCheck, check_datagram
from voicepipe.ingress.sip.stack import IncomingRequest, Stack

PEER = "127.0.0.1", 9


def opened(on_request: Any) -> Stack:
    stack = Stack("127.0.0.1", 0, "", on_request, lambda seen, source: None)
    stack.open()
    stack.resume()
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


async def test_an_answer_goes_to_who_asked_whatever_their_via_says() -> None:
    pop = FakePop(sip())
    async with serving(pop), phone(pop) as ann, phone(pop) as victim:
        for via in (
            f"127.0.0.1:{ann.port};received=127.0.0.3",
            f"127.0.0.1:{victim.port};received=127.0.0.1;rport",
            f"elsewhere.invalid:{ann.port}",
            "127.0.0.1:99999",
        ):
            headers = [
                ("Via", f"SIP/2.0/UDP {via};branch=z9hG4bK{secrets.token_hex(6)}"), ("From", "<sip:a@b>;tag=1"),
                ("To", "<sip:front@127.0.0.1>"), ("Call-ID", secrets.token_hex(6)), ("CSeq", "1 OPTIONS"),
            ]  # fmt: skip
            ann.raw("OPTIONS sip:front@127.0.0.1 SIP/2.0", headers)
        await ann.final("OPTIONS")
        await asyncio.sleep(0.1)
        assert len(ann.said) == 3 and not victim.said
