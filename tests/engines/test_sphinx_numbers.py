"""Numbers that callers dictate: known by most of their words, and searched for digits alone."""

import asyncio
from collections import deque
from pathlib import Path

import numpy as np
import pytest

from latency_probes.clips import decode
from latency_probes.timeline import WIRE_RATE
from tests.engines.test_sphinx import speech
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler
from voicepipe.engines import sphinx_recognition
from voicepipe.engines.sphinx_decoder import SphinxDecoder
from voicepipe.engines.sphinx_language import SphinxLanguage
from voicepipe.engines.sphinx_numbers import DIGITS, LEAD, dictated, is_dictated
from voicepipe.engines.sphinx_recognition import Recognition

CLIPS = Path(__file__).parent / "sphinx_clips"
"""Answers by flite's voices, which pocketsphinx mishears in ways that its adapter mends."""


@pytest.mark.parametrize(
    "heard",
    [
        "five five five oh one four two",
        "my number is five five five a cake zero zero",
        "five five five to to one one",
        "five five five one of you",
        "oh one four two",
    ],
)
def test_a_number(heard: str) -> None:
    assert is_dictated(heard)


@pytest.mark.parametrize(
    "heard",
    [
        "",
        "my number is",
        "five five five",
        "a table for two at eight",
        "two tables for four at seven please and one for eight",
        "it's five five five oh one four two",
        "my name is john and my number is five five five one two three four",
        "five five five one two three four and my name is john smith please call me back",
    ],
)
def test_no_number_or_not_a_number_alone(heard: str) -> None:
    """What stands beside the digits would become digits."""
    assert not is_dictated(heard)


@pytest.mark.parametrize(
    ("heard", "asked_for"),
    [
        ("my number is five five five there is there a nine nine", True),
        ("fight fight fight one oh two oh", True),
        ("it's for four one six to eight nine", True),
        ("sorry i do not have my number here", False),
        ("my name is john smith", False),
        ("no for three people", False),
        ("no for two at eight", False),
        ("actually make it for two at eight", False),
        ("i want to talk to someone too", False),
        ("why do you need that", False),
    ],
)
def test_where_digits_were_asked_for_fewer_need_to_be_heard(heard: str, asked_for: bool) -> None:
    assert is_dictated(heard, asked=True) == asked_for
    assert not is_dictated(heard)


def test_nothing_but_digits_is_looked_for() -> None:
    words = {word for sentence in dictated() for word in sentence.split()}
    assert words == {*DIGITS, "double", "triple", *LEAD.split()}


def test_a_number_is_heard_better(monkeypatch: pytest.MonkeyPatch) -> None:
    """And what is no number is heard as before."""
    decoder = SphinxDecoder(SphinxLanguage())
    sounds = [
        clip("guest/019-rms.opus"),
        clip("guest/057-slt.opus"),
        asyncio.run(speech("what are your opening hours")),
    ]

    def heard() -> list[str]:
        found = []
        for sound in sounds:
            recognition = Recognition(decoder, deque([sound]))
            recognition.hear()
            found.append(recognition.settle().text)
            recognition.close()
        return found

    with_numbers = heard()
    monkeypatch.setattr(sphinx_recognition, "is_dictated", lambda text, asked: False)
    without = heard()
    decoder.free()
    number = "five five five six six seven seven"
    assert with_numbers[:2] == [number, f"{LEAD} five five five two two one one"]
    assert number not in without[0]
    assert with_numbers[2] == without[2]


def clip(name: str) -> Pcm:
    """At 16 kHz."""
    resampler = Resampler(WIRE_RATE, RATE)
    sound: Pcm = np.concatenate([resampler(decode(CLIPS / name)), resampler.flush()])
    return sound
