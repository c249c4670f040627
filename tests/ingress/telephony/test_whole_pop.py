"""A call from Twilio to a whole PoP with the default engines: a question is answered, and the answer interrupted."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

from latency_probes import clips
from latency_probes.own_server import own_server
from tests.ingress.telephony.twilio_provider import ENV, PACKET, TOKEN, Stream, post, streaming, verbs
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP, until
from voicepipe.audio import Pcm
from voicepipe.audio.resample import Resampler

pytestmark = pytest.mark.e2e
CUT_MS = 250
"""So soon after a reply was paused that Twilio still has some of it: with the default of 600 it has played all."""
CALL = {"CallSid": "CA1", "From": "+1555", "To": "+4930123"}


class Mouth:
    """Says what it is told in real time, and silence otherwise."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._left: Pcm = np.empty(0, np.int16)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due += 0.02
            await asyncio.sleep(due - loop.time())
            packet, self._left = self._left[:PACKET], self._left[PACKET:]
            await self._stream.say(np.pad(packet, (0, PACKET - packet.size)))

    def say(self, utterance: clips.Utterance) -> None:
        self._left = Resampler(24_000, 8000, in_step=True)(clips.speech(utterance, 1).pcm)


@asynccontextmanager
async def talking(stream: Stream) -> AsyncIterator[Mouth]:
    mouth = Mouth(stream)
    speaking = asyncio.create_task(mouth.run())
    try:
        yield mouth
    finally:
        speaking.cancel()
        await asyncio.wait({speaking})


async def gathered(beside: ClientConnection, told: Callable[[dict[str, Any]], None]) -> None:
    async for message in beside:
        told(json.loads(message))


async def test_a_question_is_answered_and_the_answer_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(ENV, TOKEN)
    config = tmp_path / "twilio.toml"
    config.write_text(f'[twilio]\nauth_token_env = "{ENV}"\n[turn]\npause_ms = 200\ncut_ms = {CUT_MS}\n')
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        [connected] = verbs(await post(f"{url}/twilio/voice", CALL))
        address = connected[0].get("url") or ""
        async with streaming(address) as stream:
            await stream.start({one.get("name", ""): one.get("value", "") for one in connected[0]})
            sideband = f"{url.replace('http', 'ws')}/v1/realtime?call_id=CA1"
            events: list[dict[str, Any]] = []
            async with talking(stream) as mouth, connect(sideband, proxy=None) as beside:
                listening = asyncio.create_task(gathered(beside, events.append))
                await until(lambda: of("output_audio_buffer.stopped", events))  # the greeting
                [question, other] = spoken("hours", "parking")
                mouth.say(question)
                await until(lambda: len(of("output_audio_buffer.started", events)) >= 2)
                before = len(stream.events("media"))
                await until(lambda: len(stream.events("media")) > before + 50)
                assert not stream.events("clear")
                mouth.say(other)
                await until(lambda: stream.events("clear"))
                await until(lambda: len(of("output_audio_buffer.started", events)) >= 3 and len(heard(events)) >= 2)
                await stream.send("stop")
                await listening
        assert all(heard(events))
        cut = [event["response"] for event in of("response.done", events) if event["response"]["status"] == "cancelled"]
        assert cut and cut[0]["status_details"]["reason"] == "turn_detected"


def heard(events: list[dict[str, Any]]) -> list[str]:
    """Every transcript of the caller."""
    return [event["transcript"] for event in of("conversation.item.input_audio_transcription.completed", events)]


def of(kind: str, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [event for event in events if event["type"] == kind]
