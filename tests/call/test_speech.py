"""A phrase from text to samples: when each written word has been heard."""

import asyncio
import threading
from collections.abc import AsyncGenerator

import numpy as np
import pytest

from tests.support.scripted import ScriptedTts
from tests.support.waiting import until
from voicepipe.agent import Agent, Pronunciation
from voicepipe.audio import RATE
from voicepipe.call.speech import KEPT, KEPT_BYTES, PhraseSpeaker
from voicepipe.engines.base import Speech, Word
from voicepipe.engines.tts.conversion import Conversion


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
    (phrase,) = [phrase async for phrase in PhraseSpeaker(voice, RATE).say(text, voice="", speed=1)]
    return list(phrase.words)


async def test_the_engines_times_are_those_of_the_spoken_words() -> None:
    assert await words(Voice(100, 200, 300), "It is open.") == [("It ", 100), ("is ", 200), ("open.", 300)]
    written = await words(Voice(100, 200, 300, 400, 500), "That is $18.50")
    assert written == [("That ", 100), ("is ", 200), ("$18.50", 500)]


async def test_without_times_long_words_take_longer_and_the_silence_at_the_end_is_no_words() -> None:
    (a, first), (long, second), (it, last) = await words(Voice(), "A incomprehensibility it")
    assert last == pytest.approx(RATE, rel=0.01)
    assert first < 0.15 * RATE and second > 0.8 * RATE


async def test_what_is_said_otherwise_is_heard_as_it_is_written() -> None:
    own: dict[str, str | Pronunciation] = {"IKEA": "eye key ah", "New York": "/njuː ˈjɔːk/"}
    speaker = PhraseSpeaker(Voice(100, 200, 300, 400, 500), RATE, Agent("a", pronounce=own))
    (phrase,) = [phrase async for phrase in speaker.say("At IKEA, now.", voice="", speed=1)]
    assert phrase.text == "At IKEA, now."
    assert phrase.words == (("At ", 100), ("IKEA, ", 400), ("now.", 500))


@pytest.mark.parametrize("text", ["？", "! ", "…)", "**"])
async def test_marks_alone_are_no_utterance(text: str) -> None:
    """The second mark of "！？" may be a phrase of its own."""
    assert [phrase async for phrase in PhraseSpeaker(Voice(), RATE).say(text, voice="", speed=1)] == []


async def test_times_that_do_not_fit_the_words_are_not_used() -> None:
    assert await words(Voice(100), "Yes it is.") == await words(Voice(), "Yes it is.")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("您好，世界。", ["您", "好，", "世", "界。"]),
        ("**はい** 「元気」", ["**は", "い** ", "「元", "気」"]),
        ("น้ำ ดี", ["น้ำ ", "ดี"]),
        ("मैं ठीक हूँ।", ["मैं ", "ठीक ", "हूँ।"]),
    ],
)
@pytest.mark.parametrize("knows", [True, False])
async def test_words_of_any_script_have_times(text: str, expected: list[str], knows: bool) -> None:
    """By the voice, if it says as many words; else by their share of the sound."""
    ends = tuple(range(1000, 1000 * len(expected) + 1, 1000)) if knows else ()
    timed = await words(Voice(*ends), text)
    assert [word for word, _ in timed] == expected
    if knows:
        assert [end for _, end in timed] == list(ends)
    else:
        assert [end for _, end in timed] == sorted({end for _, end in timed}) and 0 < timed[0][1] < RATE


async def test_silence_has_been_heard_at_once() -> None:
    class Mute(Voice):
        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            yield Speech(np.zeros(RATE, np.int16))

    assert await words(Mute(), "Yes.") == [("Yes.", 0)]


async def test_what_is_made_ahead_is_bounded_however_often_the_settings_change() -> None:
    """A client that changes its speed all the time once had all of them kept, for as long as the call lasted."""
    speaker = PhraseSpeaker(Voice(), RATE)
    for n in range(200):
        await speaker.keep("One moment, please.", voice="", speed=0.5 + n / 200)
    assert len(speaker._kept) == KEPT and speaker.has("One moment, please.", voice="", speed=0.5 + 199 / 200)
    long = PhraseSpeaker(Voice(), RATE)
    long.tts.rate = 50  # 40 s of sound each
    for n in range(KEPT):
        await long.keep("One moment, please.", voice="", speed=1 + n)
    assert sum(phrase.pcm.nbytes for kept in long._kept.values() for phrase in kept) <= KEPT_BYTES


