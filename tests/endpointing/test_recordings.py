"""What is played to the ear."""

import pytest

from tests.endpointing.recordings import said


@pytest.mark.parametrize("part", ["development", "held_out"])
def test_beginnings_are_said_as_such_and_sentences_to_their_end(part: str) -> None:
    sentences = [*said(part)]
    begun = [each for each in sentences if each.kind == "pause_inside"]
    assert begun and all(each.text.startswith(f"{each.before} ") for each in begun)
    assert {each.text for each in begun} <= {each.text for each in sentences if each.kind == "finished"}
    assert len({each.number for each in sentences}) == len(sentences)
