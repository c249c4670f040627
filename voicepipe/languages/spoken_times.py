"""Dates and times of day, in each language that has `NumberForms`."""

import re
from functools import partial

from voicepipe.languages import number_words
from voicepipe.languages.number_forms import YEAR, NumberForms
from voicepipe.languages.written_form import DASH, DIGITS, END, GAP, HYPHENS, WrittenForm, before, form

DAY = "(?:[12][0-9]|3[01]|0?[1-9])"
MONTH = "(?:1[0-2]|0?[1-9])"
_LAST_CENTURY = 50
"""From here on a year of two digits is of the century before."""
_HOUR = "(?:2[0-4]|[01]?[0-9])"


def dates(language: NumberForms) -> tuple[WrittenForm, ...]:
    """24.12.2026, 2026-12-24, 24/12, 24. Dezember 2026."""
    names = "|".join(number_words.months(language.tag))
    short = "|".join(sorted(map(re.escape, number_words.months_by_name(language.tag)), key=len, reverse=True))
    month = rf"(?:(?P<month>(?i:{names})\b)|(?P<short>(?i:{short})\b)[.]?)"
    year = rf"(?P<year>(?:,? (?:del? )?{YEAR}(?![\w.,]?[0-9])(?!\w))?)"
    return (
        form(
            "date, year first",
            DIGITS,
            rf"(?P<year>[12][0-9]{{3}})(?P<joint>[/.{HYPHENS}])(?P<month>{MONTH})(?P=joint)(?P<day>{DAY})"
            rf"(?:T(?=[0-9]{{2}}:)|{END})",
            partial(_numeric, language),
        ),
        form(
            "date",
            DIGITS,
            rf"(?P<day>{DAY})(?P<joint>[/.{HYPHENS}])(?P<month>[0-9]{{1,2}})(?P=joint)(?P<year>[12][0-9]{{3}}|[0-9]{{2}}){END}",
            partial(_numeric, language),
        ),
        form(
            "day and month",
            DIGITS,
            rf"(?P<day>{DAY})(?:[.](?P<month>{MONTH})[.](?P<point>)(?![\w])|/(?P<other>{MONTH}){END})",
            partial(_day, language),
        ),
        form(
            "range of days",
            DIGITS,
            rf"(?P<first>{DAY}){language.day_marks}{DASH}(?P<day>{DAY}){language.day_marks} (?:de )?{month}{year}",
            partial(_named, language),
        ),
        form(
            "day of a month",
            DIGITS,
            rf"(?P<first>)(?P<day>{DAY}){language.day_marks}{GAP}(?:de )?{month}{year}",
            partial(_named, language),
        ),
    )


def _said(language: NumberForms, context: str, day: int, month: int, year: str) -> str | None:
    """The words of a date; None: there is no such day."""
    if not (1 <= day <= 31 and 1 <= month <= 12):
        return None
    said = language.dated(context, day, number_words.months(language.tag)[month - 1])
    if not year:
        return said
    number = int(year)
    if len(year) == 2:
        number += 1900 if number >= _LAST_CENTURY else 2000
    return f"{said}{language.before_year}{language.year(number)}"


def _numeric(language: NumberForms, found: re.Match[str]) -> str | None:
    day, month, year = int(found["day"]), int(found["month"]), found["year"]
    if month > 12 >= day:
        day, month = month, day
    if len(year) == 2 and found["joint"] not in "./":
        return None
    said = _said(language, before(found), day, month, year)
    return f"{said}, " if said and found.group().endswith("T") else said


def _day(language: NumberForms, found: re.Match[str]) -> str | None:
    """30.4.; 14/07, where a day is meant."""
    context = before(found)
    if found["other"] and not re.search(rf"(?i:{language.date_context}) $", context):
        return None
    said = _said(language, context, int(found["day"]), int(found["month"] or found["other"]), "")
    ends = found["point"] is not None and not found.string[found.end() :].strip()
    return f"{said}." if said and ends else said


def _named(language: NumberForms, found: re.Match[str]) -> str | None:
    month = number_words.months_by_name(language.tag).get((found["month"] or found["short"]).lower(), 0)
    year = "".join(letter for letter in found["year"] if letter in DIGITS)
    said = _said(language, before(found), int(found["day"]), month, year)
    if said and found["first"]:
        name = number_words.months(language.tag)[month - 1]
        first = language.dated(before(found), int(found["first"]), name).removesuffix(name).removesuffix(" de ")
        return language.to(before(found), first.strip(), said)
    return said


def times(language: NumberForms) -> tuple[WrittenForm, ...]:
    """14:30, 14.30 Uhr, 18h45, 8 h 15; 9:00-17:00."""
    first, last = (_exact(language, name) for name in ("first", ""))
    return (
        form(
            "range of times",
            DIGITS,
            rf"(?:{first}|(?P<early>{_HOUR})){DASH}{last}{END}",
            partial(_range, language),
        ),
        form("time", DIGITS, rf"{last}{END}", partial(_time, language)),
    )


def _exact(language: NumberForms, name: str) -> str:
    """A pattern of a time of day, whose groups begin with `name`."""
    return (
        rf"(?P<{name}hour>{_HOUR})(?:(?P<{name}joint>[:.])(?P<{name}minute>[0-5][0-9])(?::(?P<{name}second>[0-5][0-9]))?"
        rf"|{GAP}[hH](?:{GAP}(?P<{name}minutes>[0-5][0-9])|(?![a-zA-Z])))"
        rf"(?P<{name}mark>{GAP}(?:{language.clock_marks})(?!\w))?"
    )


def _is_time(language: NumberForms, found: re.Match[str]) -> bool:
    """13.30 may be a number, and 9 h a length of time."""
    if found["joint"] == ".":
        return bool(found["mark"] or re.search(rf"(?i:{language.clock_context})$", before(found)))
    return bool(found["joint"] or found["minutes"]) or language.hours_alone


def _clock(language: NumberForms, found: re.Match[str], name: str) -> str:
    minute = int(found[f"{name}minute"] or found[f"{name}minutes"] or 0)
    said = language.clock(int(found[f"{name}hour"]), minute, (found[f"{name}mark"] or found["mark"] or "").strip())
    second = int(found[f"{name}second"] or 0)
    if not second:
        return said
    name = language.units["s"][second > 1]
    return f"{said} {language.and_} {language.counted(second, '', name)} {name}"


def _time(language: NumberForms, found: re.Match[str]) -> str | None:
    return _clock(language, found, "") if _is_time(language, found) else None


def _range(language: NumberForms, found: re.Match[str]) -> str | None:
    if not _is_time(language, found):
        return None
    early, mark = found["early"], (found["mark"] or "").strip()
    first = language.clock(int(early), 0, mark) if early else _clock(language, found, "first")
    last = _clock(language, found, "")
    return language.span(before(found), first, last) or language.to(before(found), first, last)
