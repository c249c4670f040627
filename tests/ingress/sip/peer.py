"""A telephone made of bare datagrams: it can do right and wrong, and keeps all that it gets."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import msgspec
import numpy as np

from tests.ingress.fake_pop import FakePop, serving, tone
from tests.support.ports import free_port
from voicepipe.audio import Pcm, g711
from voicepipe.config import Config
from voicepipe.config.phone_config import SipConfig
from voicepipe.ingress.sip.unacknowledged import T1_S
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp

SECONDS = 60.0
"""What is waited for comes within this, on slow machines too."""

RTP = 0x80
"""How each of its packets begins."""


@dataclass(frozen=True)
class Said:
    """A message that came."""

    start: str
    headers: list[tuple[str, str]]
    body: str

    @classmethod
    def parse(cls, data: bytes) -> "Said":
        head, _, body = data.decode().partition("\r\n\r\n")
        start, *lines = head.split("\r\n")
        return cls(
            start, [(name.lower(), value.strip()) for name, _, value in (ln.partition(":") for ln in lines)], body
        )

    def header(self, name: str) -> str:
        return next((value for known, value in self.headers if known == name), "")

    def all(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known == name]

    @property
    def code(self) -> int:
        """0: it is a request."""
        return int(self.start.split()[1]) if self.start.startswith("SIP/2.0") else 0

    @property
    def method(self) -> str:
        """Of the request, or of the one that is answered."""
        return self.header("cseq").split()[1]


class _Socket(asyncio.DatagramProtocol):
    def __init__(self, take: Callable[[bytes, Any], None]) -> None:
        self._take = take

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._take(data, addr)


async def opened(
    take: Callable[[bytes, Any], None], host: str = "127.0.0.1", port: int = 0
) -> tuple[asyncio.DatagramTransport, int]:
    """A socket on loopback, and its port."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Socket(take), (host, port))
    return transport, transport.get_extra_info("sockname")[1]


