"""Words that callers are expected to say: real weights read names that they would not, and make none up."""

from collections.abc import Iterator

import numpy as np
import pytest

from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.base.words import plain
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper import each_vocabulary
from voicepipe.engines.asr.whisper_language import PassageLanguage
from voicepipe.engines.asr.whisper_model import LoadedWhisper, Passage, WhisperReading
from voicepipe.engines.asr.whisper_vocabulary import MOST_TOKENS, said_before
from voicepipe.engines.tts.hibari import HibariModel

pytestmark = pytest.mark.engine
NAMES = ("Siobhan", "Kowalczyk", "Invisalign", "Okonkwo", "Ramanathan")
WITH_A_NAME = {
    "I would like to see doctor Kowalczyk.": "Kowalczyk",
    "Can I speak to Siobhan please?": "Siobhan",
    "How much is Invisalign?": "Invisalign",
}
WITHOUT = ("What are your opening hours?", "A table for two please.", "I would like to cancel my appointment.")


@pytest.fixture(scope="module")
def whisper() -> Iterator[LoadedWhisper]:
    model = LoadedWhisper(WhisperConfig())
    yield model
    model.unload()


@pytest.fixture(scope="module")
def voice() -> HibariModel:
    return HibariModel()


def said(voice: HibariModel, text: str) -> Pcm:
    resampler = Resampler(24_000, RATE)
    return np.concatenate([resampler(voice.speak(text, 1.0).pcm), resampler.flush()])


def read(whisper: LoadedWhisper, pcm: Pcm, vocabulary: tuple[str, ...] = NAMES) -> str:
    (reading,) = whisper.read([Passage(pcm, vocabulary=vocabulary)])
    return "".join(word.text for word in reading.words)


def test_names_are_read_as_they_are_written(whisper: LoadedWhisper, voice: HibariModel) -> None:
    right = {text: name in read(whisper, said(voice, text)) for text, name in WITH_A_NAME.items()}
    before = {text: name in read(whisper, said(voice, text), ()) for text, name in WITH_A_NAME.items()}
    assert sum(right.values()) >= 2 and not any(before.values())


def test_what_holds_no_name_is_read_as_without(whisper: LoadedWhisper, voice: HibariModel) -> None:
    for text in WITHOUT:
        assert plain(read(whisper, said(voice, text))) == plain(read(whisper, said(voice, text), ())) == plain(text)


def noises() -> Iterator[Pcm]:
    """Silence, hums and noise, as a caller's line has them."""
    chance, t = np.random.default_rng(5), np.arange(2 * RATE) / RATE
    for seconds in (0.3, 1.0, 4.0):
        yield np.zeros(int(RATE * seconds), np.int16)
    for hertz in (50, 110, 230):
        yield (4000 * np.sin(2 * np.pi * hertz * t)).astype(np.int16)
    for level in (50, 500, 4000):
        yield chance.normal(0, level, RATE).astype(np.int16)


@pytest.mark.parametrize("vocabulary", [NAMES, NAMES[:1]])
def test_nobody_is_heard_saying_them_in_silence_and_noise(vocabulary: tuple[str, ...], whisper: LoadedWhisper) -> None:
    heard = [read(whisper, sound, vocabulary) for sound in noises()]
    assert not any(plain(name) in plain(text) for text in heard for name in vocabulary)


def test_a_vocabulary_beyond_the_decoders_memory_is_cut_at_its_end(whisper: LoadedWhisper, voice: HibariModel) -> None:
    tokenizer, long = whisper._tokenizer("en"), tuple(f"Kowalczyk{number}" for number in range(300))
    tokens = said_before(long, tokenizer)
    assert tokens[0] == tokenizer.sot_prev and MOST_TOKENS - 20 < len(tokens) <= MOST_TOKENS + 1
    assert tokenizer.decode(tokens[1:]).startswith(" Kowalczyk0, Kowalczyk1,")
    assert said_before((), tokenizer) == said_before(("x" * 5000,), tokenizer) == []
    assert plain(read(whisper, said(voice, WITHOUT[0]), long)) == plain(WITHOUT[0])


def test_each_vocabulary_has_a_pass_of_its_own_and_each_passage_its_reading() -> None:
    passes: list[list[Passage]] = []

    def reads(passages: list[Passage]) -> list[WhisperReading]:
        passes.append(passages)
        return [WhisperReading((), language=PassageLanguage(str(passage.upto), sure=True)) for passage in passages]

    quiet = np.zeros(0, np.int16)
    given = [Passage(quiet, vocabulary=words, upto=at) for at, words in enumerate(((), ("a",), (), ("b",)))]
    assert [reading.language.name for reading in each_vocabulary(reads, given)] == ["0", "1", "2", "3"]
    assert sorted(len(passage) for passage in passes) == [1, 1, 2]
    unwanted = [Passage(quiet, vocabulary=(name,), wanted=lambda: False) for name in "ab"]
    assert each_vocabulary(reads, unwanted) == [] and len(passes) == 3
