"""A whole PoP as its users start it, with the default engines and spoken callers. No figures are asserted here."""

import asyncio
import base64
import json
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import websockets
from openai import AsyncOpenAI
from openai.resources.realtime.realtime import AsyncRealtimeConnection

from latency_probes import clips
from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP
from voicepipe.audio import g711
from voicepipe.audio.resample import Resampler

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def pop() -> Iterator[str]:
    """The address of a fresh PoP."""
    with own_server(PATIENT_POP) as url:
        yield url


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that is late is still an answer: what a probe would count as missed is waited for here."""
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 12.0)


def health(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/healthz") as answer:
        figures: dict[str, Any] = json.load(answer)
    return figures


async def dial(url: str, questions: list[clips.Utterance], number: int = 0) -> RealtimeCaller:
    """Hold one call in which everything is asked; returns its caller."""
    caller = RealtimeCaller(url, "quiet", seed=1)
    record = await converse(caller, CallPlan(number, "quiet", tuple(Turn("e2e", item) for item in questions)), seed=1)
    assert not record.failure
    return caller


async def test_questions_are_answered_in_one_conversation(pop: str) -> None:
    caller = await dial(pop, spoken("hours", "parking"))
    said = " ".join(
        event.data["transcript"] for event in caller.timeline.of_type("response.output_audio_transcript.done")
    )
    for fact in ("noon", "park"):
        assert fact in said.lower(), said


async def test_callers_at_the_same_time_do_not_disturb_one_another(pop: str) -> None:
    questions, facts = spoken("hours", "parking"), ("noon", "park")
    answered: set[int] = set()
    for together in (4, 4, 2, 2, 1, 1, 1, 1):  # A busy machine may not hear them in time, and asks to be told again.
        waiting = [n for n in range(4) if n not in answered][:together]
        callers = [dial(pop, questions[n % 2 : n % 2 + 1], n) for n in waiting]
        for n, caller in zip(waiting, await asyncio.gather(*callers), strict=True):
            answers = caller.timeline.of_type("response.output_audio_transcript.done")
            said = " ".join(event.data["transcript"] for event in answers).lower()
            assert facts[1 - n % 2] not in said, said
            if facts[n % 2] in said:
                answered.add(n)
        if len(answered) == 4:
            return
    pytest.fail(f"only {sorted(answered)} of four callers were ever answered")


async def test_a_caller_who_vanishes_leaves_nothing_behind(pop: str) -> None:
    before = await asyncio.to_thread(health, pop)
    for _ in range(5):
        socket = await websockets.connect(f"{pop.replace('http', 'ws')}/v1/realtime")
        noise = base64.b64encode(np.random.default_rng(0).integers(-9000, 9000, 24_000, np.int16).tobytes()).decode()
        await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": noise}))
        await asyncio.sleep(0.3)
        socket.transport.abort()
    await asyncio.sleep(1)
    for _ in range(100):
        after = await asyncio.to_thread(health, pop)
        if after["calls"] == before["calls"] and after["tasks"] <= before["tasks"]:
            break
        await asyncio.sleep(0.2)
    assert (after["calls"], after["tasks"]) == (before["calls"], before["tasks"])


async def test_a_telephone_codec_through_the_stock_sdk(pop: str) -> None:
    """pcmu both ways: the question is streamed in real time, the answer has the right words."""
    client = AsyncOpenAI(base_url=f"{pop}/v1", api_key="none")
    async with client.realtime.connect(model="front-desk") as connection:
        law: Any = {"type": "audio/pcmu"}
        session: Any = {"type": "realtime", "audio": {"input": {"format": law}, "output": {"format": law}}}
        await connection.session.update(session=session)
        speech = await asyncio.to_thread(clips.speech, spoken("hours")[0], 1)
        narrow = Resampler(24_000, 8000)
        pcm = np.concatenate([narrow(speech.pcm), narrow.flush(), np.zeros(8000 * 2, np.int16)])
        answers, audio = "", 0
        for _ in range(3):  # A busy machine may send it in pieces, and asks to be told again.
            sending = asyncio.create_task(stream(connection, g711.encode("pcmu", pcm)))
            async for event in until_answered(connection):
                if event.type == "response.output_audio_transcript.done":
                    answers += event.transcript.lower()
                elif event.type == "response.output_audio.delta":
                    audio += len(base64.b64decode(event.delta))
            sending.cancel()
            if "noon" in answers:
                break
        assert "noon" in answers, answers
        assert audio > 8000, "more than a second of it"


async def stream(connection: AsyncRealtimeConnection, law: bytes) -> None:
    """20 ms at a time, after the greeting has had its chance."""
    await asyncio.sleep(4)
    began = time.monotonic()
    for start in range(0, len(law), 160):
        await asyncio.sleep(began + start / 8000 - time.monotonic())
        with suppress(Exception):
            await connection.input_audio_buffer.append(audio=base64.b64encode(law[start : start + 160]).decode())


async def until_answered(connection: AsyncRealtimeConnection) -> AsyncIterator[Any]:
    """Events up to the end of the response that answers what was said."""
    heard = False
    async with asyncio.timeout(40):
        async for event in connection:
            yield event
            heard = heard or event.type == "conversation.item.input_audio_transcription.completed"
            if heard and event.type == "response.done" and event.response.status == "completed":
                return
