"""A telephone that is redirected by a directory, and asked for its password by both."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from latency_probes.failed_call import CallFailed
from latency_probes.sip import Address, Dialled, Subscriber, best_contact

CHALLENGE = 'WWW-Authenticate: Digest realm="voicepipe", nonce="n", qop="auth", algorithm=MD5'
SDP = "v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio 9 RTP/AVP 0\r\n"


class SipServer(asyncio.DatagramProtocol):
    """Answers the n-th request of a kind with the n-th of `answers`, again and again with the last; keeps all."""

    def __init__(self, *answers: str) -> None:
        self._answers = answers
        self.said: list[str] = []
        self.port = 0

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: Address) -> None:
        text = data.decode()
        self.said.append(text)
        kept = [line for line in text.split("\r\n") if line.startswith(("Via:", "From:", "To:", "Call-ID:", "CSeq:"))]
        if text.startswith("BYE"):
            self._transport.sendto("\r\n".join(["SIP/2.0 200 OK", *kept, "", ""]).encode(), addr)
        if text.startswith("INVITE"):
            count = sum(one.startswith("INVITE") for one in self.said)
            start, *more = self._answers[min(count, len(self._answers)) - 1].split("\n")
            body = SDP if " 200 " in start else ""
            head = [f"SIP/2.0{start[7:]}", *kept, *more, f"Content-Length: {len(body)}", "", body]
            self._transport.sendto("\r\n".join(head).encode(), addr)

    def requests(self) -> list[str]:
        """Methods with their numbers."""
        return [next(line[6:] for line in one.split("\r\n") if line.startswith("CSeq:")) for one in self.said]


@asynccontextmanager
async def answering(*answers: str) -> AsyncIterator[SipServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: SipServer(*answers), ("127.0.0.1", 0))
    try:
        yield server
    finally:
        transport.close()


def accepted(port: int) -> str:
    return f"SIP/2.0 200 OK\nContact: <sip:voicepipe@127.0.0.1:{port}>\nX-Voicepipe-Call-Id: rtc_fra1.0c5e77aa91f2"


def dialled(server: SipServer, subscriber: Subscriber) -> Dialled:
    return Dialled(("localhost", server.port), "front-desk", lambda data, arrived: None, subscriber)


async def test_it_calls_where_the_directory_says_with_its_password_at_both() -> None:
    async with answering(f"SIP/2.0 401 Unauthorized\n{CHALLENGE}", "SIP/2.0 200 OK") as pop:
        pop._answers = (pop._answers[0], accepted(pop.port))
        moved = (f"SIP/2.0 302 Moved Temporarily\nContact: <sip:front-desk@127.0.0.1:{pop.port};vp-call=c>;q=1.0\n"
                 "Contact: <sip:front-desk@127.0.0.1:9>;q=0.9")  # fmt: skip
        async with answering(f"SIP/2.0 401 Unauthorized\n{CHALLENGE}", moved) as directory:
            call = dialled(directory, Subscriber(user="desk", password="secret"))
            await call.dial()
            assert call.call_id == "rtc_fra1.0c5e77aa91f2"
            await call.hang_up()
    assert directory.requests() == ["1 INVITE", "1 ACK", "2 INVITE", "2 ACK"]
    assert pop.requests() == ["3 INVITE", "3 ACK", "4 INVITE", "4 ACK", "5 BYE"]
    assert pop.said[2].startswith(f"INVITE sip:front-desk@127.0.0.1:{pop.port};vp-call=c SIP/2.0")
    assert "Authorization: Digest" in pop.said[2] and "Authorization" not in pop.said[0]


async def test_a_wrong_password_is_not_tried_for_ever() -> None:
    async with answering(f"SIP/2.0 401 Unauthorized\n{CHALLENGE}") as pop:
        call = dialled(pop, Subscriber(user="desk", password="wrong"))
        with pytest.raises(CallFailed, match="401 Unauthorized") as caught:
            await call.dial()
        await call.hang_up()
    assert (caught.value.step, caught.value.why) == ("refused", "sip_401")
    assert pop.requests() == ["1 INVITE", "1 ACK", "2 INVITE", "2 ACK"]


async def test_a_directory_that_sends_in_circles_is_left() -> None:
    async with answering("x") as directory:
        directory._answers = (f"SIP/2.0 302 Moved Temporarily\nContact: <sip:x@127.0.0.1:{directory.port}>",)
        with pytest.raises(CallFailed, match="302 Moved"):
            await dialled(directory, Subscriber()).dial()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("Contact: <sip:a@192.0.2.7:5070;x=y>;q=1", ("sip:a@192.0.2.7:5070;x=y", ("192.0.2.7", 5070))),
        ("contact:<sip:192.0.2.7>", ("sip:192.0.2.7", ("192.0.2.7", 5060))),
        ("Contact: <tel:+4930123>", None),
    ],
)
def test_a_contact(line: str, found: object) -> None:
    assert best_contact(["Via: x", line]) == found