@dataclass
class Phone:
    """One call of it; a context manager. `answers`: whether it says 200 to what it is asked."""

    server: tuple[str, int]
    said: list[Said] = field(default_factory=list)
    packets: list[tuple[bytes, Any]] = field(default_factory=list)
    call_id: str = field(default_factory=lambda: secrets.token_hex(6))
    tag: str = field(default_factory=lambda: secrets.token_hex(4))
    to_tag: str = ""
    seq: int = 0
    answers: bool = True
    routes: list[str] = field(default_factory=list)
    """Of requests within the call."""
    target: str = ""
    contact: str = ""
    """What it says of where it is; empty: the truth."""
    caller: str = ""
    called: str = ""
    """What its From and To say, without tags; empty: two addresses of this machine."""
    transport: str = "UDP"
    host: str = "127.0.0.1"

    async def open(self) -> None:
        self.sip, self.port = await opened(self._sip, self.host)
        self.rtp, self.rtp_port = await opened(lambda data, source: self.packets.append((data, source)), self.host)
        self.ssrc, self.sent = secrets.randbits(32), 0

    def close(self) -> None:
        self.sip.close()
        self.rtp.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def _sip(self, data: bytes, source: Any) -> None:
        if data[0] == RTP:
            return  # It is for whoever had this port before.
        message = Said.parse(data)
        self.said.append(message)
        if not message.code and self.answers:
            self.answer(message)

    def answer(self, asked: Said, status: str = "200 OK") -> None:
        copied = [(n, v) for n, v in asked.headers if n in ("via", "from", "to", "call-id", "cseq")]
        self.raw(f"SIP/2.0 {status}", copied)

    def raw(self, start: str, headers: Sequence[tuple[str, str]], body: str = "") -> bytes:
        lines = [
            start,
            *(f"{name}: {value}" for name, value in headers),
            f"Content-Length: {len(body.encode())}",
            "",
            body,
        ]
        data = "\r\n".join(lines).encode()
        self.send(data)
        return data

    def send(self, data: bytes) -> None:
        """As it is."""
        self.sip.sendto(data, self.server)

    def request(
        self, method: str, headers: Sequence[tuple[str, str]] = (), body: str = "", *, seq: int | None = None,
        branch: str = "", uri: str = "", kind: str = "application/sdp", to_tag: str | None = None,
    ) -> bytes:  # fmt: skip
        """Send a request of this call; what was sent."""
        if seq is None and method != "ACK":
            self.seq += 1
        tag = self.to_tag if to_tag is None else to_tag
        self.branch = branch or f"z9hG4bK{secrets.token_hex(6)}"
        ours = f"{self.host}:{self.port}"
        everything = [
            ("Via", f"SIP/2.0/{self.transport} {ours};branch={self.branch};rport"),
            *(("Route", route) for route in self.routes),
            ("From", (self.caller or f'"Ann" <sip:ann@{ours}>') + (f";tag={self.tag}" if self.tag else "")),
            ("To", f"{self.called or '<sip:front@127.0.0.1>'}{f';tag={tag}' if tag else ''}"),
            ("Call-ID", self.call_id),
            ("CSeq", f"{seq or self.seq} {method}"),
            ("Max-Forwards", "70"),
            ("Contact", self.contact or f"<sip:ann@{ours}{';transport=tls' if self.transport == 'TLS' else ''}>"),
            *([("Content-Type", kind)] if body else []),
            *headers,
        ]
        return self.raw(f"{method} {uri or self.target or 'sip:front@127.0.0.1'} SIP/2.0", everything, body)

    def sdp(
        self, *, formats: str = "0 101", direction: str = "sendrecv", port: int | None = None, more: str = ""
    ) -> str:
        return (
            f"v=0\r\no=ann 1 {self.seq + 1} IN IP4 {self.host}\r\ns=-\r\nc=IN IP4 {self.host}\r\nt=0 0\r\n"
            f"m=audio {port or self.rtp_port} RTP/AVP {formats}\r\n"
            f"a=rtpmap:101 telephone-event/8000\r\na={direction}\r\n{more}"
        )

    def invite(self, body: str | None = None, headers: Sequence[tuple[str, str]] = (), **more: Any) -> bytes:
        """Send an INVITE, by default with an offer."""
        return self.request("INVITE", headers, self.sdp() if body is None else body, **more)

    async def got(self, method: str, code: int = 0, after: int = 0) -> Said:
        """The first message of this kind from the `after`-th on."""
        async with asyncio.timeout(SECONDS):
            while True:
                for message in self.said[after:]:
                    if (message.method, message.code) == (method, code):
                        return message
                await asyncio.sleep(0.005)

    async def final(self, method: str, after: int = 0) -> Said:
        """The first final answer to such a request."""
        async with asyncio.timeout(SECONDS):
            while True:
                for message in self.said[after:]:
                    if message.method == method and message.code >= 200:
                        return message
                await asyncio.sleep(0.005)

    def ack(self, body: str = "") -> bytes:
        return self.request("ACK", (), body, seq=self.seq)

    async def dial(self, body: str | None = None, headers: Sequence[tuple[str, str]] = (), **more: Any) -> Said:
        """INVITE, 200, ACK; the 200. Any other final answer is acknowledged and given, too."""
        after = len(self.said)
        answer = await self.insisting(self.invite(body, headers, **more), "INVITE", after)
        self.took(answer)
        if answer.code == 200:
            self.ack()
        else:
            self.request("ACK", seq=self.seq, branch=self.branch)
        return answer

    def took(self, answer: Said) -> None:
        """The dialog that an answer makes."""
        self.to_tag = answer.header("to").partition("tag=")[2]
        if contact := answer.header("contact"):
            self.target = contact.strip("<>")
        self.routes = answer.all("record-route")[::-1] if answer.code == 200 else []

    async def hang_up(self) -> Said:
        after = len(self.said)
        return await self.insisting(self.request("BYE"), "BYE", after)

    async def insisting(self, sent: bytes, method: str, after: int) -> Said:
        """The final answer to what was sent, which goes out again until something answers (RFC 3261, 17.1)."""
        async with asyncio.timeout(SECONDS):
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(T1_S):
                        return await self.final(method, after)
                if not any(message.method == method and message.code for message in self.said[after:]):
                    self.send(sent)

    # --- sound

    def media_of(self, answer: Said) -> None:
        """Talk to where this answer says."""
        line = next(line for line in answer.body.split("\r\n") if line.startswith("m=audio"))
        self.media = ("127.0.0.1", int(line.split()[1]))

    def say(self, pcm: Pcm | None = None, payload_type: int = 0, payload: bytes = b"", *, same: bool = False) -> None:
        """20 ms of sound in PCMU, or a payload as it is. `same`: at the timestamp of the one before."""
        sent = payload or g711.encode("pcmu", tone(160, 8000) if pcm is None else pcm)
        if not same:
            self.stamp = self.sent * 160
        packet = RtpPacket(payload_type, self.sent & 0xFFFF, self.stamp, self.ssrc, sent)
        self.sent += 1
        self.rtp.sendto(bytes(packet), self.media)

    async def talk(self, loud: int, quiet: int) -> None:
        """So many packets of a tone, then of silence."""
        for n in range(loud + quiet):
            self.say(None if n < loud else np.zeros(160, np.int16))
            await asyncio.sleep(0.02)

    def heard(self) -> list[RtpPacket]:
        """The RTP that came."""
        found = []
        for data, _ in self.packets:
            try:
                if not is_rtcp(data):
                    found.append(RtpPacket.parse(data))
            except PacketError:
                continue
        return found

    def loudest(self) -> int:
        return max((int(np.abs(g711.decode("pcmu", one.payload)).max(initial=0)) for one in self.heard()), default=0)


def sip(config: Config | None = None, **changes: Any) -> Config:
    """A configuration with SIP on a free port of loopback."""
    return msgspec.structs.replace(config or Config(), sip=SipConfig(**{"port": free_port(), **changes}))


def phone(pop: FakePop, host: str = "127.0.0.1") -> Phone:
    """A telephone that knows a PoP."""
    return Phone(("127.0.0.1", pop.config.sip.port), host=host)


@asynccontextmanager
async def calling(pop: FakePop) -> AsyncIterator[Phone]:
    """A PoP, and a telephone for it."""
    async with serving(pop), phone(pop) as made:
        yield made
