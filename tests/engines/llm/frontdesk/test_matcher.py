"""Which intent a text means: of the restaurant's front desk."""

import pytest

from tests.engines.llm.frontdesk.front_desk import AT_ONCE
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import ACCEPT, MARGIN, FrontdeskDialogue


@pytest.fixture(scope="module")
def desk() -> FrontdeskDialogue:
    return FrontdeskDialogue(AT_ONCE)


@pytest.mark.parametrize(
    ("said", "intent"),
    [
        ("at what hour can one come to eat tonight", "hours"),
        ("could i know your opening ours", "hours"),
        ("would you be open mondays", "monday"),
        ("where in town is your restaurant", "address"),
        ("from the station how do i get to you", "directions"),
        ("is there some barking for guests", "parking"),
        ("might there be a spot for my car", "parking"),
        ("how much is launch", "lunch"),
        ("what's the price for three coarse dinner", "dinner"),
        ("have you got anything for a vegetarian", "vegetarian"),
        ("my boy is allergic to nuts", "allergies"),
        ("would my kids be welcome", "children"),
        ("would my dog be welcome", "dogs"),
        ("do you sell gift of which is", "vouchers"),
        ("we'd be a group of about thirty", "groups"),
        ("can we eat outside on the terrace", "terrace"),
        ("i'd like to preserve a table", "booking"),
        ("got a table for tonight", "booking"),
        ("a human being please", "person"),
        ("are you some kind of robot", "robot"),
        ("thank you kindly", "thanks"),
        ("bye then", "goodbye"),
        ("say that one more time please", "repeat"),
    ],
)
def test_understands_other_words_and_misheard_ones(desk: FrontdeskDialogue, said: str, intent: str) -> None:
    assert desk.match(said).name == intent
    assert desk.match(said).score >= ACCEPT


def test_understands_its_own_examples(desk: FrontdeskDialogue) -> None:
    examples = [(intent.name, example) for intent in AT_ONCE.intents for example in intent.examples]
    wrong = [(name, example) for name, example in examples if desk.match(example).name != name]
    assert len(wrong) < 0.01 * len(examples), wrong


@pytest.mark.parametrize(
    "said", ["how high is mount everest", "blue elephants juggle", "", "   ", "mm", "my cat chases green lasers"]
)
def test_rejects_what_it_does_not_know(desk: FrontdeskDialogue, said: str) -> None:
    match = desk.match(said)
    assert match.score < ACCEPT or match.margin < MARGIN