class Streams(Voice):
    """A buzz in three pieces that belong together, at 24 kHz. What is said in each is told with it."""

    SOUND = (8000 * np.sin(np.arange(24_000) / 9)).astype(np.int16)
    CUTS = (0, 3840, 15_001, 24_000)
    SAID = ((), ("Yes", "it", "costs"), ("eighteen", "dollars", "fifty"))

    def __init__(self) -> None:
        super().__init__()
        self.rate = 24_000

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        for number, said in enumerate(self.SAID):
            begin, end = self.CUTS[number : number + 2]
            words = tuple(Word(word, 100 * (at + 1)) for at, word in enumerate(said))
            yield Speech(self.SOUND[begin:end], words, more=number < 2)


async def test_words_of_a_voice_that_streams_come_with_the_piece_in_which_they_end() -> None:
    """All of them used to be told with its first piece, of which a caller who interrupts has heard everything."""
    phrases = [
        phrase async for phrase in PhraseSpeaker(Streams(), 24_000).say("Yes it costs $18.50", voice="", speed=1)
    ]
    assert [phrase.text for phrase in phrases] == ["Yes it costs $18.50", "", ""]
    assert [phrase.more for phrase in phrases] == [True, True, False]
    assert [phrase.words for phrase in phrases] == [
        (),
        (("Yes ", 100), ("it ", 200), ("costs ", 300)),
        (("$18.50", 300),),
    ]


async def test_words_that_a_voice_forgot_end_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Streams, "SAID", ((), ("Yes",), ()))
    phrases = [phrase async for phrase in PhraseSpeaker(Streams(), 24_000).say("Yes it costs", voice="", speed=1)]
    assert [phrase.words for phrase in phrases] == [(), (("Yes ", 100),), (("it ", 8999), ("costs", 8999))]


async def test_what_streams_is_converted_as_one_sound() -> None:
    """Each piece by itself would begin and end with what the converter's filter makes of silence: it clicked."""
    phrases = [phrase async for phrase in PhraseSpeaker(Streams(), RATE).say("Yes it costs $18.50", voice="", speed=1)]
    whole = Conversion(24_000, RATE)(Speech(Streams.SOUND)).pcm
    assert np.array_equal(np.concatenate([phrase.pcm for phrase in phrases]), whole)


async def test_who_stops_listening_closes_the_voice_at_once() -> None:
    """What an engine makes for nobody others wait for."""
    closed = False

    class Closes(Streams):
        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            nonlocal closed
            try:
                async for speech in super().speak(text):
                    yield speech
            finally:
                closed = True

    phrases = PhraseSpeaker(Closes(), RATE).say("Yes it costs $18.50", voice="", speed=1)
    await anext(phrases)
    await phrases.aclose()
    assert closed


class InParts(Voice):
    """Three sounds for any text, at 22.05 kHz."""

    PARTS = tuple(Speech(np.full(size, size, np.int16), (Word("", size),)) for size in (30_000, 500, 4000))

    def __init__(self) -> None:
        super().__init__()
        self.rate = 22_050

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        for part in self.PARTS:
            yield part


async def test_another_rate_is_converted_part_by_part_while_the_event_loop_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    convert, seen, go_on = Conversion.__call__, list[int](), threading.Event()

    def held_up(conversion: Conversion, sound: Speech) -> Speech:
        seen.append(sound.pcm.size)
        assert go_on.wait(10)
        return convert(conversion, sound)

    monkeypatch.setattr(Conversion, "__call__", held_up)
    say = PhraseSpeaker(InParts(), RATE).say("Hello", voice="", speed=1)
    first = asyncio.ensure_future(anext(say))
    await until(lambda: bool(seen))
    go_on.set()
    phrases = [await first, *[phrase async for phrase in say]]
    assert seen == [30_000, 500, 4000]
    expected = [convert(Conversion(22_050, RATE), part) for part in InParts.PARTS]
    assert [phrase.text for phrase in phrases] == ["Hello", "", ""]
    assert all(np.array_equal(phrase.pcm, sound.pcm) for phrase, sound in zip(phrases, expected, strict=True))
    assert phrases[0].words == (("Hello", expected[0].words[0].end),)


async def test_who_stops_listening_does_not_wait_for_what_is_being_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    began, go_on = threading.Event(), threading.Event()

    def held_up(conversion: Conversion, sound: Speech) -> Speech:
        began.set()
        assert go_on.wait(10)
        return sound

    monkeypatch.setattr(Conversion, "__call__", held_up)
    saying = asyncio.ensure_future(PhraseSpeaker(InParts(), RATE).whole("Hello", voice="", speed=1))
    await until(began.is_set)
    saying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await saying
    go_on.set()
