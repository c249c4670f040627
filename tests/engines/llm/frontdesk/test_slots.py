"""Details in what is said."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.engines.llm.frontdesk.front_desk import FILE
from voicepipe.engines.llm.frontdesk import slots


@pytest.mark.parametrize(
    ("slot", "text", "strict", "loose"),
    [
        ("people", "for two", "2", "2"),
        ("people", "for to", "2", "2"),
        ("people", "for for", "4", "4"),
        ("people", "to", "", "2"),
        ("people", "we are for", "", "4"),
        ("people", "sex", "", "6"),
        ("people", "twenty five people", "25", "25"),
        ("people", "just my wife and me", "2", "2"),
        ("people", "only me", "1", "1"),
        ("people", "two adults and two kids", "4", "4"),
        ("people", "a table for eight o'clock", "", "8"),
        ("day", "on friday", "Friday", "Friday"),
        ("day", "next tuesday evening", "next Tuesday", "next Tuesday"),
        ("day", "fry day", "Friday", "Friday"),
        ("day", "choose day", "Tuesday", "Tuesday"),
        ("day", "thirsty", "", "Thursday"),
        ("day", "tomorrow at seven", "tomorrow", "tomorrow"),
        ("day", "the fifth of may", "the 5th of May", "the 5th of May"),
        ("day", "may twenty first", "the 21st of May", "the 21st of May"),
        ("day", "june 3", "the 3rd of June", "the 3rd of June"),
        ("day", "may i come", "", ""),
        ("time", "half past seven", "7:30", "7:30"),
        ("time", "quarter to eight", "7:45", "7:45"),
        ("time", "quarter to one", "12:45", "12:45"),
        ("time", "seven thirty p.m.", "7:30 pm", "7:30 pm"),
        ("time", "7:30 pm", "7:30 pm", "7:30 pm"),
        ("time", "nineteen thirty", "19:30", "19:30"),
        ("time", "at seven", "7 o'clock", "7 o'clock"),
        ("time", "745", "7:45", "7:45"),
        ("time", "1930", "19:30", "19:30"),
        ("time", "407", "", "4:07"),
        ("time", "0745", "", "7:45"),
        ("people", "250 people", "250", "250"),
        ("phone", "eight hundred five five five one two one two", "8005551212", "8005551212"),
        ("name", "1930", "", ""),
        ("phone", "5550142", "5550142", "5550142"),
        ("time", "seven", "", "7 o'clock"),
        ("time", "seven in the evening", "7 pm", "7 pm"),
        ("time", "at noon", "noon", "noon"),
        ("time", "for two people", "", "2 o'clock"),
        ("name", "my name is ann brown", "Ann Brown", "Ann Brown"),
        ("name", "ann brown", "", "Ann Brown"),
        ("name", "it's for ann brown please", "", "Ann Brown"),
        ("name", "b r o w n", "", "Brown"),
        ("name", "ann brown spelled b r a u n", "Ann Braun", "Ann Braun"),
        ("name", "my name is spelled b as in bravo a double l", "Ball", "Ball"),
        ("name", "no the name is wrong", "", ""),
        ("name", "what is your name", "", ""),
        ("name", "i do not want to say that", "", ""),
        ("day", "yesterday", "yesterday", "yesterday"),
        ("day", "last friday", "last Friday", "last Friday"),
        ("phone", "triple five oh one double two", "5550122", "5550122"),
        ("change", "anything", "", ""),
        ("phone", "five five five oh one four two", "5550142", "5550142"),
        ("phone", "five", "", ""),
        ("wish", "a window seat", "", "a window seat"),
    ],
)
def test_details(slot: str, text: str, strict: str, loose: str) -> None:
    assert (slots.read(slot, text, False), slots.read(slot, text, True)) == (strict, loose)


@pytest.mark.parametrize(
    ("slot", "text", "value"),
    [
        ("account", "it is number four", "it is number four"),
        ("country", "two", "two"),
        ("discount_code", "for two", "for two"),
        ("contact_name", "ann brown", "Ann Brown"),
        ("party_name", "ann brown", "Ann Brown"),
        ("how_many", "to", "2"),
        ("guest_count", "to", "2"),
        ("sometimes", "at seven", "at seven"),
        ("time_of_day", "seven", "7 o'clock"),
        ("Phone_Number", "555 0142", "5550142"),
        ("name", "hold on", ""),
        ("name", "one moment", ""),
    ],
)
def test_a_slot_is_read_by_the_parts_of_its_name(slot: str, text: str, value: str) -> None:
    assert slots.read(slot, text, True) == value


def test_the_page_names_every_part() -> None:
    page = (FILE.parent / "README.md").read_text(encoding="utf-8").partition("**How slots are read.**")[2]
    rows = re.findall(r"^\| (`.+`) \|", page, re.MULTILINE)
    assert [re.findall(r"`(\w+)`", row) for row in rows] == [parts.split() for parts, _ in slots.KINDS]


@given(st.text(max_size=60), st.booleans(), st.sampled_from(["people", "day", "time", "name", "phone", "wish"]))
def test_details_are_read_from_any_text(text: str, asked: bool, slot: str) -> None:
    assert isinstance(slots.read(slot, text, asked), str)
