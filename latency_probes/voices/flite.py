"""The voices of flite (Debian: apt install flite), of 1999 and 2003: all in one breath, with hardly any melody."""

import subprocess
import tempfile
import wave
from pathlib import Path

import numpy as np

from latency_probes.voices import Take
from voicepipe.audio import RATE, Pcm, dbfs, ms_to_samples


def speak(text: str, voice: str, before: str = "") -> Take:
    """`text`, with the cut behind its words `before`."""
    pcm, phones = spoken(text, voice)
    return Take(pcm, RATE, boundary(pcm, phones, len(phones_of(before, voice))) if before else 0)


def spoken(text: str, voice: str) -> tuple[Pcm, list[tuple[str, float]]]:
    """`text` as int16[n] at 16 kHz, and its phones with the second at which each ends."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "speech.wav"
        printed = flite("-voice", voice, "-psdur", "-t", text, "-o", str(file))
        with wave.open(str(file)) as sound:
            if sound.getframerate() != RATE:
                raise RuntimeError(f"voice {voice} speaks at {sound.getframerate()} Hz, expected {RATE}")
            pcm = np.frombuffer(sound.readframes(sound.getnframes()), np.int16)
    pairs = [item.split(":") for item in printed.split()]
    return pcm, [(name, float(end)) for name, end in pairs if name != "pau"]


def phones_of(text: str, voice: str) -> list[str]:
    """The phones of `text`, without pauses."""
    return [phone for phone in flite("-voice", voice, "-ps", "-t", text, "-o", "none").split() if phone != "pau"]


def flite(*arguments: str) -> str:
    """What `flite` printed."""
    return subprocess.run(["flite", *arguments], check=True, capture_output=True, text=True).stdout


def boundary(pcm: Pcm, phones: list[tuple[str, float]], count: int) -> int:
    """The sample after the first `count` phones, moved by up to 20 ms to where the voice is weakest."""
    nominal = round(phones[count - 1][1] * RATE)
    reach, half = ms_to_samples(20), ms_to_samples(2.5)
    candidates = range(nominal - reach, nominal + reach + 1, ms_to_samples(1))
    return min(candidates, key=lambda at: (dbfs(pcm[at - half : at + half]), abs(at - nominal)))
