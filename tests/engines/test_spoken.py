"""Of a model's stream, only what it says."""

import pytest

from voicepipe.engines.spoken import SpokenFilter

STREAMS = [
    ("Hello.", "Hello."),
    ("\n\n Hello,  you.\n", "Hello,  you."),
    ("<think>Hm.</think>\n\nHello.", "Hello."),
    ("\n<think>\nHm < 5.\n</think>Hello.", "Hello."),
    ("<think></think><think>Once more.</think> Hello.", "Hello."),
    ("<think>Hm, and no end", ""),
    ("<thin", "<thin"),
    ("<b>Hello</b>", "<b>Hello</b>"),
    ("I <think> so.", "I <think> so."),
    (" \n", ""),
]


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize(("stream", "said"), STREAMS)
def test_in_pieces_of_any_size(stream: str, said: str, size: int) -> None:
    spoken = SpokenFilter()
    pieces = [spoken.push(stream[at : at + size]) for at in range(0, len(stream), size)]
    assert "".join(pieces) + spoken.rest() == said


def test_words_are_not_held_back() -> None:
    spoken = SpokenFilter()
    assert [spoken.push(text) for text in ("Hello", ",", " you", ". ", "Bye")] == ["Hello", ",", " you", ".", " Bye"]
