"""The tools of configs/agents/front-desk.toml: a restaurant's book, kept in memory. An example of what
`function = "module:function"` calls.

Each answers with a sentence, or with a JSON object: `{"about": "day", "problem": "On Mondays we are closed."}` says
which argument will not do, and why. A language model finds its words for that; the embedded engine says the problem and
asks for that detail again. What cannot be booked is refused here, whatever the agent has said before.
"""

import json
import re
import zlib
from collections import OrderedDict
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from datetime import time as Time

from voicepipe.languages.en.words import MONTHS, WEEKDAYS

OPENS, LAST = Time(12), Time(21, 30)
MOST_GUESTS = 8
CLOSED = 0
"""Monday, as `date.weekday` counts."""
MOST_BOOKINGS = 1000
NEAR = {"today": 0, "tonight": 0, "tomorrow": 1, "the day after tomorrow": 2, "yesterday": -1}
RECENT = timedelta(60)
"""A date of the year that is no longer past than this is over; one before it is next year's."""

clock = datetime.now


@dataclass(frozen=True, slots=True)
class Booking:
    """One booked table. It is kept under its guest's telephone number."""

    people: int
    day: date
    time: str
    name: str


_booked: "OrderedDict[str, Booking]" = OrderedDict()
"""Bookings by the digits of the telephone number; the oldest are forgotten first."""


class BadArgument(Exception):
    """An argument of a tool that will not do, and why."""

    def __init__(self, about: str, problem: str) -> None:
        super().__init__(about, problem)
        self.answer = json.dumps({"about": about, "problem": problem})


def check_table(people: int = 0, day: str = "", time: str = "") -> str:
    """Whether there can be a table, as far as it is known what is wanted."""
    try:
        _checked(people or 1, day, time)
    except BadArgument as problem:
        return problem.answer
    return json.dumps({"free": True})


def book_table(people: int, day: str, time: str, name: str = "", phone: str = "") -> str:
    """Book it. A second booking under the same telephone number replaces the first."""
    try:
        when = _checked(people, day, time)
    except BadArgument as problem:
        return problem.answer
    if when is None:
        return BadArgument("day", "I am not sure which day that is.").answer
    if phone:
        _booked[_digits(phone)] = Booking(people, when, time, name)
        if len(_booked) > MOST_BOOKINGS:
            _booked.popitem(last=False)
    reference = zlib.crc32(f"{people}/{when}/{time}/{phone}".lower().encode()) % 900 + 100
    return f"It is booked, your reference is {' '.join(str(reference))}."


def find_booking(phone: str) -> str:
    """The booking under this telephone number."""
    found = _booked.get(_digits(phone))
    if not found:
        return BadArgument("phone", "I find no booking under that number.").answer
    return json.dumps({"people": found.people, "day": _named(found.day), "time": found.time, "name": found.name})


def change_booking(phone: str, people: int, day: str, time: str) -> str:
    """Change what is booked under this telephone number."""
    found = _booked.get(_digits(phone))
    if not found:
        return find_booking(phone)
    said = book_table(people, day, time, found.name, phone)
    return said if said.startswith("{") else "It is changed."


def cancel_booking(phone: str) -> str:
    """Cancel what is booked under this telephone number."""
    if not _booked.pop(_digits(phone), None):
        return find_booking(phone)
    return "It is cancelled."


def _checked(people: int, day: str, time: str) -> date | None:
    """The date that is meant, if it is known. Raises BadArgument."""
    now = clock()
    if people < 1:
        raise BadArgument("people", "That is nobody.")
    if people > MOST_GUESTS:
        raise BadArgument("people", "For more than eight, a colleague will plan it with you: just ask for a person.")
    when = _date(day, now.date()) if day else None
    if day and not when:
        raise BadArgument("day", "I am not sure which day that is.")
    if when and when < now.date():
        raise BadArgument("day", "That day is over.")
    if when and when.weekday() == CLOSED:
        raise BadArgument("day", "On Mondays we are closed.")
    if when and (when.month, when.day) == (12, 24):
        raise BadArgument("day", "On Christmas Eve we are closed.")
    at = _time(time) if time else None
    if time and not at:
        raise BadArgument("time", "I am not sure which time that is.")
    if at and not OPENS <= at <= LAST:
        raise BadArgument("time", "We have tables from noon to half past nine.")
    if when and at and datetime.combine(when, at) < now and day.lower() in WEEKDAYS:
        when += timedelta(7)  # Who says "Friday" on a Friday evening means the next one.
    if when and at and datetime.combine(when, at) < now:
        raise BadArgument("time", "That time is over.")
    return when


def _date(day: str, today: date) -> date | None:
    """The next day of this name ("Friday", "tomorrow", "the 5th of May", "2027-05-05"); None: it is none."""
    said = day.lower().strip()
    if said in NEAR:
        return today + timedelta(NEAR[said])
    try:
        return date.fromisoformat(said)
    except ValueError:
        pass
    number = re.search(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", said)
    month = next((index for index, name in enumerate(MONTHS, 1) if name in said), 0)
    weekday = next((index for index, name in enumerate(WEEKDAYS) if name in said), None)
    if number:
        return _of_month(int(number[1]), month, today)
    if weekday is None:
        return None
    ahead = (weekday - today.weekday()) % 7
    return today + timedelta(ahead - 7 if "last" in said.split() else ahead)


def _of_month(number: int, month: int, today: date) -> date | None:
    """That day of a month: the next one, unless it was a short while ago."""
    at = today.replace(day=1)
    for _ in range(24):
        if not month or at.month == month:
            try:
                found = at.replace(day=number)
            except ValueError:  # This month has no such day.
                pass
            else:
                if found >= today or (month and found > today - RECENT):
                    return found
        at = (at + timedelta(32)).replace(day=1)
    return None


def _time(time: str) -> Time | None:
    """The time of day; of a bare hour the one at which guests come."""
    said = time.lower()
    found = re.search(r"\b(\d{1,2})(?::(\d\d))?(?!\d)", said)
    if not found:
        return Time(12) if re.search(r"\b(?:noon|midday)\b", said) else None
    hour, minute = int(found[1]), int(found[2] or 0)
    early = re.search(r"(?<![a-z])a\.?m\b|\bmorning\b", said)
    if hour == 12:
        hour = 0 if early or re.search(r"\bnight\b", said) else 12
    elif hour < 12 and not early:
        hour += 12
    return Time(hour, minute) if hour < 24 and minute < 60 else None


def _named(day: date) -> str:
    """ "Friday, the 27th of November"."""
    ending = "th" if 10 < day.day < 20 else {1: "st", 2: "nd", 3: "rd"}.get(day.day % 10, "th")
    return f"{WEEKDAYS[day.weekday()].title()}, the {day.day}{ending} of {MONTHS[day.month - 1].title()}"


def _digits(phone: str) -> str:
    return re.sub(r"\D", "", phone)
