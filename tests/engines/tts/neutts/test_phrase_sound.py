"""The sound of a phrase while it is being made: silence around it, words, speed."""

import numpy as np
import pytest

from voicepipe.engines.base import Speech
from voicepipe.engines.tts.neutts.phrase_sound import LONGEST_PAUSE_S, PhraseSound, WordTimes, gain
from voicepipe.engines.tts.neutts.tempo import Tempo
from voicepipe.engines.tts.neutts.windows import CodeWindow, Sound

RATE, HOP = 24_000, 480
TEXT = "Yes, it is open."


def tone(seconds: float, hz: float = 150, level: float = 0.3) -> Sound:
    at = np.arange(round(seconds * RATE)) / RATE
    return (level * np.sin(2 * np.pi * hz * at)).astype(np.float32)


def silence(seconds: float) -> Sound:
    return np.zeros(round(seconds * RATE), np.float32)


def saying(text: str = TEXT, speed: float = 1.0, letter_s: float = 0.06) -> PhraseSound:
    return PhraseSound(text, RATE, HOP, 1.0, letter_s * RATE, speed)


def said(one: PhraseSound, sound: Sound, codes: int = 10) -> list[Speech]:
    """`sound` in windows of so many codes that have nothing around them."""
    speech = []
    for at in range(0, sound.size // HOP, codes):
        part = sound[at * HOP : (at + codes) * HOP]
        end = at + part.size // HOP
        speech.append(one.push(CodeWindow(at, end, at, end), part))
    return [*speech, one.end()]


def test_silence_before_the_first_word_and_after_the_last_is_not_heard() -> None:
    parts = said(saying(), np.concatenate([silence(0.4), tone(0.5), silence(0.3), tone(0.5), silence(0.6)]))
    pcm = np.concatenate([part.pcm for part in parts])
    assert abs(pcm[:240]).max() > 1000
    assert pcm.size / RATE == pytest.approx(0.5 + 0.3 + 0.5 + 0.22, abs=0.03), "with the pause that a point asks for"
    assert not parts[0].pcm.size and not parts[0].words
    assert [part.more for part in parts] == [True] * (len(parts) - 1) + [False]


def test_what_is_silent_for_long_has_been_said() -> None:
    one = saying()
    said_first = one.push(CodeWindow(0, 50, 0, 50), silence(1))
    assert not said_first.pcm.size and not one.over, "nothing was said yet"
    one.push(CodeWindow(50, 75, 50, 75), tone(0.5))
    long = round(LONGEST_PAUSE_S * 50) + 1
    one.push(CodeWindow(75, 75 + long, 75, 75 + long), silence(long / 50))
    assert one.over


def test_a_text_of_which_nothing_is_heard_has_no_sound_and_no_pause() -> None:
    assert not np.concatenate([part.pcm for part in said(saying(), silence(1))]).size


def test_a_voice_is_brought_to_one_level() -> None:
    assert gain(tone(1, level=0.5)) * 0.5 == pytest.approx(0.505, abs=0.01)
    assert gain(tone(1, level=0.001)) == 4.0 and gain(silence(1)) == 1.0


def test_words_end_about_when_they_are_said_each_in_its_piece() -> None:
    parts = said(saying(), tone(1.2))
    passed, ends = 0, []
    for part in parts:
        ends += [(word.text, (passed + word.end) / RATE) for word in part.words]
        assert all(0 <= word.end <= part.pcm.size for word in part.words)
        passed += part.pcm.size
    assert [word for word, _ in ends] == TEXT.split()
    times = [at for _, at in ends]
    assert times == sorted(times) and times[0] == pytest.approx(0.3, abs=0.05)
    assert times[-1] == pytest.approx(1.2, abs=0.02)


def test_a_voice_slower_than_its_recording_keeps_its_last_word_for_the_end() -> None:
    words = WordTimes(TEXT, 100)
    assert [word.text for word in words.until(10_000)] == ["Yes,", "it", "is"]
    assert not words.until(10_000)
    assert [(word.text, word.end) for word in words.rest(500)] == [("open.", 500)]


def test_a_voice_faster_than_its_recording_has_said_all_at_its_end() -> None:
    words = WordTimes(TEXT, 100)
    assert not words.until(300)
    rest = words.rest(1600)
    assert [word.text for word in rest] == TEXT.split() and rest[-1].end == 1600
    assert [word.end for word in rest] == sorted(word.end for word in rest)


@pytest.mark.parametrize("speed", [0.5, 0.7, 1.3, 2.0])
def test_another_speed_is_another_length_at_the_same_pitch(speed: float) -> None:
    tempo, sound = Tempo(speed, RATE), tone(2.0, hz=160)
    made = np.concatenate([*(tempo.push(sound[at : at + 3840]) for at in range(0, sound.size, 3840)), tempo.flush()])
    assert made.size == pytest.approx(sound.size / speed, rel=0.05)
    middle = made[made.size // 4 : made.size * 3 // 4]
    assert np.flatnonzero(np.diff(np.signbit(middle))).size / (middle.size / RATE) == pytest.approx(320, rel=0.05)
    assert np.abs(middle).max() == pytest.approx(0.3, rel=0.1)
    assert np.abs(np.diff(middle)).max() < 3 * np.abs(np.diff(sound)).max(), "it does not click"


def test_at_its_own_speed_nothing_is_touched() -> None:
    tempo, sound = Tempo(1.0, RATE), tone(0.5)
    assert tempo.push(sound) is sound and not tempo.flush().size


def test_pieces_of_any_size_make_the_same_sound() -> None:
    sound = np.random.default_rng(0).normal(size=20_000).astype(np.float32)
    whole, parts = Tempo(1.3, RATE), Tempo(1.3, RATE)
    expected = np.concatenate([whole.push(sound), whole.flush()])
    made = [parts.push(sound[at : at + 777]) for at in range(0, sound.size, 777)]
    assert np.array_equal(np.concatenate([*made, parts.flush()]), expected)
