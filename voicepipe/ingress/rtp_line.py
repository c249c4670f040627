"""A caller's audio by RTP, both ways: WebRTC and SIP."""

import asyncio
import time
from collections.abc import Callable

from voicepipe.audio import RATE, Block, Pcm, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.ingress.blocks import BlockCutter
from voicepipe.ingress.far_end import FarEnd, FarEndLine
from voicepipe.line import NetworkQuality, Pump, SoundListener
from voicepipe.rtp.codec import Codec
from voicepipe.rtp.rtp_sender import PACKET_S, PacketWire
from voicepipe.rtp.rtp_session import RtpSession
from voicepipe.rtp.telephone_events import KeyFormat

FAR_DELAY_S = 0.06
"""Seconds after which sound that we send is taken to be heard: an estimate of the far end's jitter buffer on a good
network."""


MOST_TICKS = 50
"""Ticks of 20 ms for which `flush` waits at most: 1 s, in which 10 s of sound that a network held up are processed."""


class RtpLine(FarEndLine):
    """The `HostedLine` of a call by RTP."""

    kind = "webrtc"
    lead_ms = 10
    setup_ms = 300
    sound_comes = "Audio is sent on the audio track of this call, not in events."

    def __init__(
        self,
        codec: Codec,
        payload_type: int,
        wire: PacketWire,
        clock: Callable[[], float] = time.monotonic,
        *,
        network: str = "",
    ) -> None:
        """`network`: the one the caller calls from, as their token says."""
        super().__init__(FarEnd(codec.out_rate, clock, FAR_DELAY_S), network)
        self.out_rate = codec.out_rate
        self._clock = clock
        self.on_key: Callable[[str], None] | None = None
        self.media = RtpSession(codec, payload_type, wire, self, clock)
        self._convert = Resampler(self.out_rate, self.out_rate)
        self._pump: Pump | None = None
        self._paced: asyncio.Future[None] | None = None
        """Lasts as long as our sound is paced."""
        self._cutter = BlockCutter()
        self._listener: SoundListener | None = None
        self._listening: asyncio.Future[None] | None = None
        """Lasts as long as the caller's sound is taken."""

    def sound(self, pcm: Pcm, arrived: float, filled: bool) -> None:
        """As `MediaListener.sound`."""
        self._cutter.narrow = self.media.heard_codec.out_rate < RATE
        self._give(self._cutter.cut(pcm, arrived, filled=filled))

    def key(self, key: str) -> None:
        """As `MediaListener.key`."""
        if self.on_key:
            self.on_key(key)

    def _give(self, blocks: list[Block]) -> None:
        try:
            for block in blocks:
                if self._listener:
                    self._listener.hear(block)
        except Exception as error:  # The call's, not the socket's.
            self._stop_listening(error)

    def _stop_listening(self, error: Exception | None = None) -> None:
        self.media.listened = False
        if self._listening and not self._listening.done():
            if error:
                self._listening.set_exception(error)
            else:
                self._listening.set_result(None)

    def change(self, codec: Codec, payload_type: int, keys: KeyFormat | None) -> None:
        """Send in this codec from now on; `out_rate` stays, since the audio in playout was made for it."""
        self._convert = Resampler(self.out_rate, codec.out_rate, in_step=True)
        self.media.change(codec, payload_type, keys)

    @property
    def takes_sound(self) -> bool:
        """As `RtpSession.sends`."""
        return self.media.sends

    async def listen(self, listener: SoundListener) -> None:
        """As `Line.listen`, called where packets arrive: sound that comes as it is spoken needs no queue."""
        if self.ended:
            return
        self._listener, self._listening = listener, asyncio.get_running_loop().create_future()
        self.media.listened = True
        try:
            await self._listening
        finally:
            self._stop_listening()
            self._listener = None

    def tick(self, now: float) -> None:
        """Every 20 ms, by the clock of all calls: speech that is due, or else silence."""
        if self._pump and self._paced and not self._paced.done():
            try:
                self._pump()
            except Exception as error:  # The call's, not the clock's.
                self._paced.set_exception(error)
        self.media.tick(now)

    async def pace(self, pump: Pump, wake: asyncio.Event) -> None:
        """As `Line.pace`, by `tick`: calls that are served one after another find the processor's caches warm."""
        self._pump, self._paced = pump, asyncio.get_running_loop().create_future()
        try:
            await self._paced
        finally:
            self._pump = None

    def send(self, pcm: Pcm) -> None:
        self.media.send(self._convert(pcm))
        self._far.send(pcm.size)
        if self.on_audio:
            self.on_audio(b"", samples_to_ms(pcm.size, self.out_rate))

    def clear(self) -> int:
        """Drop what is queued; packets that were sent cannot be called back."""
        return 0

    def network(self) -> NetworkQuality:
        """Our own measurements, and the peer's where it has sent a report."""
        seen = self.media.statistics()
        if not seen.received:
            return NetworkQuality(rtt_ms=seen.rtt_ms)
        lost = seen.lost / (seen.received + seen.lost)
        return NetworkQuality(loss_percent=100 * lost, jitter_ms=seen.jitter_ms, rtt_ms=seen.rtt_ms)

    def end(self) -> None:
        super().end()
        self._stop_listening()

    def close(self) -> None:
        """The call is over. The line drops its listener: a reference cycle would keep the whole call in memory until
        the collector's next full round. Safe to call twice."""
        self.media.close()
        self.on_key = None
        self.source = str

    async def flush(self) -> None:
        """As `HostedLine.flush`."""
        for _ in range(MOST_TICKS):
            if not self.media.behind:
                break
            await asyncio.sleep(PACKET_S)
        self._give(self._cutter.rest(self._clock()))
        await asyncio.sleep(0)  # The detector answers later in the turn in which it was asked.
