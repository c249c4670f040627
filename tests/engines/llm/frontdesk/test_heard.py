"""Callers' words as Whisper writes them mean what they meant as they were said: to the front desk and to turns."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.llm.frontdesk.front_desk import FRONT_DESK
from voicepipe.engines.llm.frontdesk import slots
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue, FrontdeskState
from voicepipe.languages.en.answers import agrees, answers, asks_to_wait, declines, to_be_done

BOOKING = next(intent for intent in FRONT_DESK.intents if intent.name == "booking")
KINDS = tuple(BOOKING.slots)
QUESTIONS = (*BOOKING.slots.values(), "A table for 4, Friday at 8 o'clock. Is that right?")
TABLE = (Path(__file__).parent / "heard.txt").read_text().partition("# misheard")


def rows(part: str) -> Iterator[tuple[str, str, str]]:
    """(the detail that was asked for, what was said, what was written)."""
    for line in part.splitlines():
        if line and not line.startswith("#"):
            kind, said, heard = (column.strip() for column in line.split("|"))
            yield kind, said, heard


def desk_() -> FrontdeskDialogue:
    return FrontdeskDialogue(FRONT_DESK)


@pytest.fixture(scope="module")
def desk() -> FrontdeskDialogue:
    return desk_()


def told(desk: FrontdeskDialogue, text: str, kind: str) -> dict[str, Any]:
    """All that is made of `text`."""
    found: dict[str, Any] = {slot: slots.read(slot, text, slot == kind) for slot in KINDS}
    _, answer = desk.hear(FrontdeskState(), text)
    found["answer"] = answer
    found["short answer to"] = [asked for asked in QUESTIONS if answers(text, asked)]
    found["yes, no"] = (agrees(text), declines(text), to_be_done(text), asks_to_wait(text))
    if kind in KINDS:
        before = dict.fromkeys(KINDS[: KINDS.index(kind)], "-")
        found["state"], found["reply"] = desk.hear(FrontdeskState("booking", before, kind), text)
    else:
        whole = dict.fromkeys(KINDS, "-")
        found["state"], found["reply"] = desk.hear(FrontdeskState("booking", whole, confirming=True), text)
    return found


def test_however_it_is_written_the_same_is_understood(desk: FrontdeskDialogue) -> None:
    wrong = []
    for kind, said, heard in rows(TABLE[0]):
        expected, found = told(desk, said, kind), told(desk, heard, kind)
        wrong += [
            (said, heard, what, expected[what], found[what]) for what in expected if expected[what] != found[what]
        ]
    assert not wrong


def test_the_beginning_of_a_telephone_number_changes_no_time(desk: FrontdeskDialogue) -> None:
    known = {"people": "2", "day": "Friday", "time": "8 o'clock", "name": "Ann Brown"}
    for heard in ("730", "4 1 5", "555."):
        state, _ = desk.hear(FrontdeskState("booking", known, "phone"), heard)
        assert state.values == known, heard
    state, _ = desk.hear(FrontdeskState("booking", known, "phone"), "No, at 730.")
    assert state.values == known | {"time": "7:30"}


def test_what_is_misheard_is_the_exception(desk: FrontdeskDialogue) -> None:
    for kind, said, heard in rows(TABLE[2]):
        assert told(desk, said, kind) != told(desk, heard, kind), f"{heard}: belongs to the first part of the table"
