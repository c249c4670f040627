"""How natural voices pause, by a network that is made up, and by hibari's."""

from collections.abc import Sequence

import numpy as np
import pytest

from latency_probes.timeline import WIRE_RATE
from latency_probes.voices import espeak, natural
from latency_probes.voices.heart import Heart
from latency_probes.voices.natural import Floats, speak, written
from voicepipe.audio import dbfs


class Buzzer:
    """Each letter sounds for 50 ms, and commas are silent for 200. Implements `natural.Network`."""

    name = "buzzer"
    rate = WIRE_RATE
    hop = WIRE_RATE // 100

    def phonemes(self, text: str) -> str:
        return text.lower()

    def inputs(self, phonemes: str) -> list[tuple[int, int]]:
        return [(0, -1), *((ord(letter), index) for index, letter in enumerate(phonemes)), (0, len(phonemes))]

    def lengths(self, numbers: Sequence[int], speed: float, rng: np.random.Generator) -> Floats:
        return np.array([20 if number == ord(",") else 5 for number in numbers], np.float32)

    def sound(self, numbers: Sequence[int], lengths: Floats, rng: np.random.Generator) -> Floats:
        level = np.array([0 if number in (0, ord(","), ord(" ")) else 0.3 for number in numbers])
        loud = np.repeat(level, lengths.astype(int) * self.hop)
        tone: Floats = (loud * np.sin(np.arange(loud.size) * 2 * np.pi * 200 / self.rate)).astype(np.float32)
        return tone


def seconds(samples: int) -> float:
    return samples / WIRE_RATE


def test_the_last_syllable_before_a_pause_inside_a_phrase_is_held_and_dies_away() -> None:
    plain, held = speak(Buzzer(), "is the man here", "x"), speak(Buzzer(), "is the man here", "x", "is the", held=True)
    longer = seconds(held.pcm.size - plain.pcm.size)
    assert 0.03 <= longer <= 0.05, "the e of 50 ms, 1.6 to 2 times as long"
    assert seconds(held.cut) == pytest.approx(0.05 * 7 + longer, abs=natural.REACH_MS / 1000)
    assert dbfs(held.pcm[held.cut - 120 : held.cut]) < dbfs(held.pcm) - 10


def test_after_words_that_could_stand_alone_a_comma_is_spoken_and_its_silence_taken_out() -> None:
    take = speak(Buzzer(), "yes a table", "x", "yes")
    without = speak(Buzzer(), "yes a table", "x")
    assert seconds(take.pcm.size - without.pcm.size) == pytest.approx(-0.01, abs=0.02), "silence of 250 ms became 40"
    assert seconds(take.cut) == pytest.approx(0.05 + 3 * 0.05 + 0.02, abs=0.006)


@pytest.mark.parametrize(
    ("text", "end"),
    [("and what about dinner", "?"), ("good evening do you have a table", "?"), ("book a table please", ".")],
)
def test_questions_are_asked(text: str, end: str) -> None:
    said: list[str] = []

    class Noting(Buzzer):
        def phonemes(self, text: str) -> str:
            said.append(text)
            return super().phonemes(text)

    speak(Noting(), text, "x")
    assert said[0].endswith(end)


def test_texts_are_written_as_people_write() -> None:
    assert written("on friday i'd like it") == "On Friday I'd like it"
    assert written("friday and i", begins=False) == "Friday and I"


def test_hibari_says_the_same_every_time_and_pauses_where_the_words_end() -> None:
    first, again, other = (
        speak(Heart(), "can you give me your address please", name, "can you give me your", held=True)
        for name in ("a", "a", "b")
    )
    assert np.array_equal(first.pcm, again.pcm) and first.cut == again.cut
    assert first.pcm.size != other.pcm.size
    assert 0.4 < first.cut / first.pcm.size < 0.7


def test_espeak_says_the_same_every_time_and_pauses_where_the_words_end() -> None:
    text, before = "Haben Sie noch ein Zimmer mit Blick auf den See?", "Haben Sie noch ein Zimmer mit"
    first, again = (espeak.speak(text, "de", before) for _ in range(2))
    assert np.array_equal(first.pcm, again.pcm) and first.cut == again.cut
    assert 0.45 < first.cut / first.pcm.size < 0.75
    assert espeak.speak(text, "de").cut == 0
    assert not np.array_equal(espeak.speak(text, "de+m3").pcm, espeak.speak(text, "de").pcm)
