"""How well the language of an utterance is known, among those of an agent: by Whisper base and by the words that it
writes, for people's recorded prompts in four languages."""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from latency_probes import clips, prompts
from latency_probes.timeline import WIRE_RATE
from voicepipe.audio import RATE, Pcm, samples_to_ms
from voicepipe.audio.resample import Resampler
from voicepipe.base.figures import keep
from voicepipe.config.engine_config import WHISPER_POLYGLOT, WhisperConfig
from voicepipe.engines.asr.whisper_model import LoadedWhisper, Passage
from voicepipe.languages.tags import english_name
from voicepipe.languages.written_language import LikelyLanguage, written_language
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
    """By the recogniser, in a call that is in another language, which it takes where none stands out."""
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
    """What is known of the recording in a call in another language, and whether a call in this one stays in it."""
    present = "fr" if utterance.language == "en" else "en"
    likely, text, after = _heard(whisper, utterance, present)
    _, _, stays = _heard(whisper, utterance, utterance.language)
    return KnownLanguage(
        language=utterance.language,
        told=likely.tag,
        sure=likely.probability,
        written=written_language(text, SPOKEN).tag,
        changed=after == utterance.language,
        left=stays != utterance.language,
        text=text,
    )


def _heard(whisper: LoadedWhisper, utterance: RecordedUtterance, present: str) -> tuple[LikelyLanguage, str, str]:
    """The language that Whisper tells, the words, and the language of the call from then on."""
    (reading,) = whisper.read([Passage(utterance.pcm, language=present, languages=SPOKEN)])
    likely, text = reading.language.likely, "".join(word.text for word in reading.words)
    heard = ToldUtterance(text, samples_to_ms(utterance.pcm.size), likely)
    return likely, text, SpokenLanguage(SPOKEN, present).after(heard).now


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
