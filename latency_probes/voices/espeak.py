"""espeak-ng's German (the extra `espeak`), for callers in a language of which no recordings of people can be had."""

import asyncio

import numpy as np

from latency_probes.timeline import WIRE_RATE
from latency_probes.voices import Take
from latency_probes.voices.natural import held_at
from voicepipe.audio.resample import Resampler
from voicepipe.engines.base import Speech
from voicepipe.engines.tts.espeak import EspeakTts

WORDS_PER_MINUTE = 110
"""As espeak-ng counts them: 138 of these sentences' words. Whisper base hears fewer wrong than at 140."""


def speak(text: str, voice: str, before: str = "") -> Take:
    """`text` by espeak-ng's `voice` ("de+f5"), with the cut behind its words `before`, where the voice dies away."""
    speech, rate = asyncio.run(spoken(text, voice))
    up = Resampler(rate, WIRE_RATE)
    pcm = np.concatenate([up(speech.pcm), up.flush()])
    if not before:
        return Take(pcm, WIRE_RATE)
    return held_at(pcm, speech.words[len(before.split()) - 1].end * WIRE_RATE // rate)


async def spoken(text: str, voice: str) -> tuple[Speech, int]:
    """What espeak-ng says, and its rate in Hz."""
    engine = EspeakTts(voice, WORDS_PER_MINUTE)
    await engine.start()
    try:
        (speech,) = [piece async for piece in engine.speak(text)]
        return speech, engine.rate
    finally:
        await engine.close()
