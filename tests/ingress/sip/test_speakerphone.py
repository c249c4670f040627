"""A whole PoP called by a speakerphone: what the agent says comes back by the microphone, and it is not interrupted by
that; nor does it say anything on hold. Judged by what a program beside the call is told."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import connect

from latency_probes.own_server import own_server
from tests.ingress.sip import softphone
from tests.ingress.sip.peer import Phone
from tests.support.ports import free_port
from tests.support.waiting import PATIENT_POP
from voicepipe.audio import Pcm, g711

pytestmark = pytest.mark.e2e

RATE, FRAME = 8000, 160
GAIN = 0.1
"""20 dB weaker."""
LATE_S, TRIES = 0.3, 3
"""A machine that was held up for longer makes echoes that no room makes: such a call says nothing, and is tried again;
where all are so the test says nothing."""


@pytest.fixture(scope="module")
def pop() -> Iterator[tuple[str, int]]:
    """A fresh PoP: its address, and its port for SIP."""
    port = free_port()
    with own_server((*PATIENT_POP, "--sip-port", str(port))) as url:
        yield url, port


@pytest.fixture(scope="module")
def question() -> Pcm:
    return softphone.question(RATE)


class Speakerphone(Phone):
    """Its microphone hears what is said, some noise, and what it plays: `delay_ms` later, by a decoder and a coder."""

    delay_ms = 0
    gain = 0.0
    late_s = 0.0
    """So much later than it should it spoke at the worst."""

    def begin(self) -> None:
        """Speak and listen from now on, until it is closed."""
        self.events: list[dict[str, Any]] = []
        self._mouth = np.zeros(0, np.int16)
        self._air = np.zeros(120 * RATE, np.float64)
        self._talking = asyncio.create_task(self._talk())

    def close(self) -> None:
        self._talking.cancel()
        super().close()

    def ask(self, pcm: Pcm) -> None:
        self._mouth = pcm

    async def _talk(self) -> None:
        noise, began, played, end = np.random.default_rng(self.delay_ms), time.monotonic(), 0, 0
        for n in range(self._air.size // FRAME):
            await asyncio.sleep(max(0.0, began + n * FRAME / RATE - time.monotonic()))
            self.late_s = max(self.late_s, time.monotonic() - began - n * FRAME / RATE)
            heard = self.heard()
            for packet in heard[played:]:
                end = max(end, n * FRAME + self.delay_ms * RATE // 1000)
                sound = g711.decode("pcmu", packet.payload)
                self._air[end : end + sound.size] = sound[: max(0, self._air.size - end)]
                end += sound.size
            played = len(heard)
            said, self._mouth = self._mouth[:FRAME], self._mouth[FRAME:]
            near = noise.normal(0, 8, FRAME) + self.gain * self._air[n * FRAME : (n + 1) * FRAME]
            near[: said.size] += said
            self.say(near.clip(-32768, 32767).astype(np.int16))

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Events of this kind so far."""
        return [event for event in self.events if event["type"] == kind]

    async def told(self, kind: str, count: int) -> None:
        """That many events of this kind have come. Raises TimeoutError."""
        async with asyncio.timeout(40):
            while len(self.of(kind)) < count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@asynccontextmanager
async def calling(pop: tuple[str, int], delay_ms: int = 0, gain: float = 0.0) -> AsyncIterator[Speakerphone]:
    """A call that has been taken, with a program beside it."""
    url, port = pop
    ann = Speakerphone(("127.0.0.1", port))
    ann.delay_ms, ann.gain = delay_ms, gain
    await ann.open()
    answer = await ann.dial()
    ann.media_of(answer)
    ann.begin()
    call_id = answer.header("x-voicepipe-call-id")
    async with connect(f"{url.replace('http', 'ws')}/v1/realtime?call_id={call_id}", max_queue=None) as socket:
        listening = asyncio.create_task(_listen(socket, ann.events))
        try:
            yield ann
            assert (await ann.hang_up()).code == 200
        finally:
            listening.cancel()
            ann.close()


async def _listen(socket: Any, events: list[dict[str, Any]]) -> None:
    while True:
        events.append(json.loads(await socket.recv()))


def heard_words(ann: Speakerphone) -> str:
    return " ".join(event["transcript"] for event in ann.of("response.output_audio_transcript.done")).lower()


@pytest.mark.parametrize("delay_ms", [40, 110, 180, 250])
async def test_an_agent_that_hears_itself_does_not_interrupt_itself(
    pop: tuple[str, int], question: Pcm, delay_ms: int
) -> None:
    for _ in range(TRIES):
        async with calling(pop, delay_ms, GAIN) as ann:
            try:
                await ann.told("response.done", 1)
                await asyncio.sleep(1)
                ann.ask(question)
                await ann.told("response.done", 2)
                await asyncio.sleep(1)
            except TimeoutError:
                if ann.late_s < LATE_S:
                    raise
        if ann.late_s < LATE_S:
            assert "noon" in heard_words(ann), heard_words(ann)
            assert {event["response"]["status"] for event in ann.of("response.done")} == {"completed"}
            assert len(ann.of("input_audio_buffer.speech_started")) == 1, "took its own voice for theirs"
            return


async def test_nothing_is_said_on_hold_and_a_question_is_answered_afterwards(
    pop: tuple[str, int], question: Pcm
) -> None:
    async with calling(pop) as ann:
        await ann.told("response.done", 1)
        await asyncio.sleep(0.5)
        await ann.dial(ann.sdp(direction="sendonly"))
        packets = len(ann.heard())
        ann.ask(np.random.default_rng(0).normal(0, 3000, 4 * RATE).astype(np.int16))  # Music on hold.
        await asyncio.sleep(10)  # Otherwise it would ask whether somebody is still there, after 8.
        assert len(ann.heard()) <= packets + 5 and not ann.of("input_audio_buffer.speech_started")
        assert len(ann.of("response.done")) == 1
        await ann.dial(ann.sdp())
        ann.ask(question)
        await ann.told("response.done", 2)
        assert "noon" in heard_words(ann), heard_words(ann)
