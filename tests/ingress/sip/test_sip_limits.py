"""Which messages are read, and on whose account."""

import pytest

from tests.ingress.sip.peer import sip
from tests.ingress.sip.test_sip_access import ELSEWHERE, TRUNK
from voicepipe.ingress.sip.datagram_check import DatagramCheck, check_datagram
from voicepipe.ingress.sip.sip_access import SipAccess
from voicepipe.ingress.sip.sip_limits import ANSWERS, CALLS_OWN, SenderKind, SipLimits


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


TRUSTING, STRANGERS = SipAccess(sip(trunks=(TRUNK,)).sip), SipAccess(sip(trunks=(ELSEWHERE,)).sip)


def asks(method: str = "OPTIONS", more: str = "") -> DatagramCheck:
    seen = check_datagram(
        f"{method} sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bKx\r\nFrom: <sip:a@b>;tag=1\r\n"
        f"To: <sip:a@b>\r\nCall-ID: one\r\nCSeq: 1 {method}\r\n{more}\r\n".encode()
    )
    assert seen
    return seen


def keeper(gate: SipAccess) -> SipLimits:
    return SipLimits(gate, lambda seen: False)


def test_who_is_trusted_is_read_and_strangers_are_told() -> None:
    judged = keeper(TRUSTING).judge(asks(), "127.0.0.1", 0.0)
    assert (judged.kind, judged.read, judged.refusal) == (SenderKind.TRUSTED, True, None)
    judged = keeper(STRANGERS).judge(asks(), "127.0.0.1", 0.0)
    assert (judged.kind, judged.read) == (SenderKind.STRANGER, False) and judged.refusal


@pytest.mark.parametrize("method", ["ACK", ""])
def test_a_strangers_answers_to_nothing_are_dropped(method: str) -> None:
    judged = keeper(STRANGERS).judge(asks()._replace(method=method), "127.0.0.1", 0.0)
    assert not judged.read and judged.refusal is None


def test_what_is_excessive_is_told_so_even_to_a_trunk() -> None:
    judged = keeper(TRUSTING).judge(asks(more=f"Subject: {',' * 200}\r\n"), "127.0.0.1", 0.0)
    assert not judged.read and judged.refusal and judged.refusal.code == 513


def test_one_sender_has_so_many_messages_and_another_its_own() -> None:
    keeps, each = keeper(TRUSTING), SenderKind.TRUSTED.value[0]
    read = sum(keeps.judge(asks(), "127.0.0.1", 0.0).read for _ in range(2 * int(each.burst)))
    assert read == each.burst
    assert keeps.judge(asks(), "127.0.0.2", 0.0).read
    assert "127.0.0.1" in keeps.summary(0.0) and keeps.summary(0.0) == "", "told once a minute"
    assert keeps.judge(asks(), "127.0.0.1", 1.0).read, "it comes back"


def test_all_strangers_have_one_time_together_and_take_none_of_a_trunks() -> None:
    keeps = keeper(STRANGERS)
    judged = keeps.judge(asks(), "127.0.0.1", 0.0)
    keeps.took(judged, 1000)
    assert keeps.judge(asks(), "127.0.0.2", 0.0).refusal is None, "dropped, and not even told"
    assert keeps.judge(asks(), "192.0.2.1", 0.0).read
    assert keeps.judge(asks(), "127.0.0.2", 20.0).refusal


def test_what_is_dropped_at_once_is_paid_for_by_nobody() -> None:
    keeps = keeper(STRANGERS)
    keeps.took(keeps.judge(asks("ACK"), "127.0.0.1", 0.0), 60_000)
    assert keeps.judge(asks(), "127.0.0.2", 0.0).refusal


def test_no_address_is_told_more_than_it_may_be_by_who_forges_it() -> None:
    keeps, each = keeper(STRANGERS), ANSWERS[0]
    told = sum(keeps.judge(asks(), "127.0.0.1", 0.0).refusal is not None for _ in range(1000))
    assert 0 < told <= each.burst
