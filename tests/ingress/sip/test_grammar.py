"""Whatever the grammars allow is read without an error, by every reader that has to do with it."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.ingress.fake_pop import FakePop
from tests.ingress.sip.grammar import SDP, Grammar, Made
from tests.ingress.sip.peer import Said, sip
from tests.support.virtual_time import run as in_virtual_time
from voicepipe.base.errors import PopFull
from voicepipe.ingress.calls import Calls
from voicepipe.ingress.sip.addresses import Address
from voicepipe.ingress.sip.datagram_check import check_datagram
from voicepipe.ingress.sip.dialog import negotiated
from voicepipe.ingress.sip.kept_messages import KeptRequest
from voicepipe.ingress.sip.message import SipMessage
from voicepipe.ingress.sip.sip_server import SipServer
from voicepipe.ingress.sip.transactions import Host, Transactions, prepare

requests = st.integers(0, 2**64).map(lambda seed: Grammar(Random(seed)).request())
PEER = "192.0.2.9", 5070


@settings(max_examples=400, deadline=None)
@given(requests)
def test_every_valid_request_is_read(made: Made) -> None:
    seen = check_datagram(made.data)
    assert seen and not seen.excessive
    message = SipMessage(raw := KeptRequest(seen.text))
    assert (raw.method, message.call_id, message.cseq[1]) == (made.method, made.call_id, made.method)
    assert (seen.from_tag, seen.to_tag, seen.branch) == (made.from_tag, "", made.branch)
    assert (message.from_tag, message.to_tag, raw.getHFBody("via").getBranch()) == (made.from_tag, "", made.branch)
    assert Address.of(message.header("from")).user == made.caller
    assert Address.of_uri(str(raw.ruri)).user == made.called
    for name in ("to", "contact", "record-route", "route", "p-asserted-identity"):
        for value in message.headers(name):
            address = Address.of(value)
            assert address.host or address.scheme not in ("sip", "sips")
    assert message.sdp == (SDP if made.sdp else None)
    negotiated(message)
    message.listed("supported")
    message.extra()


@settings(max_examples=150, deadline=None)
@given(requests)
def test_no_valid_request_is_refused_for_how_it_is_written(made: Made) -> None:
    """At a PoP that has no place: calls are refused for that alone."""
    answers: list[bytes] = []
    in_virtual_time(_ask(made.data, answers))
    codes = {Said.parse(answer).code for answer in answers}
    assert codes <= ({503} if made.method == "INVITE" else {200}) and codes


async def _ask(data: bytes, answers: list[bytes]) -> None:
    prepare()
    pop = FakePop(sip(port=5060))
    if data.startswith(b"INVITE"):
        pop.refuse = PopFull("All slots are taken.")
    edge = SipServer(pop, Calls())
    stack = edge._stack
    stack._socket.address = "127.0.0.1", 5060
    kept = stack._socket

    def send(sent: str | bytes, address: Host) -> None:
        answers.append(sent if isinstance(sent, bytes) else sent.encode())

    kept.send = send  # type: ignore[assignment, method-assign]
    kept._send_to_name = send
    stack._transactions = Transactions(kept, stack._requested)
    try:
        stack._received(data, PEER)
        await asyncio.sleep(70)
    finally:
        stack.close()
