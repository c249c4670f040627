"""What of an agent's file does nothing with the engines that are chosen."""

from typing import Any

import pytest

from voicepipe import config
from voicepipe.agent import Agent, Intent, Pronunciation
from voicepipe.commands import agent_notes
from voicepipe.commands.agent_notes import without_effect
from voicepipe.engines.base import ReadsIpa
from voicepipe.engines.tts.coqui import CoquiTts
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.hibari import HibariTts
from voicepipe.engines.tts.kokoro import KokoroTts
from voicepipe.engines.tts.neutts.neutts import NeuTts

IPA: dict[str, str | Pronunciation] = {"Siobhan": "/ʃɪˈvɔːn/"}


def notes(agent: Agent, **engines: str) -> list[str]:
    return list(without_effect([agent], config.parse({"engines": engines})))


@pytest.mark.parametrize(
    ("agent", "engines", "says"),
    [
        ({"model": "large"}, {"llm": "frontdesk"}, 'model = "large" has no effect with engines.llm = "frontdesk"'),
        ({"model": "large"}, {"llm": "auto"}, ""),
        ({"model": "large"}, {"llm": "openai"}, ""),
        ({"model": "large", "intents": (Intent("i", ("x",)),)}, {"llm": "auto"}, "answered by the embedded engine"),
        (
            {"vocabulary": ("Okonkwo",)},
            {"asr": "nemotron"},
            'engines.asr = "nemotron" cannot expect words; whisper can',
        ),
        ({"vocabulary": ("Okonkwo",)}, {"asr": "whisper"}, ""),
        ({"pronounce": IPA}, {"tts": "coqui"}, "pronounce.Siobhan has no effect: its voice"),
        ({"pronounce": {"Siobhan": Pronunciation("ʃɪˈvɔːn", "Shivawn")}}, {"tts": "coqui"}, ""),
        ({"pronounce": {"Siobhan": "Shivawn"}}, {"tts": "coqui"}, ""),
        ({"pronounce": IPA}, {"tts": "auto"}, ""),
        ({"pronounce": IPA, "language": "de"}, {"tts": "auto"}, "reads no IPA; add a spelling"),
        ({"pronounce": IPA, "language": "de", "voice": "heart"}, {"tts": "auto"}, ""),
        ({"pronounce": IPA, "voice": "fr-fr"}, {"tts": "espeak"}, "reads no IPA"),
        ({"pronounce": IPA}, {"tts": "kokoro"}, ""),
    ],
)
def test_what_has_no_effect_is_said(agent: dict[str, Any], engines: dict[str, str], says: str) -> None:
    found = notes(Agent("desk", **agent), **engines)
    assert len(found) == bool(says) and says in "".join(found)


def test_what_is_said_of_voices_is_so() -> None:
    for kind in (HibariTts, EspeakTts, KokoroTts, NeuTts):
        assert issubclass(kind, ReadsIpa)
    assert not issubclass(CoquiTts, ReadsIpa) and "coqui" in agent_notes.READ_NO_IPA
