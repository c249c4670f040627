"""espeak-ng: what is cut off, how loud it is, when words end, and that no text can do harm."""

import asyncio
import ctypes
import gc
import threading
import time
from collections.abc import AsyncIterator

import numpy as np
import pytest

from tests.engines.contract import whole
from tests.support.waiting import until
from voicepipe.audio import dbfs
from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.engines.hosting.failures import FAILURES
from voicepipe.engines.tts import espeak
from voicepipe.engines.tts.espeak import EspeakTts, Phonemizer
from voicepipe.engines.tts.shaping import AUDIBLE, PAUSE_MS
from voicepipe.languages.pronunciation import BEGINS, ENDS

RATE = 22050
SENTENCE = "We are open Tuesday to Sunday, from noon to ten in the evening."


@pytest.fixture
async def tts() -> AsyncIterator[EspeakTts]:
    engine = EspeakTts()
    await engine.start()
    yield engine
    await engine.close()


@pytest.mark.engine
async def test_speech_is_loud_enough_and_never_clipped(tts: EspeakTts) -> None:
    for text in ("Yes.", "I see.", SENTENCE):
        peak = np.abs((await whole(tts, text)).pcm.astype(np.int32)).max()
        assert -6.5 < 20 * np.log10(peak / 32768) < -3


