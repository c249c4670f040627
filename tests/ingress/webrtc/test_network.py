"""A stock aiortc peer behind a bad network: the call goes on, and nothing of the network's is left when it is well."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from tests.ingress.fake_pop import WORDS, FakePop, serving
from tests.ingress.webrtc.peer import Peer, dialled
from tests.support.waiting import until

LOSS, JITTER_S = 0.05, 0.060


class BadNetwork:
    """Loses and delays what a peer sends of RTP and RTCP."""

    def __init__(self, peer: Peer, seed: int = 1) -> None:
        self._ice: Any = peer.connection.getSenders()[0].transport.transport
        self._send = self._ice._send
        self._rng = random.Random(seed)
        self._sending: set[asyncio.Task[None]] = set()
        self.lost = 0
        self._ice._send = self._lossy

    async def _lossy(self, data: bytes) -> None:
        if not 128 <= data[0] <= 191:
            await self._send(data)
        elif self._rng.random() < LOSS:
            self.lost += 1
        else:
            task = asyncio.create_task(self._later(data))
            self._sending.add(task)
            task.add_done_callback(self._sending.discard)

    async def _later(self, data: bytes) -> None:
        await asyncio.sleep(self._rng.uniform(0, JITTER_S))
        await self._send(data)

    async def heal(self) -> None:
        self._ice._send = self._send
        if self._sending:
            await asyncio.wait(self._sending)


async def test_loss_and_jitter_are_survived_and_forgotten() -> None:
    pop = FakePop()
    async with serving(pop) as address, dialled(address) as (peer, _):
        await until(lambda: bool(pop.calls[0].blocks))
        network = BadNetwork(peer)

        def told(kind: str, times: int) -> Callable[[], bool]:
            return lambda: peer.types().count(kind) == times

        for turn in (1, 2):
            peer.microphone.loud = True
            await until(told("input_audio_buffer.speech_started", turn))
            await asyncio.sleep(1)
            peer.microphone.loud = False
            await until(told("response.done", turn))
            await network.heal()
        assert network.lost
        assert (await peer.saw("conversation.item.input_audio_transcription.completed"))["transcript"] == WORDS
        call = pop.calls[0]
        statistics = call.line.media.statistics()  # type: ignore[attr-defined]
        assert statistics.lost > 0
        blocks = call.blocks
        assert [block.pos for block in blocks] == [n * 320 for n in range(len(blocks))]
        assert 0 < sum(block.filled for block in blocks) < 0.2 * len(blocks)
        assert "error" not in peer.types()
