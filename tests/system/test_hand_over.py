"""A whole PoP in which one agent hands its caller over to another and back: who is heard, and who says what."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faster_whisper import WhisperModel

from latency_probes import clips
from latency_probes.conversation import greeting_over
from latency_probes.own_server import started
from latency_probes.realtime import RealtimeCaller
from latency_probes.timeline import WIRE_RATE, Timeline
from latency_probes.transcripts import errors, words
from tests.engines.openai_server import DONE, Event, Json, Server, called, chunk, said, serving
from tests.latency_probes.read_back import Reader
from tests.support.paths import ROOT
from tests.support.read_back import MODEL
from tests.support.spoken import spoken
from tests.support.waiting import until
from voicepipe.audio import Pcm
from voicepipe.engines.weights import hub

pytestmark = pytest.mark.e2e

POP = """
[pop]
budget_ms = 600000
agents = "agents"
default_agent = "reception"
[engines]
asr = "scripted"
llm = "openai"
tts = "kokoro"
[kokoro]
model = "kokoro-v1.0.int8"
voices = "kokoro-v1.0.int8"
voice = "jf_alpha"
[scripted]
hears = ["i would like to book an appointment", "on friday and what about my invoice", "thank you"]
[openai]
base_url = "{url}"
[ladder]
acknowledge_ms = 0
fallback_ms = 0
stall_ms = 60000
"""
RECEPTION = """
name = "reception"
greeting = "Good morning, this is the reception."
instructions = "You are the reception."
voice = "jf_alpha"
[hand_over.booking]
when = "The caller wants an appointment."
"""
BOOKING = """
name = "booking"
instructions = "You book appointments."
voice = "jm_kumo"
[hand_over.reception]
when = "Anything else."
"""
ANNOUNCED = "I put you through to our booking desk."
WELCOME = "This is the booking desk, which day would suit you?"
BACK = "The reception again. Your invoice was paid in March."
HIGH_HZ = 155
"""Between the voices of a man and a woman."""


def model(body: Json) -> list[Event]:
    """Reception hands appointments over; booking hands everything else back."""
    is_booking = "You book appointments." in body["messages"][0]["content"]
    last = body["messages"][-1]
    if last["role"] == "tool":
        return said(WELCOME) if is_booking else said(BACK)
    if "appointment" in last["content"]:
        first = [chunk(role="assistant", content=f"{ANNOUNCED} ")]
        return [*first, *called("c1", "hand_over", '{"to": "booking"}'), chunk("tool_calls"), DONE]
    if "invoice" in last["content"]:
        return [*called("c2", "hand_over", '{"to": "reception"}'), chunk("tool_calls"), DONE]
    return said("You are welcome.")


def pitch_hz(pcm: Pcm) -> float:
    """The median pitch of the loud parts of a voice at 24 kHz, by autocorrelation."""
    frame, found = 1200, []
    for at in range(0, pcm.size - frame, frame):
        part = pcm[at : at + frame].astype(float)
        if np.abs(part).mean() < 500:
            continue
        alike = np.correlate(part, part, "full")[frame - 1 :]
        lags = slice(WIRE_RATE // 350, WIRE_RATE // 70)
        if (best := int(np.argmax(alike[lags])) + lags.start) and alike[best] > 0.4 * alike[0]:
            found.append(WIRE_RATE / best)
    return float(np.median(found))


async def talk(url: str) -> tuple[Timeline, list[dict[str, Any]]]:
    """Three turns; the timeline of the call, and the sessions that it had."""
    caller = RealtimeCaller(url, "quiet", 1)
    await caller.dial()
    try:
        await greeting_over(caller)
        for name in ("booking", "hours", "hours"):
            speech = await asyncio.to_thread(clips.speech, spoken(name)[0], 1)
            before = len(caller.timeline.of_type("response.done"))
            caller.say(speech.pcm)
            await until(lambda: len(caller.timeline.of_type("response.done")) > before)  # noqa: B023
            await asyncio.sleep(max(0, caller.timeline.play_end - asyncio.get_running_loop().time()) + 0.3)
        sessions = [event.data["session"] for event in caller.timeline.of_type("session.updated")]
        return caller.timeline, sessions
    finally:
        await caller.hang_up()


async def test_each_agent_is_heard_with_its_own_words_and_voice(tmp_path: Path) -> None:
    (tmp_path / "agents").mkdir()
    for name, text in (("reception", RECEPTION), ("booking", BOOKING)):
        (tmp_path / "agents" / f"{name}.toml").write_text(text)
    server = Server(model)
    async with serving(server) as url:
        (tmp_path / "pop.toml").write_text(POP.format(url=url))
        command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", str(tmp_path / "pop.toml"))

        def call() -> tuple[Timeline, list[dict[str, Any]]]:
            with started(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as pop:
                return asyncio.run(talk(pop.url.replace("http", "ws", 1) + "/v1/realtime"))

        timeline, sessions = await asyncio.to_thread(call)
    assert [session["model"] for session in sessions][-2:] == ["booking", "reception"]
    assert [session["audio"]["output"]["voice"] for session in sessions][-2:] == ["jm_kumo", "jf_alpha"]
    told = [reply for reply in timeline.replies.values() if reply.chunks]
    assert [reply.text.strip() for reply in told] == [
        "Good morning, this is the reception.", ANNOUNCED, WELCOME, BACK, "You are welcome."
    ]  # fmt: skip
    assert [pitch_hz(reply.pcm) > HIGH_HZ for reply in told[:4]] == [True, True, False, True]
    reader = Reader(WhisperModel(str(hub.local(MODEL)), device="cpu", compute_type="int8", cpu_threads=1))
    for reply in told[:4]:
        heard = reader.read(reply.pcm)
        assert errors(words(reply.text), words(heard)) <= 2, (reply.text, heard)
    asked = json.dumps(server.asked[-1]["messages"])
    assert "the caller was handed over to you" in asked
