"""Answers that are misheard over the noise of a quiet room, and could be nothing else than what was asked for."""

from collections import deque
from collections.abc import Iterator

import numpy as np
import pytest

from latency_probes.clips import decode
from latency_probes.sound import bed, mixed
from latency_probes.timeline import BLOCK, WIRE_RATE
from tests.engines.test_sphinx_numbers import CLIPS
from voicepipe.audio import RATE, ms_to_samples
from voicepipe.audio.resample import Resampler
from voicepipe.engines.sphinx_decoder import SphinxDecoder
from voicepipe.engines.sphinx_language import SphinxLanguage
from voicepipe.engines.sphinx_misheard import is_full_name, is_instead, is_odd_name
from voicepipe.engines.sphinx_recognition import Recognition
from voicepipe.turn.answers import Wanted

PIECE = ms_to_samples(20)
ROOMS = range(6)


@pytest.fixture(scope="module")
def decoder() -> Iterator[SphinxDecoder]:
    decoder = SphinxDecoder(SphinxLanguage())
    yield decoder
    decoder.free()


def heard(decoder: SphinxDecoder, clip: str, wants: Wanted, room: int) -> str:
    """The words of a clip in a room, in pieces as they come in a call."""
    rng = np.random.default_rng(room)
    around = ms_to_samples(int(rng.integers(125, 375)), WIRE_RATE), ms_to_samples(300, WIRE_RATE)
    loud = mixed(np.pad(decode(CLIPS / clip), around), bed("quiet", room), int(rng.integers(400)) * BLOCK)
    resampler = Resampler(WIRE_RATE, RATE)
    sound = np.concatenate([resampler(loud), resampler.flush()])
    recognition = Recognition(decoder, deque(), wants)
    for at in range(0, sound.size, PIECE):
        recognition._inbox.append(sound[at : at + PIECE])
        recognition.hear()
    text = recognition.settle().text
    recognition.close()
    return text


@pytest.mark.parametrize(
    ("clip", "wants", "text"),
    [
        ("short_answer/045-slt.opus", "value", "two"),
        ("short_answer/048-awb.opus", "yes", "yes"),
        ("short_answer/023-slt.opus", "name", "john smith"),
        ("guest/034-slt.opus", "name", "my name is john smith"),
    ],
)
def test_in_every_room_the_answer_is_heard(decoder: SphinxDecoder, clip: str, wants: Wanted, text: str) -> None:
    assert [heard(decoder, clip, wants, room) for room in ROOMS] == [text] * len(ROOMS)


def test_a_reading_stands_in_place_of_words_only_where_these_say_nothing_else() -> None:
    assert is_instead("just you", "just two") and is_instead("six p pay all", "six people")
    assert not is_instead("forty", "fourteen") and not is_instead("when", "one") and not is_instead("wait", "eight")
    assert not is_instead("just you", "just do")


@pytest.mark.parametrize("words", ["johnson a", "my name is johnson eight"])
def test_a_name_with_what_is_part_of_none_is_odd(words: str) -> None:
    assert is_odd_name(words)


@pytest.mark.parametrize(
    "words",
    ["", "john smith", "my name is john smith", "john smith please", "many jones", "have you do but", "wait john"]
    + ["what name do you have john or peter", "may smith", "will johnson", "john and mary", "john smith at eight"],
)
def test_other_words_are_let_be(words: str) -> None:
    assert not is_odd_name(words)


def test_a_full_name_begins_as_what_was_heard() -> None:
    assert is_full_name("john smith", "johnson a") and is_full_name("my name is john smith", "my name is johnson eight")
    assert not is_full_name("john smith", "john and") and not is_full_name("my name is", "johnson a")
    assert not is_full_name("peter", "peter a") and not is_full_name("donna reed", "johnson a")
