"""A caller by WebRTC: Opus by RTP in both directions, stamped as packets arrive, and events on a data channel.

It plays what comes as it comes, without a jitter buffer of its own, and knows by the events to which reply it belongs.
"""

import asyncio
import secrets
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import httpx
from aiortc import RTCDataChannel

from latency_probes.failed_call import CallFailed, Step, refused, unreachable
from latency_probes.mouth import Mouth, Talker
from latency_probes.realtime import DIAL_S, Directory, origin, trusted
from latency_probes.sideband import Ascriber
from latency_probes.sound import bed
from latency_probes.timeline import BLOCK, CREATED, WIRE_RATE, Timeline
from voicepipe.audio import Pcm, opus
from voicepipe.base.errors import ProbeError
from voicepipe.rtp import sdp
from voicepipe.rtp.codec import OPUS
from voicepipe.rtp.packet import PacketError, RtpPacket, is_rtcp
from voicepipe.rtp.sdp_text import SdpError
from voicepipe.rtp.transport import Transport, UdpNetwork

CALLS = "/v1/realtime/calls"
CHANNEL = "oai-events"


class PacketSink(Protocol):
    """Where a call's packets come to."""

    def datagram(self, data: bytes, arrived: float) -> None:
        """RTP or RTCP, decrypted, that came at the monotonic second `arrived`."""


OnMessage = Callable[[str], None]


@dataclass(slots=True)
class Placed:
    """A call that is up."""

    transport: Transport
    channel: RTCDataChannel
    payload_type: int
    asked: float
    """Second at which it was asked for."""
    answered: float
    _sent: int = 0
    _ssrc: int = field(default_factory=lambda: secrets.randbits(32))

    def send(self, payload: bytes) -> None:
        """20 ms of Opus."""
        number, self._sent = self._sent, self._sent + 1
        stamp = number * OPUS.clock // 50 & 0xFFFFFFFF
        self.transport.send_rtp(bytes(RtpPacket(self.payload_type, number & 0xFFFF, stamp, self._ssrc, payload)))

    async def hang_up(self) -> None:
        """Safe to call twice."""
        await self.transport.close()

    async def vanish(self) -> None:
        """Let go of the socket; the server is not told."""
        await self.transport._ice.close()  # Without it nothing of what closing says gets out.
        await self.transport.close()


async def place(
    url: str, key: str, agent: str, *, sink: PacketSink | None = None, on_message: OnMessage | None = None
) -> Placed:
    """Ask for a call and connect. `url`: of the server, or where it takes offers. Raises ProbeError."""
    url = url if urlsplit(url).path.endswith(CALLS) else f"{origin(url)}{CALLS}"
    transport = Transport(UdpNetwork((await asyncio.to_thread(local_address, url),)), controlling=True)
    if sink:
        transport.deliver_to(sink)
    channel = transport.open_channel(CHANNEL)
    if on_message:
        channel.on("message", on_message)
    try:
        offer = sdp.offer(transport, await transport.gather(), (OPUS,))
        said, asked, answered = await _answer(url, key, agent, offer)
        async with asyncio.timeout(DIAL_S):
            await transport.connect(said.remote)
    except (ConnectionError, TimeoutError) as error:
        await transport.close()
        raise CallFailed(f"the server at {url} answered, but is not reached by UDP ({error})", "media") from error
    except BaseException:
        await transport.close()
        raise
    return Placed(transport, channel, said.payload_type, asked, answered)


async def _answer(url: str, key: str, agent: str, offer: str) -> tuple[sdp.WebRtcDescription, float, float]:
    """And when it was asked for and came."""
    headers = {"Content-Type": "application/sdp"} | ({"Authorization": f"Bearer {key}"} if key else {})
    try:
        async with httpx.AsyncClient(verify=trusted(), trust_env=False, timeout=DIAL_S) as client:
            asked = time.monotonic()
            answer = await client.post(url, content=offer, headers=headers, params={"model": agent} if agent else None)
            answered = time.monotonic()
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise unreachable(url, error) from error
    if answer.status_code != httpx.codes.CREATED:
        raise refused(url, answer.status_code, answer.content)
    try:
        return sdp.read(answer.text), asked, answered
    except SdpError as error:
        raise ProbeError(f"the server's answer cannot be used: {error}") from error


class WebRtcCaller(Talker[Pcm]):
    """See `Caller`. `noise` and `seed` choose the room's noise; `agent` is sent as `model`.

    `via`: a directory that says where to call, instead of `url` and `key`.
    """

    def __init__(
        self, url: str, noise: str, seed: int, key: str = "", agent: str = "", via: Directory | None = None
    ) -> None:
        timeline, idle = Timeline(), list(bed(noise, seed).reshape(-1, BLOCK))
        super().__init__(timeline, Mouth(timeline, noise, seed, lambda pcm: pcm, idle))
        self._url, self._key, self._agent = url, key, agent
        self._encode, self._decode = opus.OpusEncoder(WIRE_RATE), opus.OpusDecoder(WIRE_RATE)
        self._ascriber = Ascriber(timeline)
        self._via = via
        self._placed: Placed | None = None

    async def dial(self) -> None:
        """See `Caller.dial`."""
        line = self.timeline
        line.began = time.monotonic()
        if self._via:
            placed = await self._via.call(line, self._enter)
        else:
            placed = await self._enter(self._url, self._key)
            line.began = placed.asked
        line.setup["answer"] = 1000 * (placed.answered - line.began)
        self._placed = placed
        self._tasks = [asyncio.create_task(self._mouth.speak(self._send)), asyncio.create_task(placed.transport.gone())]

    async def _enter(self, url: str, key: str) -> Placed:
        return await place(url, key, self._agent, sink=self, on_message=self._message)

    async def _disconnect(self) -> None:
        if self._placed:
            await self._placed.hang_up()

    async def _cut(self) -> None:
        if self._placed:
            await self._placed.vanish()

    async def _send(self, pcm: Pcm) -> None:
        assert self._placed
        self._placed.send(self._encode(pcm))
        self.timeline.note_setup("first packet out")

    def datagram(self, data: bytes, arrived: float) -> None:
        """As `PacketSink.datagram`."""
        if is_rtcp(data):
            return
        try:
            pcm = self._decode(RtpPacket.parse(data).payload)
        except (PacketError, opus.OpusError):
            return
        self.timeline.note_setup("first packet in")
        self._ascriber.sound(pcm, arrived)

    def _message(self, message: str) -> None:
        if self._ascriber.event(message, time.monotonic()) == CREATED:
            self.timeline.note_setup(CREATED)


def local_address(url: str) -> str:
    """This machine's address on the way to a server. Raises ProbeError."""
    parts = urlsplit(url)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((parts.hostname or "", parts.port or 80))
            return str(probe.getsockname()[0])
    except OSError as error:
        step: Step = "resolve" if isinstance(error, socket.gaierror) else "connect"
        raise CallFailed(f"there is no way to {url} ({error.strerror}): correct the address", step) from error
