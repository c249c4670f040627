"""A stock aiortc peer as a caller: a microphone that is loud on demand, ears, and the events of its data channel."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from fractions import Fraction
from typing import Any

import httpx
import msgspec
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCRtpSender, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from tests.support.waiting import until
from voicepipe.config import Config
from voicepipe.config.pop_config import WebRtcConfig

RATE = 48_000


class Microphone(MediaStreamTrack):
    """20 ms frames in real time: a tone while `loud`, silence otherwise."""

    kind = "audio"

    def __init__(self) -> None:
        super().__init__()
        self.loud = False
        self._sent = 0
        self._began = 0.0

    async def recv(self) -> AudioFrame:
        loop = asyncio.get_running_loop()
        self._began = self._began or loop.time()
        await asyncio.sleep(self._began + self._sent / RATE - loop.time())
        level = 10_000 if self.loud else 0
        pcm = level * np.sin(2 * np.pi * 300 * np.arange(RATE // 50) / RATE)
        frame = AudioFrame.from_ndarray(pcm.astype(np.int16).reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._sent, Fraction(1, RATE)
        self._sent += RATE // 50
        return frame


class Peer:
    """`codec`: the only one to offer, as "PCMU"."""

    def __init__(self, codec: str | None = None, **configuration: Any) -> None:
        self.connection = RTCPeerConnection(RTCConfiguration(**{"iceServers": [], **configuration}))
        self.microphone = Microphone()
        self.events: list[dict[str, Any]] = []
        self.loudest = 0
        self.frames = 0
        transceiver = self.connection.addTransceiver(self.microphone)
        if codec:
            known = RTCRtpSender.getCapabilities("audio").codecs
            transceiver.setCodecPreferences([entry for entry in known if entry.name == codec])
        self.channel = self.connection.createDataChannel("oai-events")
        self.channel.on("message", lambda message: self.events.append(json.loads(message)))
        self.connection.on("track", lambda track: self._ears.append(asyncio.ensure_future(self._listen(track))))
        self._ears: list[asyncio.Future[None]] = []

    async def offer(self) -> str:
        """Without candidates, as browsers post it that do not wait for them."""
        await self.connection.setLocalDescription(await self.connection.createOffer())
        lines = self.connection.localDescription.sdp.splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith("a=candidate"))

    def ports(self) -> frozenset[int]:
        """Of its own sockets, once it has made an offer."""
        sctp = self.connection.sctp
        assert sctp is not None
        return frozenset(local.port for local in sctp.transport.transport.iceGatherer.getLocalCandidates())

    async def answered(self, sdp: str) -> None:
        await self.connection.setRemoteDescription(RTCSessionDescription(sdp, "answer"))

    async def _listen(self, track: MediaStreamTrack) -> None:
        with suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                assert isinstance(frame, AudioFrame)
                self.frames += 1
                self.loudest = max(self.loudest, int(np.abs(frame.to_ndarray().astype(np.int32)).max()))

    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    async def saw(self, kind: str) -> dict[str, Any]:
        """The first event of this type; waits for it."""
        await until(lambda: kind in self.types())
        return next(event for event in self.events if event["type"] == kind)

    def send(self, **event: Any) -> None:
        self.channel.send(json.dumps(event))

    async def close(self) -> None:
        await self.connection.close()
        for ear in self._ears:
            await ear


async def post(address: str, offer: str, **headers: str) -> httpx.Response:
    """Place a call with a raw SDP offer."""
    async with web(address) as client:
        said = {"Content-Type": "application/sdp"} | headers
        return await client.post("/v1/realtime/calls", content=offer, headers=said)


def web(address: str) -> httpx.AsyncClient:
    """An HTTP client of the PoP at "HOST:PORT"."""
    return httpx.AsyncClient(base_url=f"http://{address}", trust_env=False)


@asynccontextmanager
async def dialled(address: str, codec: str | None = None, **configuration: Any) -> AsyncIterator[tuple[Peer, str]]:
    """A peer whose call is up, and the call's address."""
    peer = Peer(codec, **configuration)
    try:
        response = await post(address, await peer.offer())
        assert response.status_code == 201, response.text
        await peer.answered(response.text)
        await peer.saw("session.created")
        yield peer, response.headers["Location"]
    finally:
        await peer.close()


def webrtc(**changes: Any) -> Config:
    """The default configuration with other keys of [webrtc]."""
    return msgspec.structs.replace(Config(), webrtc=WebRtcConfig(**changes))
