"""A WebSocket caller's audio: base64 messages of any length in, paced packets out."""

import time
from collections.abc import Callable

import numpy as np

from voicepipe.audio import RATE, Pcm, g711, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.ingress.asgi_scope import Peer
from voicepipe.ingress.blocks import BlockQueue
from voicepipe.ingress.far_end import FarEnd
from voicepipe.ingress.realtime.session import Format, PcmFormat, PcmuFormat
from voicepipe.ingress.socket_line import SocketLine

PCM_RATE = 24_000


def format_rate(format: Format) -> int:
    """Samples a second of an audio format."""
    return PCM_RATE if isinstance(format, PcmFormat) else g711.RATE


def _law(format: Format) -> str:
    return "pcmu" if isinstance(format, PcmuFormat) else "pcma"


class WebSocketLine(SocketLine):
    """The `HostedLine` of a Realtime WebSocket, which carries sound in events. Ours leaves through `on_audio(encoded,
    milliseconds)`.

    `out_rate` is fixed when the call is answered. If the client changes the output format later, the line converts,
    since the audio in playout was made for the first rate. A client is taken to play at once all that it gets; its
    `truncate` corrects that."""

    kind = "websocket"
    setup_ms = 300
    sound_comes = ""

    def __init__(
        self,
        input: Format,
        output: Format,
        clock: Callable[[], float] = time.monotonic,
        *,
        peer: Peer | None = None,
        network: str = "",
    ) -> None:
        """`peer`: the caller's connection; `network`: the one the caller calls from, as their token says."""
        self.out_rate = format_rate(output)
        super().__init__(BlockQueue(clock), FarEnd(self.out_rate, clock), peer, network)
        self._take(input)
        self._output = output
        self._convert = Resampler(self.out_rate, self.out_rate)

    def _take(self, input: Format) -> None:
        """Take sound in this format from now on."""
        rate = format_rate(input)
        self._input, self._odd = input, b""
        self._resample = Resampler(rate, RATE, in_step=True)
        self._queue.cutter.narrow = rate < RATE

    async def append(self, data: bytes, arrived: float) -> None:
        """Queue audio in the input format, a second at a time; waits while the call is that far behind. `arrived` is
        the monotonic second at which the message reached the socket."""
        if isinstance(self._input, PcmFormat):
            data, step = self._odd + data, 2 * PCM_RATE
            data, self._odd = data[: len(data) & ~1], data[len(data) & ~1 :]
        else:
            step = g711.RATE
        for start in range(0, len(data), step):
            self._queue.push(self._resample(self._decode(data[start : start + step])), arrived)
            await self._queue.room.wait()

    def _decode(self, data: bytes) -> Pcm:
        if isinstance(self._input, PcmFormat):
            return np.frombuffer(data, "<i2")
        return g711.decode(_law(self._input), data)

    def set_formats(self, input: Format, output: Format) -> None:
        """Set the formats of what follows."""
        if input != self._input:
            self._take(input)
        if output != self._output:
            self._output = output
            self._convert = Resampler(self.out_rate, format_rate(output))

    def send(self, pcm: Pcm) -> None:
        self._far.send(pcm.size)
        encoded = self._encode(self._convert(pcm))
        if self.on_audio:
            self.on_audio(encoded, samples_to_ms(pcm.size, self.out_rate))

    def clear(self) -> int:
        """Drop what is queued. Clients flush their playback themselves on `speech_started`; what they had not played
        was never heard."""
        return self._far.clear()

    def _encode(self, pcm: Pcm) -> bytes:
        if isinstance(self._output, PcmFormat):
            return pcm.astype("<i2", copy=False).tobytes()
        return g711.encode(_law(self._output), pcm)
