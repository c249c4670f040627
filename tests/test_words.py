"""How words are compared."""

import pytest

from voicepipe.agent import Agent
from voicepipe.turn.agreement import Agreement
from voicepipe.words import plain


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("At 7:30, Mr. O’Hara?", "at 7:30 mr o'hara"),
        ("It's $4.50 - or 555-0123...", "it's 4.50 or 555-0123"),
        ("7 p.m.", "7 p m"),
        ("Größe 5,", "größe 5"),
        ("♪ ... ?!", ""),
    ],
)
def test_case_and_punctuation_do_not_count(written: str, compared: str) -> None:
    assert plain(written) == compared == plain(compared)


def test_words_agree_however_they_are_written() -> None:
    agreement = Agreement()
    assert agreement.push(["okay.", "So"]) == []
    assert agreement.push(["Okay,", "so", "I"]) == ["Okay,", "so"]
    assert agreement.push(["Okay,", "so,", "I?"]) == ["I?"]


def test_a_reply_is_interrupted_by_words_however_they_are_written() -> None:
    agent = Agent("a", interrupt=("stop", "Excuse me!"))
    assert agent.is_interrupted("No. Stop.") and agent.is_interrupted("Well, excuse me, please.")
    assert not agent.is_interrupted("unstoppable") and not agent.is_interrupted("")
