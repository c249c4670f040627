"""How well the language of an utterance is known, among those of an agent: by Whisper base and by the words that it
writes, for people's recorded prompts in four languages."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from latency_probes import clips, prompts
from latency_probes.timeline import WIRE_RATE
from voicepipe.audio import RATE, Pcm, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.base.figures import keep
from voicepipe.config.engine_config import WHISPER_POLYGLOT, WhisperConfig
from voicepipe.engines.asr.whisper_model import LoadedWhisper, Passage
from voicepipe.languages.tags import english_name
from voicepipe.languages.written_language import written_language
from voicepipe.turn.spoken_language import SpokenLanguage, ToldUtterance

SPOKEN = ("en", "es", "fr", "it")
LEAST_MS = 1500
AIM = 95.0
"""Percent of the utterances whose language is known."""


@dataclass(frozen=True, slots=True)
class RecordedUtterance:
    """A prompt, spoken by a person."""

    language: str
    text: str
    pcm: Pcm
    """int16[n] at 16 kHz."""


@dataclass(frozen=True, slots=True)
class KnownLanguage:
    """What was known of one recording's language."""

    language: str
    told: str
    """By the recogniser."""
    sure: float
    written: str
    """By the words that it wrote."""
    changed: bool
    """In a call in another language it became the caller's after this utterance alone."""
    left: bool
    """In a call in this language another one became the caller's."""
    text: str


def run(most: int, file: Path | None) -> int:
    """Measure `most` recordings of each language, and keep what was seen in `file`. Returns the exit status. Raises
    ProbeError: the recordings are not installed; EngineMissing: the model is not here."""
    whisper = LoadedWhisper(WhisperConfig(model=WHISPER_POLYGLOT))
    seen = [_known(whisper, utterance) for language in SPOKEN for utterance in _recorded(language, most)]
    right = sum(each.told == each.language for each in seen)
    for language in SPOKEN:
        _print(english_name(language), [each for each in seen if each.language == language])
    _print("all", seen)
    for each in seen:
        if each.told != each.language or each.left:
            print(f"  {each.language}: told {each.told} ({each.sure:.2f}), left {each.left}: {each.text}")
    keep(file, seen)
    return int(100 * right < AIM * len(seen))


def _recorded(language: str, most: int) -> Iterator[RecordedUtterance]:
    found = 0
    for prompt in prompts.read(language):
        resample = Resampler(WIRE_RATE, RATE)
        pcm = resample(clips.decode(prompt.file))
        if found < most and samples_to_ms(pcm.size) >= LEAST_MS:
            found += 1
            yield RecordedUtterance(language, prompt.text, pcm)
    if found < most:
        print(f"{english_name(language)} has {found} recordings of {LEAST_MS} ms", file=sys.stderr)


def _known(whisper: LoadedWhisper, utterance: RecordedUtterance) -> KnownLanguage:
    """What a call knows once it has heard the recording: one in another language, then one in this."""
    changed = left = False
    told: Any = None
    for present in (utterance.language, "fr" if utterance.language == "en" else "en"):
        (reading,) = whisper.read([Passage(utterance.pcm, language=present, languages=SPOKEN)])
        likely, text = reading.language.likely, "".join(word.text for word in reading.words)
        heard = ToldUtterance(text, samples_to_ms(utterance.pcm.size), likely)
        after = SpokenLanguage(SPOKEN, present).after(heard).now
        if present == utterance.language:
            left, told = after != present, (likely, text)
        else:
            changed = after == utterance.language
    likely, text = told
    written = written_language(text, SPOKEN).tag
    return KnownLanguage(utterance.language, likely.tag, likely.probability, written, changed, left, text)


def _print(name: str, seen: list[KnownLanguage]) -> None:
    share = {
        "told rightly": sum(each.told == each.language for each in seen),
        "by the words": sum(each.written == each.language for each in seen),
        "changes at once": sum(each.changed for each in seen),
        "wrongly left": sum(each.left for each in seen),
    }
    others = Counter(each.told for each in seen if each.told != each.language)
    figures = ", ".join(f"{what} {100 * count / len(seen):.1f} %" for what, count in share.items())
    print(f"{name}: {len(seen)} recordings, {figures}{f'; told as {dict(others)}' if others else ''}")
