"""What a recogniser with real weights hears of a voice: how many of the words are wrong."""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

from latency_probes.transcripts import errors
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.words import plain
from voicepipe.config import load
from voicepipe.config.agent_store import open_agents
from voicepipe.conversation.phrases import sentences
from voicepipe.engines.base import Tts
from voicepipe.engines.weights import hub
from voicepipe.languages.speakable import speakable

MODEL = "Systran/faster-whisper-tiny.en"
AT_A_TIME = 8
"""Sentences that are heard in one go: Whisper's window of 30 s costs the same for one."""
PAUSE = np.zeros(RATE // 2, np.int16)
NUMBERS = (
    "The total is $127.45.", "Your table is booked for the 21st of December at 7:30 pm.", "Call us at 555-0199.",
    "That is 12 guests on Friday at 8.", "It costs €14.99 a month.", "Your order number is 4471.",
    "The appointment is on March 3rd, 2027.", "Platform 9, departing at 2:05 pm.", "About 35% of our dishes are vegan.",
    "Dr. Smith will see you at 3 pm.", "Mr. Johnson will call you back in 10 minutes.", "You owe us $1,250.",
    "Version 2.5 came out in 1998.", "I have noted: four people, Saturday, half past six.",
    "The ferry leaves every 20 minutes until midnight.", "We are closed from December 24th to January 2nd.",
)  # fmt: skip
AMERICAN = {"harbour": "harbor", "favourite": "favorite", "alright": "all right"}
"""As Whisper spells what the agent's file has in British English."""
_CLOCK = re.compile(r"\b(\d{1,2})\.(\d{2})\b")


def said() -> list[str]:
    """What the example agent says without anything to fill in, sentence by sentence, and numbers, times and prices."""
    agent = next(iter(open_agents(load())))
    texts = [agent.greeting, agent.fallback, *agent.no_input, *agent.not_understood]
    texts += [intent.reply for intent in agent.intents if "{" not in intent.reply]
    return [*dict.fromkeys(part.strip() for text in texts for part in sentences(text)), *NUMBERS]


async def share_wrong(tts: Tts, texts: Sequence[str]) -> float:
    """Words that were heard as others, left out or put in, as a share of those that were said."""
    wrong = total = 0
    for at in range(0, len(texts), AT_A_TIME):
        spoken = [speakable(text) for text in texts[at : at + AT_A_TIME]]
        heard = _heard(np.concatenate([part for text in spoken for part in (await _sound(tts, text), PAUSE)]))
        words = list(_words(" ".join(spoken)))
        wrong, total = wrong + errors(words, list(_words(heard))), total + len(words)
    return wrong / total


async def heard(tts: Tts, spoken: str) -> str:
    """What is heard of a text that is given to the voice as it is."""
    return _heard(await _sound(tts, spoken))


async def _sound(tts: Tts, text: str) -> Pcm:
    """At 16 kHz."""
    resampler = Resampler(tts.rate, RATE)
    return np.concatenate([*[resampler(speech.pcm) async for speech in tts.speak(text)], resampler.flush()])


def _heard(sound: Pcm) -> str:
    segments, _ = _whisper().transcribe(
        sound.astype(np.float32) / 32768, language="en", beam_size=1, condition_on_previous_text=False
    )
    return " ".join(segment.text for segment in segments)


@cache
def _whisper() -> Any:
    from faster_whisper import WhisperModel

    return WhisperModel(str(hub.local(MODEL)), device="cpu", compute_type="int8", cpu_threads=1)


def _words(text: str) -> Iterator[str]:
    """Numbers as they are said, whoever wrote them how."""
    for word in plain(speakable(_CLOCK.sub(r"\1:\2", text)).replace("-", " ")).split():
        yield from AMERICAN.get(word, word).split()
