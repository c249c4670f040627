"""A table of forms: which one is found at a place, and where a number ends."""

import re

import pytest

from voicepipe.languages.written_form import DASH, END, Forms, before, constant, form, unnamed

WEIGHT = form("weight", "0123456789", f"(?P<number>[0-9]+) ?kg{END}", lambda found: f"{found['number']} kilos")
NUMBER = form("number", "0123456789", f"[0-9]+{END}", lambda found: None if found.group() == "13" else "a number")
UNLUCKY = constant("unlucky", "1", "13", "unlucky")
NOON = constant("noon", "nN", "[nN]oon", "twelve")
FORMS = Forms([WEIGHT, NUMBER, UNLUCKY, NOON])


@pytest.mark.parametrize(
    ("text", "at", "found"),
    [
        ("5 kg", 0, (4, "5 kilos")),
        ("5 of us", 0, (1, "a number")),
        ("it is 5kg", 6, (9, "5 kilos")),
        ("13", 0, (2, "unlucky")),
        ("noon", 0, (4, "twelve")),
        ("Noon", 0, (4, "twelve")),
        ("now", 0, None),
        ("kg", 0, None),
    ],
)
def test_the_first_form_that_fits_and_says_something_is_taken(
    text: str, at: int, found: tuple[int, str] | None
) -> None:
    assert FORMS.find(text, at) == found


def test_a_form_of_no_length_is_none() -> None:
    assert Forms([constant("nothing", "a", "b*", "b")]).find("a", 0) is None


@pytest.mark.parametrize("text", ["2.4.1", "2kg", "2:30", "2/3", "2½", "2,000", "2–3"])
def test_a_number_does_not_end_inside_a_longer_one(text: str) -> None:
    assert not re.match(f"2{END}", text)


@pytest.mark.parametrize("text", ["2", "2.", "2, 3", "2,00", "2: no", "2-fold"])
def test_a_number_may_end_before_a_mark(text: str) -> None:
    assert re.match(f"2{END}", text)


@pytest.mark.parametrize("dash", ["-", "--", "–", " - ", "~"])
def test_dashes_between_the_ends_of_a_range(dash: str) -> None:
    assert re.fullmatch(f"1{DASH}2", f"1{dash}2")


def test_a_pattern_without_names_can_stand_twice() -> None:
    twice = unnamed("(?P<day>[0-9])") * 2
    assert twice == "(?:[0-9])(?:[0-9])" and re.fullmatch(twice, "12")


def test_what_stands_before_a_form() -> None:
    found = re.search("5", "room number 5")
    assert found
    assert before(found) == "room number " and before(found, most=7) == "number "
