"""The restaurant's book that the front desk's tools keep."""

import json
from datetime import date, datetime
from typing import Any

import pytest

from tests.engines.llm.frontdesk.front_desk import TODAY, a_wednesday  # noqa: F401
from voicepipe.tools import restaurant
from voicepipe.tools.restaurant import book_table, cancel_booking, change_booking, check_table, find_booking

pytestmark = pytest.mark.usefixtures("a_wednesday")


def problem(answer: str) -> str:
    """The argument that will not do; empty: all will."""
    found: dict[str, Any] = json.loads(answer) if answer.startswith("{") else {}
    return str(found.get("about", ""))


@pytest.mark.parametrize(
    ("day", "means"),
    [
        ("today", "2026-11-25"),
        ("tomorrow", "2026-11-26"),
        ("the day after tomorrow", "2026-11-27"),
        ("Wednesday", "2026-11-25"),
        ("next Sunday", "2026-11-29"),
        ("the 5th of May", "2027-05-05"),
        ("the 28th", "2026-11-28"),
        ("the 2nd", "2026-12-02"),
        ("December 9", "2026-12-09"),
        ("2026-12-31", "2026-12-31"),
        ("Friday, the 27th of November", "2026-11-27"),
        ("last Friday", "2026-11-20"),
        ("the 20th of November", "2026-11-20"),
        ("the 31st of February", None),
        ("some day", None),
    ],
)
def test_days(day: str, means: str | None) -> None:
    assert restaurant._date(day, TODAY.date()) == (date.fromisoformat(means) if means else None)


@pytest.mark.parametrize(
    ("time", "about"),
    [
        ("7:30", ""), ("7 o'clock", ""), ("noon", ""), ("12:15 pm", ""), ("19:00", ""), ("9:30 pm", ""), ("", ""),
        ("10 o'clock", "time"), ("11 pm", "time"), ("9 am", "time"), ("12 am", "time"), ("25:00", "time"),
        ("late", "time"), ("afternoon", "time"), ("9 in the morning", "time"), ("2 in the afternoon", ""),
        ("midnight", "time"), ("12 at night", "time"), ("9am", "time"), ("midday", ""), ("11 at night", "time"),
    ],
)  # fmt: skip
def test_times(time: str, about: str) -> None:
    assert problem(check_table(2, "Friday", time)) == about


@pytest.mark.parametrize(
    ("said", "means"),
    [("2 in the afternoon", "14:00"), ("9 in the morning", "09:00"), ("7 in the evening", "19:00"), ("noon", "12:00"),
     ("12 noon", "12:00"), ("9 at night", "21:00"), ("12 at night", "00:00"), ("7:30 a.m.", "07:30")],
)  # fmt: skip
def test_parts_of_the_day(said: str, means: str) -> None:
    assert restaurant._time(said) == datetime.strptime(means, "%H:%M").time()


@pytest.mark.parametrize(
    ("people", "day", "about"),
    [(8, "Friday", ""), (9, "Friday", "people"), (-1, "Friday", "people"), (2, "Monday", "day"),
     (2, "yesterday", "day"), (2, "the 7th of December", "day"), (2, "the 24th of December", "day"),
     (2, "soon", "day"), (2, "", "")],
)  # fmt: skip
def test_what_cannot_be(people: int, day: str, about: str) -> None:
    assert problem(check_table(people, day)) == about
    assert problem(book_table(people, day, "7 pm", phone="1")) == (about if day else "day")
    assert bool(restaurant._booked) == (not about and bool(day))


def test_a_weekday_whose_time_is_over_is_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restaurant, "clock", lambda: datetime(2026, 11, 25, 20))
    book_table(2, "Wednesday", "7 o'clock", "Ann", "1")
    assert restaurant._booked["1"].day == date(2026, 12, 2)
    assert problem(check_table(2, "today", "7 o'clock")) == "time"


def test_a_booking_is_found_changed_and_cancelled() -> None:
    assert problem(find_booking("555 0142")) == problem(change_booking("5550142", 2, "Friday", "8 pm")) == "phone"
    assert problem(cancel_booking("5550142")) == "phone"
    book_table(2, "Friday", "7 pm", "Ann Brown", "555 0142")
    found = {"people": 2, "day": "Friday, the 27th of November", "time": "7 pm", "name": "Ann Brown"}
    assert json.loads(find_booking("5550142")) == found
    assert problem(change_booking("5550142", 2, "Monday", "7 pm")) == "day"
    assert change_booking("5550142", 3, "Saturday", "8 pm") == "It is changed."
    assert restaurant._booked["5550142"].people == 3
    assert cancel_booking("5550142") == "It is cancelled."
    assert not restaurant._booked


def test_the_book_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restaurant, "MOST_BOOKINGS", 2)
    for phone in ("1", "2", "3"):
        book_table(2, "Friday", "7 pm", phone=phone)
    assert [*restaurant._booked] == ["2", "3"]


def test_equal_bookings_have_equal_references() -> None:
    assert book_table(2, "Friday", "7 pm") == book_table(2, "friday", "7 pm") != book_table(3, "Friday", "7 pm")
