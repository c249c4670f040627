"""A caller by telephone: SIP (RFC 3261) over UDP, PCMU by RTP both ways, and the call's events by a sideband.

As much of SIP as a call takes that nobody disturbs: INVITE, ACK, BYE; a password, and a directory's 302.
"""

import asyncio
import re
import secrets
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import md5
from typing import Any
from urllib.parse import urlsplit

from websockets.asyncio.client import ClientConnection

from latency_probes.failed_call import CallFailed
from latency_probes.mouth import Mouth, Talker
from latency_probes.realtime import DIAL_S, reset
from latency_probes.sideband import UNANNOUNCED, Ascriber, beside, listen
from latency_probes.sound import bed
from latency_probes.timeline import BLOCK, WIRE_RATE, Timeline
from latency_probes.webrtc import local_address
from voicepipe.audio import Pcm, g711
from voicepipe.audio.resample import Resampler
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp

PORT = 5060
PCMU = 0
ANYBODY = "probe"
"""Is called where no agent is named."""
AGAIN_S = 0.5
"""An INVITE that is not answered is sent again (RFC 3261, 17.1.1.2)."""

Address = tuple[str, int]
CONTACT = re.compile(r"contact:\s*<(sips?:(?:[^@>]*@)?([0-9.]+)(?::(\d+))?[^>]*)>", re.IGNORECASE)
"""The URI, the address and the port."""


@dataclass(frozen=True, slots=True)
class Subscriber:
    """As whom a call is placed."""

    address: str = ""
    """Of this machine; empty: the one on the way to the server."""
    user: str = ""
    """Empty: a call without a password."""
    password: str = ""

    def answer(self, challenge: str, uri: str) -> str:
        """The Authorization of an INVITE of `uri` to what WWW-Authenticate says (RFC 2617, MD5)."""
        said = dict(re.findall(r'(\w+)="?([^",]+)"?', challenge))
        secret = _md5(f"{self.user}:{said['realm']}:{self.password}")
        count, own, what = "00000001", secrets.token_hex(8), _md5(f"INVITE:{uri}")
        qop = "auth" if "qop" in said else ""
        middle = f"{count}:{own}:{qop}:" if qop else ""
        response = _md5(f"{secret}:{said['nonce']}:{middle}{what}")
        more = f', qop={qop}, nc={count}, cnonce="{own}"' if qop else ""
        more += f', opaque="{said["opaque"]}"' if "opaque" in said else ""
        return (f'Digest username="{self.user}", realm="{said["realm"]}", nonce="{said["nonce"]}", uri="{uri}", '
                f'response="{response}", algorithm=MD5{more}')  # fmt: skip


def _md5(text: str) -> str:
    return md5(text.encode(), usedforsecurity=False).hexdigest()


ANYONE = Subscriber()


class _Socket(asyncio.DatagramProtocol):
    def __init__(self, received: Callable[[bytes, float], None]) -> None:
        self._received = received

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._received(data, time.monotonic())