@pytest.mark.engine
@pytest.mark.parametrize("end", [".", ",", "!", ""])
async def test_the_pause_after_a_phrase_is_the_one_of_its_sign(tts: EspeakTts, end: str) -> None:
    pcm = (await whole(tts, f"We are open{end}")).pcm
    pause = PAUSE_MS.get(end, 60) * RATE // 1000
    assert not pcm[-pause:].any()
    assert np.sqrt(np.mean(pcm[-pause - RATE // 100 : -pause].astype(float) ** 2)) > AUDIBLE / 2


@pytest.mark.engine
async def test_words_end_where_they_are_spoken(tts: EspeakTts) -> None:
    speech = await whole(tts, "Yes, incomprehensibilities.")
    first, last = speech.words
    assert first.text == "Yes," and last.end < speech.pcm.size
    assert first.end < last.end / 2


@pytest.mark.engine
@pytest.mark.parametrize(
    ("voice", "text", "words"),
    [
        ("cmn", "您好，早上好。", ["您", "好，", "早", "上", "好。"]),
        ("ja", "こんにちは。げんき", ["こ", "ん", "に", "ち", "は。", "げ", "ん", "き"]),
        ("hi", "नमस्ते, आप कैसे हैं।", ["नमस्ते,", "आप", "कैसे", "हैं।"]),
    ],
)
async def test_words_of_any_script_end_one_after_the_other(
    tts: EspeakTts, voice: str, text: str, words: list[str]
) -> None:
    """espeak-ng tells of several Chinese or Japanese characters as one."""
    speech = await whole(tts, text, voice=voice)
    assert [word.text for word in speech.words] == words
    ends = [word.end for word in speech.words]
    assert ends == sorted(set(ends)) and ends[-1] <= speech.pcm.size


@pytest.mark.engine
@pytest.mark.parametrize(
    "text",
    [
        "<speak><break time='10s'/>hello</speak>",
        "[[h@l'oU]] hello",
        "hello \x01 300s there \x01b",
        "null \0 byte",
        "<audio src='/etc/passwd'/> hello",
        "\ud800 lone surrogate",
        "مرحبا hello 你好 🎉",
    ],
)
async def test_text_is_only_text(tts: EspeakTts, text: str) -> None:
    speech = await whole(tts, text)
    assert 0 < speech.pcm.size < 20 * RATE


@pytest.mark.engine
async def test_long_texts_come_in_pieces_and_do_not_hold_the_loop(tts: EspeakTts) -> None:
    lags: list[float] = []

    async def watch() -> None:
        while True:
            begun = time.perf_counter()
            await asyncio.sleep(0.002)
            lags.append(time.perf_counter() - begun)

    watching = asyncio.ensure_future(watch())
    count = len([piece async for piece in tts.speak(" ".join([SENTENCE] * 100))])
    watching.cancel()
    assert count >= 20
    assert np.percentile(lags, 90) < 0.02


@pytest.mark.engine
async def test_speech_of_new_lengths_leaves_nothing_behind(tts: EspeakTts) -> None:
    """ctypes keeps every array type that is ever made: one for each length would never be given back."""

    def array_types() -> int:
        gc.collect()
        return sum(type(found) is type(ctypes.c_short * 1) for found in gc.get_objects())

    before = array_types()
    for number in range(20):
        await whole(tts, f"{SENTENCE} {number}")
    assert array_types() == before


@pytest.mark.engine
async def test_an_unstarted_engine_says_so() -> None:
    with pytest.raises(EngineError):
        await anext(EspeakTts().speak("hello"))


@pytest.mark.engine
async def test_voices_differ(tts: EspeakTts) -> None:
    assert {"en-us", "en-gb", "de"} <= set(tts.voices())
    sizes = {voice: (await whole(tts, SENTENCE, voice=voice)).pcm.size for voice in ("en-us", "en-gb-scotland", "de")}
    assert len(set(sizes.values())) == 3


@pytest.mark.engine
async def test_a_variant_may_follow_the_voice(tts: EspeakTts) -> None:
    plain, varied = await whole(tts, SENTENCE), await whole(tts, SENTENCE, voice="en-us+f3")
    assert abs(pitch(varied.pcm) - pitch(plain.pcm)) > 20


def pitch(pcm: np.ndarray) -> float:
    """The most common pitch in Hz, by autocorrelation."""
    best = []
    for at in range(0, pcm.size - 2048, 2048):
        frame = pcm[at : at + 2048].astype(float)
        if dbfs(pcm[at : at + 2048]) > -25:
            spectrum = np.correlate(frame, frame, "full")[2047:]
            best.append(RATE / (60 + int(np.argmax(spectrum[60:300]))))
    return float(np.median(best))


@pytest.mark.engine
async def test_a_voice_that_hangs_is_down_and_comes_back_with_another_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread in a library cannot be ended: it is left behind."""
    free = threading.Event()
    tts = EspeakTts()
    await tts.start()
    library = tts.core.model
    monkeypatch.setattr(library, "synthesize", lambda *asked: free.wait() and library)
    monkeypatch.setattr(espeak, "STALL_S", 0.05)
    hangs = asyncio.create_task(anext(tts.speak("Hello.")))
    await until(lambda: not tts.alive)
    monkeypatch.setattr(espeak, "STALL_S", 60.0)
    with pytest.raises(EngineDead):
        await hangs
    await until(lambda: tts.alive)
    assert (await anext(tts.speak("Hello."))).pcm.size and tts.core.model is not library
    free.set()
    await tts.close()


async def test_a_voice_that_fails_in_a_way_nobody_expected_ends_a_phrase_and_is_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tts = EspeakTts()
    await tts.start()

    def breaks(*asked: object) -> None:
        raise RuntimeError("nobody expected this")

    monkeypatch.setattr(tts.core.model, "synthesize", breaks)
    for _ in range(FAILURES):
        with pytest.raises(EngineError, match="nobody expected"):
            await anext(tts.speak("Hello."))
    await until(lambda: not tts.alive)
    await until(lambda: tts.alive)
    assert (await anext(tts.speak("Hello."))).pcm.size
    await tts.close()


async def test_a_text_that_cannot_be_spoken_is_not_the_voice_s_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client's text comes as often as it likes."""
    tts = EspeakTts()
    await tts.start()
    core = tts.core
    speaks = core.model.synthesize

    def fails(text: str, voice: str, words_per_minute: int) -> object:
        if "unsayable" in text:
            raise RuntimeError("nobody expected this")
        return speaks(text, voice, words_per_minute)

    monkeypatch.setattr(core.model, "synthesize", fails)
    for _ in range(3 * FAILURES):
        with pytest.raises(EngineError, match="nobody expected"):
            await anext(tts.speak("unsayable"))
    assert tts.alive and (await anext(tts.speak("Hello."))).pcm.size and tts.core is core
    await tts.close()


@pytest.mark.parametrize("hangs", [False, True])
async def test_a_voice_that_does_not_say_a_word_is_not_taken_and_leaves_no_thread(
    monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    free = threading.Event()

    def mute(*asked: object) -> None:
        if hangs:
            free.wait(20)
        raise EngineError("espeak-ng could not speak")

    monkeypatch.setattr(espeak._Library, "synthesize", mute)
    monkeypatch.setattr(espeak, "STALL_S", 1.0)
    before = set(threading.enumerate())
    with pytest.raises(EngineError, match="did not say a word" if hangs else "could not speak"):
        await EspeakTts().start()
    free.set()
    await until(lambda: set(threading.enumerate()) <= before)


@pytest.mark.engine
@pytest.mark.parametrize(
    ("default", "language", "speaks"),
    [
        ("de", "en", "en-us"),
        ("de", "en-gb", "en-gb"),
        ("de", "de-at", "de"),
        ("de", "", "de"),
        ("en-gb", "en", "en-gb"),
    ],
)
async def test_the_callers_language_chooses_the_voice(default: str, language: str, speaks: str) -> None:
    tts = EspeakTts(default)
    await tts.start()
    assert tts.voice_for("", language) == speaks
    await tts.close()


@pytest.fixture(scope="module")
def phonemizer() -> Phonemizer:
    return Phonemizer()


@pytest.mark.engine
@pytest.mark.parametrize(
    ("text", "phonemes"),
    [
        ("Hello, world!", "həlˈoʊ, wˈɜːld!"),  # as phonemizer writes them
        ("A table for two, on Friday at seven.", "ɐ tˈeɪbəl fɔːɹ tˈuː, ˌɔn fɹˈaɪdeɪ æt sˈɛvən."),
        ("No... it costs — okay?", "nˈoʊ... ɪt kˈɔsts — oʊkˈeɪ?"),
        ("3.5", "θɹˈiː pɔɪnt fˈaɪv"),
        ("...", "..."),
        ("", ""),
    ],
)
def test_words_stresses_and_punctuation(phonemizer: Phonemizer, text: str, phonemes: str) -> None:
    assert phonemizer.phonemes(text, "en-us") == phonemes


@pytest.mark.engine
@pytest.mark.parametrize("text", ["<|speech_1|>", "[[h@]]", "<break/>", "\u4f60\u597d", "x" * 2000, "a\tb\nc"])
def test_any_text_becomes_phonemes_and_no_marks_of_the_model(phonemizer: Phonemizer, text: str) -> None:
    written = phonemizer.phonemes(text, "en-us")
    assert written and not set(written) & set("<|>[]")


@pytest.mark.engine
@pytest.mark.parametrize("language", ["en", "en-us", "en-US", "en-gb", "en-GB", "fr", "fr-fr", "pt-br"])
def test_a_language_has_the_name_that_espeak_lists_it_by(phonemizer: Phonemizer, language: str) -> None:
    """espeak-ng lists "en-gb" and "fr-fr", and does not know them when it is asked for them."""
    assert phonemizer.phonemes("table", language)


@pytest.mark.engine
def test_languages(phonemizer: Phonemizer) -> None:
    assert phonemizer.phonemes("gut", "de") == "ɡˈuːt" != phonemizer.phonemes("gut", "en-us")
    with pytest.raises(EngineError, match="no voice 'xx-none': write a language"):
        phonemizer.phonemes("ja", "xx-none")
    with pytest.raises(EngineError, match="no voice 'pt-brasil': write a language such as pt-br"):
        phonemizer.phonemes("sim", "pt-brasil")
    assert phonemizer.phonemes("Hello", "en-us") == "həlˈoʊ"


@pytest.mark.engine
async def test_ipa_is_said_by_its_sounds_and_words_keep_their_places(tts: EspeakTts) -> None:
    text = f"Ask {BEGINS}ʃɪvˈɔːn{ENDS}, or somebody else."
    spelled, sounded = await whole(tts, "Ask Shivawn, or somebody else."), await whole(tts, text)
    assert [word.text for word in sounded.words] == text.split()
    ends = [[word.end for word in speech.words] for speech in (spelled, sounded)]
    assert np.abs(np.diff(ends, axis=0)).max() < 0.25 * RATE
    letters = await whole(tts, "Ask [[h@l'oU]].")
    assert letters.pcm.size > (await whole(tts, f"Ask {BEGINS}həlˈoʊ{ENDS}.")).pcm.size, "a model gives no orders"
    assert (await whole(tts, f"[[h@l'oU]] {BEGINS}həlˈoʊ{ENDS}.")).pcm.size > letters.pcm.size / 2


def test_a_phonemizer_keeps_the_ipa_that_it_is_given() -> None:
    phonemizer = Phonemizer()
    assert phonemizer.phonemes(f"Ask {BEGINS}ʃɪvˈɔːn{ENDS}, now.", "en-us") == "ˈæsk ʃɪvˈɔːn, nˈaʊ."
    assert phonemizer.phonemes(f"{BEGINS}wˈɪn{ENDS}", "en-us") == "wˈɪn"
