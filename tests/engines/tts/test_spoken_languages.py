"""Which language an agent's voice speaks, as far as that is known without loading a model."""

import sys

import pytest

from voicepipe import config
from voicepipe.agent import Agent
from voicepipe.engines.tts.spoken_languages import foreign_voice, listed, spoken_by

KOKORO = {"kokoro": {"model": "kokoro-v1.0.int8", "voices": "kokoro-v1.0.int8", "voice": "jf_alpha"}}


def settings(tts: str, **tables: object) -> config.Config:
    return config.parse({"engines": {"tts": tts}, **tables})


@pytest.mark.parametrize(
    ("tts", "asked", "tag", "spoken"),
    [
        ("auto", "", "en-GB", ("heart", True)),
        ("auto", "", "de", ("de", True)),
        ("auto", "", "zh", ("cmn", True)),
        ("auto", "", "no", ("nb", True)),
        ("auto", "heart", "de", ("heart", False)),
        ("auto", "fr-fr", "de", ("fr-fr", False)),
        ("auto", "de+f2", "de", ("de+f2", True)),
        ("auto", "", "tlh", ("en-us", False)),
        ("espeak", "", "it", ("it", True)),
        ("hibari", "", "fr", ("heart", False)),
    ],
)
async def test_the_voice_of_a_language(tts: str, asked: str, tag: str, spoken: tuple[str, bool]) -> None:
    async with listed(settings(tts)) as voices:
        assert voices and spoken_by(voices, asked, tag) == spoken


async def test_the_advice_is_a_voice_or_another_engine() -> None:
    async with listed(settings("auto")) as voices:
        assert voices
        assert foreign_voice(Agent("desk", language="de"), voices) == ""
        said = foreign_voice(Agent("desk", language="de", voice="heart"), voices)
        assert said.endswith("speaks in 'de' by the voice 'heart', which speaks another language: there is de (voice)")
    async with listed(settings("hibari")) as voices:
        assert voices and "choose another engine (engines.tts)" in foreign_voice(Agent("desk", language="de"), voices)


async def test_of_engines_that_are_loaded_first_nothing_is_said_before() -> None:
    async with listed(settings("coqui")) as voices:
        assert voices is None
    async with listed(settings("kokoro", kokoro={"voices": "nowhere.npz"})) as voices:
        assert voices is None


async def test_without_espeak_an_english_voice_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    async with listed(settings("auto")) as voices:
        assert voices and spoken_by(voices, "", "de") == ("heart", False)
    async with listed(settings("espeak")) as voices:
        assert voices is None


async def test_the_voices_of_kokoros_file_are_listed() -> None:
    async with listed(settings("kokoro", **KOKORO)) as voices:
        if voices is None:
            pytest.skip("Kokoro's voices are not here")
        assert spoken_by(voices, "", "ja") == ("jf_alpha", True)
        assert spoken_by(voices, "", "de") == ("jf_alpha", False)
