"""What is played to the ear."""

import pytest

from tests.endpointing.recordings import people, said


@pytest.mark.parametrize("part", ["development", "held_out"])
def test_beginnings_are_said_as_such_and_sentences_to_their_end(part: str) -> None:
    sentences = [*said(part)]
    begun = [each for each in sentences if each.kind == "pause_inside"]
    assert begun and all(each.text.startswith(f"{each.before} ") for each in begun)
    assert {each.text for each in begun} <= {each.text for each in sentences if each.kind == "finished"}
    assert len({each.number for each in sentences}) == len(sentences)


def test_german_is_played_whole_and_up_to_a_pause_though_no_people_speak_it() -> None:
    played = [*people("de")]
    assert {each.kind for each in played} == {"finished", "pause_inside"}
    assert all(each.language == "de" and each.text and each.end_ms > 500 for each in played)
