"""Stock softphones as telephones: processes of their own, which read what they say from files and write what they hear
into files."""

import asyncio
import wave
from abc import ABC, abstractmethod
from pathlib import Path

import numpy as np

from latency_probes import clips
from latency_probes.transcripts import errors, words
from tests.support.paths import ROOT
from tests.support.spoken import spoken
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.config.agent_store import load_agent
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper import WhisperAsr

SECONDS = 60.0
"""What is waited for comes within this, on slow machines too."""
SILENCE_S = 120
"""Follows what a telephone says: baresip ends a call whose sound has ended."""
WAV_HEADER = 44
FRAME, AUDIBLE, QUIET = RATE // 10, 500, 12
"""Speech ends with so many frames of 100 ms that are not audible."""
USER = '[[sip.users]]\nname = "ann"\npassword_env = "ANN_PASSWORD"\n'
"""Of a PoP's configuration: who may call with a password."""
HOURS = "We are open Tuesday to Sunday, from noon to ten in the evening. On Mondays we are closed."
"""Answers the `question`."""
AGENT = load_agent(ROOT / "configs" / "agents" / "front-desk.toml")
REPLIES = [intent.reply for intent in AGENT.intents if intent.reply]


class Softphone(ABC):
    """One telephone. What it says goes in at 16 kHz, what it heard comes out so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._said = 0

    async def say(self, pcm: Pcm) -> None:
        """From now on; then silence. int16[n] at 16 kHz."""
        self._said += 1
        path = self.folder / f"say-{self._said}.wav"
        await asyncio.to_thread(write, path, np.concatenate([pcm, np.zeros(SILENCE_S * RATE, np.int16)]))
        self.play(path)

    @abstractmethod
    def play(self, path: Path) -> None:
        """Say what is in this file."""

    @abstractmethod
    def heard(self) -> Pcm:
        """All of it so far: int16[n] at 16 kHz."""

    def log(self) -> str:
        """What it has printed."""
        return (self.folder / "log.txt").read_text(errors="replace")

    async def spoken_to(self, since: int = 0) -> Pcm:
        """Something was said from sample `since` on, and then nothing for a while: it. Raises TimeoutError."""
        async with asyncio.timeout(2 * SECONDS):
            while True:
                await asyncio.sleep(0.25)
                pcm = (await asyncio.to_thread(self.heard))[since:]
                loud = np.abs(pcm[: pcm.size // FRAME * FRAME].reshape(-1, FRAME)).max(axis=1, initial=0) > AUDIBLE
                if loud.sum() > 10 and not loud[-QUIET:].any():
                    return pcm


def write(path: Path, pcm: Pcm) -> None:
    """int16[n] at 16 kHz."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(pcm.tobytes())


def question(rate: int = RATE) -> Pcm:
    """ "What are your opening hours"."""
    narrow = Resampler(24_000, rate)
    return np.concatenate([narrow(clips.speech(spoken("hours")[0], 1).pcm), narrow.flush()])


async def transcribed(heard: Pcm) -> str:
    """What was said in it, without the silence around, by our own recogniser."""
    loud = np.flatnonzero(np.abs(heard) > AUDIBLE)
    heard = heard[max(0, loud[0] - RATE // 2) : loud[-1] + RATE // 2]
    asr = WhisperAsr(WhisperConfig())
    await asr.start()
    try:
        stream = asr.stream(lambda partial: None)
        stream.feed(heard)
        return (await stream.finish()).text
    finally:
        await asr.close()


def likest(text: str) -> str:
    """What the agent has said, of all that it can: some words are misheard."""
    return min(REPLIES, key=lambda reply: errors(words(reply), words(text)))
