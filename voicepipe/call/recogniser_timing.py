"""A PoP that has just started says a sentence to itself, so that it knows how long its recogniser takes.

How long callers wait for words follows what the recogniser mostly takes (`turn/patience.py`). As long as nothing is
known, calls wait as long as `[ladder]` allows, in silence: a recogniser that hangs at the first turn of all would cost
that caller five seconds.
"""

import asyncio
import logging
from collections.abc import Callable

import numpy as np

from voicepipe.audio import BLOCK, RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import EngineError
from voicepipe.call.utterance import RecogniserWait
from voicepipe.config import LadderConfig
from voicepipe.engines.base import Asr, Engines, Tts

log = logging.getLogger(__name__)
SENTENCE = "I would like to book a table for two, please."


async def time_recogniser(engines: Engines, is_called: Callable[[], bool]) -> None:
    """Give the patience with `engines.asr` its first figure. It stays without one if the recogniser or the voice fails,
    or if somebody calls: a caller needs the decoder and the processor, and their turns will tell. It may have one
    already, where another PoP of this process has the same engines."""
    if engines.patience.is_informed:
        return
    waits = RecogniserWait(engines.patience, LadderConfig(words_ms=0))
    try:
        await _hear(engines.asr, await _spoken(engines.tts), waits, is_called)
    except EngineError as error:
        log.warning("how long the recogniser takes is not known before the first turn: %s", error)


async def _spoken(tts: Tts) -> Pcm:
    resampler = Resampler(tts.rate, RATE)
    pieces = [resampler(speech.pcm) async for speech in tts.speak(SENTENCE)]
    return np.concatenate([*pieces, resampler.flush()])


async def _hear(asr: Asr, sound: Pcm, waits: RecogniserWait, is_called: Callable[[], bool]) -> None:
    """Feed the sound at the pace of a caller: what is decoded while they speak costs no waiting."""
    stream = asr.stream(lambda partial: None)  # Nobody prepares a reply to one.
    try:
        for at in range(0, sound.size, BLOCK):
            if is_called():
                return
            stream.feed(sound[at : at + BLOCK])
            await asyncio.sleep(BLOCK / RATE)
        await waits.for_words(stream.settle(), 0.0)
    finally:
        stream.cancel()
