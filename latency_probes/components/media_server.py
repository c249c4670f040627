"""The far end of `media.py`: a process that answers calls, speaks and listens without end, and counts.

`python -m latency_probes.components.media_server voicepipe`, or `aiortc`: a stock peer that does the same, or `phone`:
our end of phone calls. It reads JSON objects, one a line: {"offer": SDP} is answered with {"answer": SDP}, {"start": 1}
begins to count, {"stop": 1} is answered with the counts.
"""

import asyncio
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from fractions import Fraction
from typing import Any

import aioice.ice
import numpy as np
import uvloop
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError
from av import AudioFrame

from voicepipe.audio import Block, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.call.playout import NOBODY, Playout
from voicepipe.call.speech import Phrase
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.ingress.rtp_line import RtpLine
from voicepipe.observe.process import ProcessWatch
from voicepipe.rtp import sdes, sdp, sip_sdp
from voicepipe.rtp.clock import MediaClock
from voicepipe.rtp.codec import PCMU, Codec
from voicepipe.rtp.transport import Transport, UdpNetwork
from voicepipe.rtp.udp import UdpMedia

TEXT = "We are open from noon until ten in the evening, and the kitchen takes its last orders at half past nine. "
RATE = 24_000
HOST = "127.0.0.1"


async def spoken(rate: int) -> Pcm:
    """About ten seconds of speech without a pause worth mentioning: int16[n] at `rate` Hz, whole packets."""
    tts = EspeakTts()
    await tts.start()
    parts = [speech.pcm async for speech in tts.speak(TEXT * 2)]
    await tts.close()
    pcm = Resampler(tts.rate, rate)(np.concatenate(parts))
    return pcm[: pcm.size - pcm.size % (rate // 50)]


class Far(ABC):
    """Answers calls; `heard` and `sent` count packets of 20 ms."""

    rate = RATE
    """Hz of the speech that it is given."""

    def __init__(self, speech: Pcm, tasks: asyncio.TaskGroup) -> None:
        self.heard = 0
        self.sent = 0
        self._speech = speech
        self._tasks = tasks

    @abstractmethod
    async def answer(self, offer: str) -> str:
        """A call more; our description."""


class Ours(Far):
    """voicepipe's line and playout, as a call has them."""

    def __init__(self, speech: Pcm, tasks: asyncio.TaskGroup) -> None:
        super().__init__(speech, tasks)
        self._clock = MediaClock()
        tasks.create_task(self._clock.run())

    async def answer(self, offer: str) -> str:
        said = sdp.read(offer)
        transport = Transport(UdpNetwork((HOST,)), controlling=False)
        line = self._line(said.codec, said.payload_type, transport)
        answer = sdp.answer(said, transport, await transport.gather(), line.media.ssrc)
        self._tasks.create_task(self._connect(transport, said, line))
        return answer

    def _line(self, codec: Codec, payload_type: int, transport: Transport | UdpMedia) -> RtpLine:
        line = RtpLine(codec, payload_type, transport)
        line.on_audio = lambda data, ms: self._count()
        return line

    def _count(self) -> None:
        self.sent += 1

    async def _connect(self, transport: Transport, said: sdp.WebRtcDescription, line: RtpLine) -> None:
        await transport.connect(said.remote)
        await self._converse(line)

    async def _converse(self, line: RtpLine) -> None:
        self._clock.add(line.tick)
        playout = Playout(line, time.monotonic, duck_db=-15)
        self._tasks.create_task(playout.run())
        self._tasks.create_task(self._speak(playout))
        await line.listen(self)

    def hear(self, block: Block) -> None:
        """As `SoundListener.hear`."""
        self.heard += 1

    async def _speak(self, playout: Playout) -> None:
        playout.begin(NOBODY)
        while True:
            await playout.put(Phrase("", self._speech))


class OurPhone(Ours):
    """The same on sockets of its own, as phones call: no ICE, and the keys in the SDP."""

    rate = PCMU.out_rate

    async def answer(self, offer: str) -> str:
        said = sip_sdp.read(offer)
        media, srtp = UdpMedia(HOST), sdes.Srtp.answering(said.crypto[0])
        local = sip_sdp.LocalDescription(HOST, media.open())
        line = self._line(said.codec, said.payload_type, media)
        media.agree(said, HOST, srtp)
        self._tasks.create_task(self._converse(line))
        return sip_sdp.answer(said, local, srtp.ours)


class Stock(Far):
    """aiortc as it comes, with a track of the same speech."""

    async def answer(self, offer: str) -> str:
        connection = RTCPeerConnection(RTCConfiguration(iceServers=[]))
        connection.addTrack(_Track(self._speech, self))
        connection.on("track", lambda track: self._tasks.create_task(self._listen(track)))
        await connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
        await connection.setLocalDescription(await connection.createAnswer())
        return str(connection.localDescription.sdp)

    async def _listen(self, track: MediaStreamTrack) -> None:
        try:
            while True:
                await track.recv()
                self.heard += 1
        except MediaStreamError:
            return


class _Track(MediaStreamTrack):
    kind = "audio"

    def __init__(self, speech: Pcm, far: Far) -> None:
        super().__init__()
        self._blocks = speech.reshape(-1, 1, RATE // 50)
        self._far = far
        self._sent = 0
        self._began = time.monotonic()

    async def recv(self) -> AudioFrame:
        await asyncio.sleep(self._began + self._sent * 0.02 - time.monotonic())
        frame = AudioFrame.from_ndarray(self._blocks[self._sent % len(self._blocks)], format="s16", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = RATE, self._sent * (RATE // 50), Fraction(1, RATE)
        self._sent += 1
        self._far.sent += 1
        return frame


FAR_ENDS: dict[str, type[Far]] = {"voicepipe": Ours, "aiortc": Stock, "phone": OurPhone}


async def lines() -> AsyncIterator[dict[str, Any]]:
    """What we are told, until the other side is gone."""
    reader = asyncio.StreamReader(limit=1024 * 1024)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        yield json.loads(line)


async def serve(kind: str) -> None:
    """Until standard input ends."""
    # A stock peer looks for no loopback address, and this machine may have no other.
    aioice.ice.get_host_addresses = lambda use_ipv4, use_ipv6: [HOST]
    end = FAR_ENDS[kind]
    speech = await spoken(end.rate)
    async with asyncio.TaskGroup() as tasks:
        far = end(speech, tasks)
        watch = ProcessWatch()
        job = tasks.create_task(watch.run())
        cpu = wall = 0.0
        async for told in lines():
            if "offer" in told:
                print(json.dumps({"answer": await far.answer(told["offer"])}), flush=True)
            elif "start" in told:
                job.cancel()
                watch = ProcessWatch()
                job = tasks.create_task(watch.run())
                far.heard = far.sent = 0
                cpu, wall = time.process_time(), time.monotonic()
            else:
                counts = {"cpu_s": time.process_time() - cpu, "wall_s": time.monotonic() - wall,
                          "lag_p99_ms": watch.lag_p99_ms(), "heard": far.heard, "sent": far.sent}  # fmt: skip
                print(json.dumps(counts), flush=True)
        raise SystemExit(0)


if __name__ == "__main__":
    uvloop.run(serve(sys.argv[1]))