async def bound(address: str, received: Callable[[bytes, float], None]) -> tuple[asyncio.DatagramTransport, int]:
    """A UDP socket and its port; `received` gets datagrams and the monotonic second at which they came."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Socket(received), (address, 0))
    return transport, transport.get_extra_info("sockname")[1]


@dataclass(slots=True)
class Dialled:
    """One call by SIP: `dial` it, `send` sound, `hang_up`. `agent` is the number that is called."""

    server: Address
    agent: str
    on_media: Callable[[bytes, float], None]
    subscriber: Subscriber = ANYONE
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    call_id: str = ""
    """As the server names it for sidebands."""
    asked: float = 0.0
    took_ms: float = 0.0
    """From the INVITE to its 200."""
    _id: str = field(default_factory=lambda: secrets.token_hex(8))
    _refused: str = ""
    _to: str = ""
    _target: str = ""
    _branch: str = ""
    _media: Address = ("", 0)
    _sent: int = 0
    _ssrc: int = field(default_factory=lambda: secrets.randbits(32))
    _sip: Any = None
    _local: str = ""
    _port: int = 0
    _rtp: Any = None
    _sdp: str = ""
    _invite: bytes = b""
    """Is sent again until it is answered."""
    _seq: int = 1
    """Its number. It grows with each password that is asked for, and with a redirection."""
    _known_at: set[Address] = field(default_factory=set)
    """Servers that have been told the password."""
    _moved: bool = False
    """A directory has said where to call."""

    async def dial(self) -> None:
        """Raises ProbeError."""
        server = f"http://{self.server[0]}:{self.server[1]}"
        self._local = self.subscriber.address or await asyncio.to_thread(local_address, server)
        self._sip, self._port = await bound(self._local, self._message)
        self._rtp, rtp_port = await bound(self._local, self.on_media)
        self._target = f"sip:{self.agent}@{self.server[0]}:{self.server[1]}"
        self._to = f"<{self._target}>"
        self.server = await asyncio.to_thread(resolved, self.server)
        self._sdp = (f"v=0\r\no=- 1 1 IN IP4 {self._local}\r\ns=-\r\nc=IN IP4 {self._local}\r\nt=0 0\r\n"
                     f"m=audio {rtp_port} RTP/AVP {PCMU}\r\na=rtpmap:{PCMU} PCMU/8000\r\n")  # fmt: skip
        self.asked = time.monotonic()
        self._invite = self._request("INVITE", self._seq, self._sdp)
        for _ in range(int(DIAL_S / AGAIN_S)):
            self._sip.sendto(self._invite, self.server)
            try:
                await asyncio.wait_for(self.answered.wait(), AGAIN_S)
                break
            except TimeoutError:
                continue
        else:
            raise CallFailed(f"no telephone is answered at {self.server[0]}:{self.server[1]}: start the PoP with "
                             "--sip-port, and name it with --phone HOST:PORT", "connect",
                             "redirected" if self._moved else "")  # fmt: skip
        if self._refused:
            code = f"sip_{self._refused.partition(' ')[0]}"
            raise CallFailed(f"the call is refused: {self._refused}; the PoP's log says why", "refused", code)

    def _request(self, method: str, seq: int, body: str = "", branch: str = "", login: str = "") -> bytes:
        """`branch`: of an INVITE whose refusal this acknowledges. `login`: its Authorization."""
        us, self._branch = f"{self._local}:{self._port}", branch or f"z9hG4bK{secrets.token_hex(8)}"
        lines = [
            f"{method} {self._target} SIP/2.0",
            f"Via: SIP/2.0/UDP {us};branch={self._branch};rport",
            f"From: <sip:probe@{us}>;tag={self._id[:8]}",
            f"To: {self._to}",
            f"Call-ID: {self._id}",
            f"CSeq: {seq} {method}",
            f"Contact: <sip:probe@{us}>",
            "Max-Forwards: 70",
            *([f"Authorization: {login}"] if login else []),
            *(["Content-Type: application/sdp"] if body else []),
            f"Content-Length: {len(body)}",
        ]
        return "\r\n".join([*lines, "", body]).encode()

    def _message(self, data: bytes, arrived: float) -> None:
        head, _, body = data.decode(errors="replace").partition("\r\n\r\n")
        start, *lines = head.split("\r\n")
        if "SIP/2.0" not in start:  # The server's RTCP goes to the port after that of a call's sound.
            return
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        code = start.split(" ", 2)[1] if start.startswith("SIP/2.0 ") else ""
        if not code:
            self._obey(start.partition(" ")[0], lines)
        elif headers["cseq"].endswith("BYE"):
            self.over.set()
        elif code[0] == "2" and not self.answered.is_set():
            self._accepted(headers, body, arrived)
        elif code[0] == "2":
            self._sip.sendto(self._request("ACK", self._seq), self.server)
        elif code[0] > "2" and headers["cseq"].partition(" ")[0] != str(self._seq):
            return  # An INVITE that was sent twice is refused twice.
        elif code == "401" and self.subscriber.user and self.server not in self._known_at:
            self._log_in(headers)
        elif code == "302" and not self._moved and (there := best_contact(lines)):
            self._follow(headers, *there)
        elif code[0] > "2":
            self._refused = start.removeprefix("SIP/2.0 ")
            self._acknowledge(headers)
            self.answered.set()

    def _log_in(self, headers: dict[str, str]) -> None:
        """Call again, with the password."""
        self._known_at.add(self.server)
        to, login = self._to, self.subscriber.answer(headers["www-authenticate"], self._target)
        self._acknowledge(headers)
        self._invite_again(to, login)

    def _follow(self, headers: dict[str, str], uri: str, there: Address) -> None:
        """Call where a directory says (RFC 3261, 8.1.3.4)."""
        self._moved = True
        to = self._to
        self._acknowledge(headers)
        self._target, self.server = uri, there
        self._invite_again(to)

    def _invite_again(self, to: str, login: str = "") -> None:
        self._to, self._seq = to, self._seq + 1
        self._invite = self._request("INVITE", self._seq, self._sdp, login=login)
        self._sip.sendto(self._invite, self.server)

    def _acknowledge(self, headers: dict[str, str]) -> None:
        self._to = headers["to"]
        self._sip.sendto(self._request("ACK", self._seq, branch=self._branch), self.server)

    def _obey(self, method: str, lines: list[str]) -> None:
        """The server hangs up."""
        kept = [line for line in lines if line.lower().startswith(("via:", "from:", "to:", "call-id:", "cseq:"))]
        answer = "\r\n".join(["SIP/2.0 200 OK", *kept, "Content-Length: 0", "", ""])
        self._sip.sendto(answer.encode(), self.server)
        if method == "BYE":
            self.over.set()

    def _accepted(self, headers: dict[str, str], body: str, arrived: float) -> None:
        self.took_ms = 1000 * (arrived - self.asked)
        self._to, self._target = headers["to"], headers["contact"].strip("<>")
        self.call_id = headers.get("x-voicepipe-call-id", "")
        fields = [line.split() for line in body.split("\r\n")]
        host = next(words[2] for words in fields if words and words[0] == "c=IN")
        port = next(int(words[1]) for words in fields if words and words[0] == "m=audio")
        self._media = host, port
        self._sip.sendto(self._request("ACK", self._seq), self.server)
        self.answered.set()

    def send(self, payload: bytes) -> None:
        """20 ms of PCMU."""
        number, self._sent = self._sent, self._sent + 1
        packet = RtpPacket(PCMU, number & 0xFFFF, number * 160 & 0xFFFFFFFF, self._ssrc, payload)
        self._rtp.sendto(bytes(packet), self._media)

    async def hang_up(self) -> None:
        """Safe to call twice, and where the call never was."""
        if self.answered.is_set() and not self._refused and not self.over.is_set():
            self._sip.sendto(self._request("BYE", self._seq + 1), self.server)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.over.wait(), AGAIN_S)
        self.vanish()

    def vanish(self) -> None:
        """Let go of the sockets; the server is not told."""
        for transport in (self._sip, self._rtp):
            if transport is not None:
                transport.close()


async def dialled(url: str, phone: str, agent: str, on_media: Callable[[bytes, float], None]) -> Dialled:
    """A call that is up; `url`, `phone` and `agent` as `SipCaller` has them. Raises ProbeError."""
    call = Dialled(telephone(url, phone), agent or ANYBODY, on_media)
    try:
        await call.dial()
    except BaseException:
        await call.hang_up()
        raise
    return call


class SipCaller(Talker[Pcm]):
    """See `Caller`. `noise` and `seed` choose the room's noise; `url` is where the events are, `phone` where the
    telephone is, as "HOST:PORT"; empty: port 5060 of the same host."""

    def __init__(
        self,
        url: str,
        noise: str,
        seed: int,
        key: str = "",
        agent: str = "",
        phone: str = "",
        subscriber: Subscriber = ANYONE,
    ) -> None:
        timeline, idle = Timeline(), list(bed(noise, seed).reshape(-1, BLOCK))
        super().__init__(timeline, Mouth(timeline, noise, seed, lambda pcm: pcm, idle))
        self._url, self._key = url, key
        self._down = Resampler(WIRE_RATE, g711.RATE, in_step=True)
        self._up = Resampler(g711.RATE, WIRE_RATE, in_step=True)
        self._ascriber = Ascriber(timeline, UNANNOUNCED)
        self._call = Dialled(telephone(url, phone), agent or ANYBODY, self._media, subscriber)
        self._sideband: ClientConnection | None = None

    async def dial(self) -> None:
        """See `Caller.dial`."""
        self.timeline.began = time.monotonic()
        await self._call.dial()
        self.timeline.call_id = self._call.call_id
        self.timeline.setup["answer"] = self._call.took_ms
        self._tasks = [asyncio.create_task(self._mouth.speak(self._send)), asyncio.create_task(self._gone())]
        self._sideband = await beside(self._url, self._call.call_id, self._key)
        self._tasks.append(asyncio.create_task(listen(self._sideband, self._ascriber)))

    async def _gone(self) -> None:
        await self._call.over.wait()

    async def _disconnect(self) -> None:
        await self._call.hang_up()
        if self._sideband:
            await self._sideband.close()

    async def _cut(self) -> None:
        self._call.vanish()
        if self._sideband:
            reset(self._sideband)

    async def _send(self, pcm: Pcm) -> None:
        self._call.send(g711.encode("pcmu", self._down(pcm)))
        self.timeline.note_setup("first packet out")

    def _media(self, data: bytes, arrived: float) -> None:
        try:
            if is_rtcp(data) or not (payload := RtpPacket.parse(data).payload):
                return
        except PacketError:
            return
        self.timeline.note_setup("first packet in")
        self._ascriber.sound(self._up(g711.decode("pcmu", payload)), arrived)


def telephone(url: str, phone: str) -> Address:
    """Where the telephone is, of the probes' options."""
    host, _, port = phone.rpartition(":") if ":" in phone else (phone, "", str(PORT))
    return host or urlsplit(url if "://" in url else f"//{url}").hostname or "", int(port)


def resolved(server: Address) -> Address:
    """With the IPv4 address of its name. Blocks; raises CallFailed."""
    try:
        return socket.gethostbyname(server[0]), server[1]
    except OSError as error:
        raise CallFailed(f"{server[0]} has no IPv4 address ({error}): correct the name", "resolve") from error


def best_contact(lines: Sequence[str]) -> tuple[str, Address] | None:
    """The URI and the address of the first contact of a redirection, which is a directory's best choice; None: it has
    none that can be called."""
    for line in lines:
        if found := CONTACT.match(line):
            return found[1], (found[2], int(found[3] or PORT))
    return None


def free_port() -> int:
    """A UDP port of loopback that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
