"""A whole call whose caller changes from English to Spanish and back: Whisper base hears espeak-ng. Clients, the record
and the language model's server are told the language, and the voice follows. Words are not looked at."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from faster_whisper import WhisperModel

from latency_probes.own_server import started
from latency_probes.realtime import RealtimeCaller
from latency_probes.timeline import WIRE_RATE, Timeline
from tests.engines.openai_server import Event, Json, Server, said, serving
from tests.support.paths import ROOT
from tests.support.waiting import until
from voicepipe.audio import Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import EngineMissing
from voicepipe.config.engine_config import WHISPER_POLYGLOT
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.weights import hub
from voicepipe.ingress.realtime.translate import RECORD_KEY

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

POP = """
[pop]
agents = "agents"
default_agent = "desk"
budget_ms = 600000
loop_lag_ms = 60000
[records]
folder = "kept"
[engines]
asr = "whisper"
llm = "openai"
tts = "espeak"
[whisper]
model = "{model}"
[openai]
base_url = "{url}"
[endpoint]
sure_ms = 700
[ladder]
words_ms = 0
acknowledge_ms = 0
fallback_ms = 0
stall_ms = 60000
"""
AGENT = """
name = "desk"
instructions = "You are the front desk."
language = "en"
languages = ["en", "es"]
no_input = []
[voices]
en = "en-us"
es = "es"
"""
SPEAKS = (
    ("en", "en-us", "Can you please tell me when you are open tomorrow?"),
    ("es", "es", "Quisiera reservar una mesa para cuatro personas el viernes por la noche."),
    ("en", "en-us", "Can you please tell me how much that will be?"),
)
"""Whisper base gives these languages 93 of 100 among all that it knows, and hears few of the words rightly."""
ANSWERS = {"English": "Of course. We are open from nine to five.", "Spanish": "Muy bien. ¿A qué hora le viene bien?"}
COMPLETED = "conversation.item.input_audio_transcription.completed"


@pytest.fixture(name="whisper")
def _whisper() -> WhisperModel:
    try:
        model = hub.local(WHISPER_POLYGLOT)
    except EngineMissing as error:
        pytest.skip(str(error))
    return WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=1)


def model(body: Json) -> list[Event]:
    """Answers in the language in which it is told to; the PoP asks it something before the first call, too."""
    told = [name for name in ANSWERS if name in body["messages"][0]["content"]]
    return said(ANSWERS[told[0]] if told else "Hello.")


async def sentences() -> list[Pcm]:
    """SPEAKS in sound, each with the silence that ends a turn."""
    voice, found = EspeakTts(), []
    await voice.start()
    for _, name, text in SPEAKS:
        up = Resampler(voice.rate, WIRE_RATE)
        parts = [up(speech.pcm) async for speech in voice.speak(text, voice=name)]
        found.append(np.concatenate([*parts, up.flush(), np.zeros(WIRE_RATE // 2, np.int16)]))
    await voice.close()
    return found


async def talk(url: str) -> tuple[Timeline, Any]:
    """The call, and its record."""
    sounds = await sentences()
    caller = RealtimeCaller(url.replace("http", "ws", 1) + "/v1/realtime", "quiet", 1)
    line = caller.timeline
    await caller.dial()
    try:
        for turn, sound in enumerate(sounds, 1):
            caller.say(sound)
            await until(lambda: len(done(line)) == turn, seconds=120)  # noqa: B023
            await asyncio.sleep(max(0, line.play_end - asyncio.get_running_loop().time()) + 0.3)
    finally:
        await caller.hang_up()
    async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
        rows: list[Any] = []
        async with asyncio.timeout(60):
            while not rows:
                rows = (await client.get("/v1/records")).json()["data"]
        return line, (await client.get(f"/v1/records/{rows[0]['id']}")).json()


def done(line: Timeline) -> list[Any]:
    """Responses that were heard to their end."""
    responses = [event.data["response"] for event in line.of_type("response.done")]
    return [response for response in responses if response["status"] == "completed"]


async def test_events_record_and_voice_have_the_language_of_the_caller(tmp_path: Path, whisper: WhisperModel) -> None:
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "desk.toml").write_text(AGENT)
    server = Server(model)
    async with serving(server) as llm:
        (tmp_path / "pop.toml").write_text(POP.format(url=llm, model=WHISPER_POLYGLOT))
        command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", "pop.toml")

        def call() -> tuple[Timeline, Any]:
            with started(command, {**os.environ, "PYTHONPATH": str(ROOT)}, tmp_path) as pop:
                return asyncio.run(talk(pop.url))

        line, record = await asyncio.to_thread(call)
    heard = [event.data["languages"] for event in line.of_type(COMPLETED)]
    assert heard == [[{"code": tag}] for tag, _, _ in SPEAKS]
    figures = [json.loads(response["metadata"][RECORD_KEY]) for response in done(line)]
    assert [each["language"] for each in figures] == [tag for tag, _, _ in SPEAKS]
    assert [turn["record"]["language"] for turn in record["said"]] == [tag for tag, _, _ in SPEAKS]
    sessions = [event.data["session"] for event in line.of_type("session.updated")]
    assert [session["audio"]["output"]["voice"] for session in sessions] == ["es", "en-us"]
    assert [response["audio"]["output"]["voice"] for response in done(line)] == [voice for _, voice, _ in SPEAKS]
    replies = [reply for reply in line.replies.values() if reply.chunks]
    assert [reply.text.strip() for reply in replies] == [ANSWERS["English"], ANSWERS["Spanish"], ANSWERS["English"]]
    assert [language_of(whisper, reply.pcm) for reply in replies] == [tag for tag, _, _ in SPEAKS]


def language_of(whisper: WhisperModel, sound: Pcm) -> str:
    down = Resampler(WIRE_RATE, 16_000)
    pcm = np.concatenate([down(sound), down.flush()]).astype(np.float32) / 32768
    language: str = whisper.detect_language(pcm)[0]
    return language
