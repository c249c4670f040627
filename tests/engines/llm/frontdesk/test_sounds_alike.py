"""Words, and which of them sound alike."""

from hypothesis import given
from hypothesis import strategies as st

from voicepipe.engines.llm.frontdesk.sounds_alike import alike, distance, words


def test_words() -> None:
    expected = "i would like two what is it can not at seven thirty p m o'neil"
    assert " ".join(words("I'd like 2, what's it? Can't at 7:30 p.m. O'Neil’s")) == expected


def test_sounds() -> None:
    assert alike("lunch", "launch") == 1
    assert alike("dinner", "thinner") > 0.7 > alike("dinner", "parking")
    assert alike("", "") == 0


@given(st.text("abc", max_size=6), st.text("abc", max_size=6))
def test_distance_is_a_distance(a: str, b: str) -> None:
    assert distance(a, b) == distance(b, a)
    assert (distance(a, b) == 0) == (a == b)
