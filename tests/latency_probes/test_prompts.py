"""Recordings of people, from packages that are made up here."""

import gzip
import wave
import zlib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from latency_probes import clips, prompts
from latency_probes.clips import FOREIGN, HUMAN, HUMAN_PAUSE
from latency_probes.plan import make_plan
from latency_probes.prompts import Pause
from latency_probes.timeline import WIRE_RATE
from latency_probes.transcripts import words
from voicepipe.audio import Pcm, dbfs
from voicepipe.base.errors import ProbeError

TEXTS = """; Core Asterisk Sounds

beep: [a beep of five whole words]
conf-full: That  conference is full, please try again.
conf-menu: Please press 1 to mute yourself now.
conf-short: Too short for this.
dir/pls: please hold while I try
demo-empty: This one is there but empty.
followme: We are not there at all.
lists: To lower the volume of others...
zip-number: Nobody who makes this hears what begins with z.
"""
RATE = 8000


def tones(*parts: tuple[float, int]) -> Pcm:
    """Seconds at a level: int16[n] at 8 kHz."""
    rng = np.random.default_rng(1)
    return np.concatenate([rng.normal(0, level, round(s * RATE)) for s, level in parts]).astype(np.int16)


@pytest.fixture
def share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place where the packages are installed in English and Italian."""
    for language in ("en", "it"):
        doc = tmp_path / "doc" / f"asterisk-core-sounds-{language}"
        doc.mkdir(parents=True)
        (doc / f"core-sounds-{language}.txt.gz").write_bytes(gzip.compress(TEXTS.encode()))
        folder = tmp_path / "asterisk" / "sounds" / prompts.LANGUAGES[language]
        for name in ("beep", "conf-full", "conf-menu", "conf-short", "dir/pls", "lists", "zip-number", "demo-empty"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            with wave.open(str(folder / f"{name}.wav"), "wb") as file:
                file.setnchannels(1)
                file.setsampwidth(2)
                file.setframerate(RATE)
                sound = tones((0.8, 3000), (0.3, 30), (0.8, 3000)) if name != "demo-empty" else tones((0.1, 1))
                file.writeframes(sound.tobytes())
    table = tmp_path / "pauses.json"
    crc = zlib.crc32((tmp_path / "asterisk/sounds/en_US_f_Allison/conf-full.wav").read_bytes())
    known = {"conf-full": Pause(950, 4, crc), "dir/pls": Pause(950, 2, crc + 1)}
    table.write_bytes(msgspec.json.encode({"en": known}))
    read, pauses = prompts.read.__wrapped__, prompts.pauses.__wrapped__
    monkeypatch.setattr(prompts, "read", lambda language, share=tmp_path: read(language, share))
    monkeypatch.setattr(prompts, "pauses", lambda language: pauses(language, tmp_path, table))
    return tmp_path


def test_plain_sentences_with_a_recording_are_read_and_the_others_kept_for_checks(share: Path) -> None:
    assert {prompt.name: prompt.text for prompt in prompts.read("en")} == {
        "conf-full": "That conference is full, please try again.",
        "dir/pls": "please hold while I try",
    }


def test_without_the_package_it_is_said_how_to_get_it(share: Path) -> None:
    with pytest.raises(ProbeError, match="apt install asterisk-core-sounds-fr asterisk-core-sounds-fr-wav"):
        clips.load(["human_fr"])


def test_another_edition_of_a_recording_has_its_words_elsewhere(share: Path) -> None:
    assert [prompt.name for prompt in prompts.pauses("en")] == ["conf-full"]


def test_people_say_prompts_one_a_call_as_they_are(share: Path) -> None:
    said = clips.load([HUMAN])
    assert [each.id for each in said] == ["human-conf-full", "human-dir/pls"]
    assert clips.speech(said[0], 1).pcm.size == 1.9 * WIRE_RATE
    assert [len(call.turns) for call in make_plan([HUMAN, "human_it"], 1).calls] == [1] * 4


def test_a_pause_is_filled_with_the_noise_of_the_recording(share: Path) -> None:
    (said,) = clips.load([HUMAN_PAUSE])
    assert (said.before, said.cut_ms) == ("That conference is full,", 950)
    speech, again, other = (clips.speech(said, seed) for seed in (1, 1, 2))
    assert np.array_equal(speech.pcm, again.pcm) and speech.pcm.size != other.pcm.size
    assert 0.3 <= speech.pcm.size / WIRE_RATE - 1.9 <= 0.7
    pause = speech.pcm[round(0.96 * WIRE_RATE) : round(1.2 * WIRE_RATE)]
    assert dbfs(pause) == pytest.approx(20 * np.log10(30 / 32768), abs=3)
    assert speech.resumed > 1.2 * WIRE_RATE


def test_places_for_pauses_are_inside_the_phrase() -> None:
    known = msgspec.json.decode(prompts.PAUSES.read_bytes(), type=dict[str, dict[str, Pause]])
    for placed in known.values():
        assert len(placed) > 10
        assert all(name[0].lower() in "abcdefghijklm" and pause.words >= 2 for name, pause in placed.items())


def test_every_language_has_a_set() -> None:
    assert set(FOREIGN) == {"human_es", "human_fr", "human_it", "human_ru", "hard_de"}
    assert words("Número de extensión") == words("numero de extension")
