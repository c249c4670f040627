"""The common part of lines over WebSockets: sound waits for the call, and a timer of the line's own paces ours."""

import asyncio

from voicepipe.ingress.asgi_scope import Peer
from voicepipe.ingress.blocks import BlockQueue
from voicepipe.ingress.far_end import FarEnd, FarEndLine
from voicepipe.line import HIDDEN, NetworkQuality, Pump, SoundListener


class SocketLine(FarEndLine):
    """The common part of `HostedLine`s over a WebSocket. `queue`: the caller's sound; `far`: what they have heard of
    ours; `peer`: their connection; `network`: as `Grant.network`."""

    lead_ms = 200
    takes_sound = True

    def __init__(self, queue: BlockQueue, far: FarEnd, peer: Peer | None, network: str) -> None:
        super().__init__(far, network)
        self._queue = queue
        self._peer = peer
        if peer:
            self.source = lambda: peer.address

    async def listen(self, listener: SoundListener) -> None:
        """As `Line.listen`."""
        await self._queue.listen(listener)

    async def pace(self, pump: Pump, wake: asyncio.Event) -> None:
        await by_timer(pump, wake)

    def network(self) -> NetworkQuality:
        """Measurements of the connection; TCP sends again what is lost, and does not report it."""
        return NetworkQuality(rtt_ms=self._peer.rtt_ms) if self._peer else HIDDEN

    @property
    def ended(self) -> bool:  # type: ignore[override]
        return self._queue.ended

    def end(self) -> None:
        """The caller is gone: what they said is still heard."""
        self._queue.end()
        self._stop_dialling()

    async def flush(self) -> None:
        """As `BlockQueue.flush`."""
        await self._queue.flush()


async def by_timer(pump: Pump, wake: asyncio.Event) -> None:
    """Paces a line by a timer of its own, as `Line.pace`."""
    while True:
        delay = pump()
        if delay is not None:
            await asyncio.sleep(delay)
        else:
            wake.clear()
            await wake.wait()
