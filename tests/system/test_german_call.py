"""A whole call in German with the shipped configuration: espeak-ng calls, Whisper base hears, and what is answered is
read back as German words."""

import asyncio
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest
from faster_whisper import WhisperModel

from latency_probes.conversation import greeting_over
from latency_probes.own_server import started
from latency_probes.realtime import RealtimeCaller
from latency_probes.timeline import WIRE_RATE, Timeline
from latency_probes.transcripts import errors, words
from tests.engines.openai_server import Server, said, serving
from tests.latency_probes.read_back import Reader
from tests.support.paths import ROOT
from tests.support.waiting import until
from voicepipe.audio import Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import EngineMissing
from voicepipe.config.engine_config import WHISPER_POLYGLOT
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.weights import hub
from voicepipe.languages.agent_texts import texts_in

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

ASKED = "Ich möchte einen Tisch für vier Personen am Freitag."
ANSWER = "Das geht leider nicht. Am Samstag haben wir noch einen Tisch frei."
PATIENT = "loop_lag_ms = 60000\nbudget_ms = 600000\n"
"""However slow the machine is, the call is taken."""


@pytest.fixture(name="whisper")
def _whisper() -> WhisperModel:
    try:
        model = hub.local(WHISPER_POLYGLOT)
    except EngineMissing as error:
        pytest.skip(str(error))
    return WhisperModel(str(model), device="cpu", compute_type="int8", cpu_threads=1)


def files(folder: Path, url: str) -> Path:
    """The shipped configuration and agents, with a server of ours as language model and a caller who is soon asked."""
    shipped = ROOT / "configs" / "cpu-multilingual.toml"
    (folder / "agents-multilingual").mkdir()
    for file in (ROOT / "configs" / "agents-multilingual").glob("*.toml"):
        text = file.read_text().replace('language = "de"', 'language = "de"\nno_input_ms = 4000')
        (folder / "agents-multilingual" / file.name).write_text(text)
    text = shipped.read_text().replace("[engines]\n", '[engines]\nllm = "openai"\n')
    text = text.replace("[pop]\n", f"[pop]\n{PATIENT}")
    (folder / "pop.toml").write_text(f'{text}\n[ladder]\nwords_ms = 0\n[openai]\nbase_url = "{url}"\n')
    return folder / "pop.toml"


async def by_espeak(text: str) -> Pcm:
    voice = EspeakTts()
    await voice.start()
    up = Resampler(voice.rate, WIRE_RATE)
    parts = [up(speech.pcm) async for speech in voice.speak(text, voice="de")]
    await voice.close()
    return np.concatenate([*parts, up.flush(), np.zeros(WIRE_RATE // 2, np.int16)])


async def call(url: str) -> Timeline:
    """Ask once, listen to the answer, and say nothing more."""
    caller = RealtimeCaller(url, "quiet", 1)
    await caller.dial()
    line = caller.timeline
    try:
        await greeting_over(caller)
        caller.say(await by_espeak(ASKED))
        await until(lambda: any(ANSWER in reply.text for reply in line.replies.values()), seconds=60)
        asked = texts_in("de").no_input[0]
        await until(lambda: any(asked in reply.text for reply in line.replies.values()), seconds=60)
        await asyncio.sleep(max(0, line.play_end - asyncio.get_running_loop().time()) + 0.3)
        return line
    finally:
        await caller.hang_up()


async def test_a_german_caller_is_heard_answered_and_asked_in_german(tmp_path: Path, whisper: WhisperModel) -> None:
    server = Server(lambda body: said(ANSWER))
    async with serving(server) as url:
        command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", str(files(tmp_path, url)))

        def run() -> Timeline:
            with started(command, {**os.environ, "PYTHONPATH": str(ROOT)}) as pop:
                return asyncio.run(call(pop.url.replace("http", "ws", 1) + "/v1/realtime"))

        line = await asyncio.to_thread(run)
    heard = json.dumps(server.asked[-1]["messages"][1:], ensure_ascii=False).lower()
    assert "tisch" in heard and "freitag" in heard, heard
    told = [reply for reply in line.replies.values() if reply.chunks]
    assert told[0].text.startswith("Gasthaus zur Mühle, guten Tag.")
    reader = Reader(whisper, "de")
    answer = next(reply for reply in told if ANSWER in reply.text)
    read = reader.read(answer.pcm)
    assert errors(words(ANSWER), words(read)) <= 4, read
    assert language_of(whisper, answer.pcm) == "de"


def language_of(whisper: WhisperModel, sound: Pcm) -> str:
    down = Resampler(WIRE_RATE, 16_000)
    heard = np.concatenate([down(sound), down.flush()]).astype(np.float32) / 32768
    language: str = whisper.detect_language(heard)[0]
    return language
