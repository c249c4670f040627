"""A phrase from text to samples: when each written word has been heard."""

from collections.abc import AsyncGenerator

import numpy as np
import pytest

from voicepipe.audio import RATE
from voicepipe.call.speech import KEPT, KEPT_BYTES, Speaker
from voicepipe.engines.base import Speech, Word
from voicepipe.engines.scripted import ScriptedTts


class Voice(ScriptedTts):
    """One second of sound and one of silence for any text; it knows the words' times if it is given them."""

    def __init__(self, *ends: int) -> None:
        super().__init__(rate=RATE)
        self.ends = ends

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        sound = np.concatenate([np.full(RATE, 5000, np.int16), np.zeros(RATE, np.int16)])
        yield Speech(sound, tuple(Word("", end) for end in self.ends))


async def words(voice: Voice, text: str) -> list[tuple[str, int]]:
    (phrase,) = [phrase async for phrase in Speaker(voice, RATE).say(text, voice="", speed=1)]
    return list(phrase.words)


async def test_the_engines_times_are_those_of_the_spoken_words() -> None:
    assert await words(Voice(100, 200, 300), "It is open.") == [("It", 100), ("is", 200), ("open.", 300)]
    written = await words(Voice(100, 200, 300, 400, 500), "That is $18.50")
    assert written == [("That", 100), ("is", 200), ("$18.50", 500)]


async def test_without_times_long_words_take_longer_and_the_silence_at_the_end_is_no_words() -> None:
    (a, first), (long, second), (it, last) = await words(Voice(), "A incomprehensibility it")
    assert last == pytest.approx(RATE, rel=0.01)
    assert first < 0.15 * RATE and second > 0.8 * RATE


async def test_times_that_do_not_fit_the_words_are_not_used() -> None:
    assert await words(Voice(100), "Yes it is.") == await words(Voice(), "Yes it is.")


async def test_silence_has_been_heard_at_once() -> None:
    class Mute(Voice):
        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            yield Speech(np.zeros(RATE, np.int16))

    assert await words(Mute(), "Yes.") == [("Yes.", 0)]


async def test_what_is_made_ahead_is_bounded_however_often_the_settings_change() -> None:
    """A client that changes its speed all the time once had all of them kept, for as long as the call lasted."""
    speaker = Speaker(Voice(), RATE)
    for n in range(200):
        await speaker.keep("One moment, please.", voice="", speed=0.5 + n / 200)
    assert len(speaker._kept) == KEPT and speaker.has("One moment, please.", voice="", speed=0.5 + 199 / 200)
    long = Speaker(Voice(), RATE)
    long.tts.rate = 50  # 40 s of sound each
    for n in range(KEPT):
        await long.keep("One moment, please.", voice="", speed=1 + n)
    assert sum(phrase.pcm.nbytes for kept in long._kept.values() for phrase in kept) <= KEPT_BYTES
