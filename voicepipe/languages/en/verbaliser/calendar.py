"""Dates, days, years and decades."""

import re

from voicepipe.languages.en import words as english
from voicepipe.languages.en.verbaliser.numbers import cardinal, digits, ordinal, plural, year
from voicepipe.languages.written_form import DASH, DIGITS, END, HYPHEN, HYPHENS, WrittenForm, before, form

MONTHS = tuple(name.capitalize() for name in english.MONTHS)
WEEKDAYS = tuple(name.capitalize() for name in english.WEEKDAYS)
BY_START = {name[:3].lower(): name for name in (*MONTHS, *WEEKDAYS)}
MONTH = rf"(?:(?:{'|'.join(MONTHS)})\b|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b[.]?)"
WEEKDAY = rf"(?:(?:{'|'.join(WEEKDAYS)})\b|(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)\b[.]?)"
_ABBREVIATED = "(?:Mon|Tues?|Wed|Thu(?:rs?)?|Fri|Sat|Sun)"
_AND = "(?:,|,? and|,? or| &)"
_LISTED = re.compile(rf"\b{_ABBREVIATED}{_AND} $")
DAY = "(?:[12][0-9]|3[01]|0?[1-9])"
YEAR = "(?:1[0-9]{3}|20[0-9]{2})"
_DECADE = "(?:1[1-9][0-9]0|20[0-9]0|[2-9]0)"
_TH = "(?:st|nd|rd|th)"
_MONTHS_BEGIN, _WEEKDAYS_BEGIN = "JFMASOND", "MTWFS"
_IN_A_YEAR = re.compile(r"(?i)\b(?:in|since|by|until|till|of|from|during|circa|around|the year|AD) $")
_ON_A_DAY = re.compile(rf"(?i)\b(?:(?:on|due|until|till|since|before|after|dated) |{WEEKDAY},? )$")
_LAST_CENTURY = 50
"""From here on a year of two digits is of the century before."""
_OF_AN_INCH = ("16", "32", "64")
FOR_A_TIME = re.compile(
    r"(?i)\b(?:for|within|in|every|"
    r"wait|hold|pause|allow|another|takes?|took|lasts?|only|about|than|under|over|after|least|most) $"
)
"""Before "30s": seconds."""
_OF_TIME = re.compile(r" (?:left|remaining|ago|later|each|delays?|timeouts?|calls?|timers?|or (?:less|more))\b")
"""Behind it."""


def full(name: str) -> str:
    """Jan. -> January, tues -> Tuesday."""
    return BY_START[name[:3].lower()]


def dated(month: int | str, day: str | None = None, in_year: str | None = None) -> str:
    """May fourteenth, twenty twenty six."""
    said = full(month) if isinstance(month, str) else MONTHS[month - 1]
    said = f"{said} {ordinal(int(day))}" if day else said
    if not in_year:
        return said
    number = int(in_year)
    if len(in_year) == 2:
        number += 1900 if number >= _LAST_CENTURY else 2000
    return f"{said}{',' if day else ''} {year(number)}"


def _numeric(found: re.Match[str]) -> str | None:
    """1/15/2020 and 15/1/2020; 15.01.2020 has the day first, as wherever dates are written with points.

    A second number that is no month is a day: 12.31.2023.
    """
    if found["joint"] != found["again"]:
        return None
    if (
        found["joint"] == "."
        and len(found["year"]) == 2
        and not re.match("[0-9]{2}[.]0|0[1-9][.][0-9]{2}", found.group())
    ):
        return None  # A version.
    first, second = int(found["first"]), int(found["second"])
    day_first = (found["joint"] == "." and second <= 12) or first > 12
    month, day = (second, first) if day_first else (first, second)
    return dated(month, str(day), found["year"]) if 1 <= month <= 12 and 1 <= day <= 31 else None


def _iso(found: re.Match[str]) -> str | None:
    """2020-01-15T10:30: the time is said by its own form."""
    if found["joint"] != found["again"]:
        return None
    month, day = int(found["month"]), found["day"]
    said = dated(month, day, found["year"])
    return f"{said}, " if found["time"] else said


def day_of_month(text: str, context: str) -> str | None:
    """12/25 -> December twenty fifth, where that is likelier than a fraction; None: it is none. 05/2024 is a month."""
    first, second = (int(part) for part in text.split("/"))
    if 1 <= first <= 12 and re.fullmatch(YEAR, text.partition("/")[2]):
        return dated(first, None, str(second))
    inch = text.endswith(_OF_AN_INCH) and first % 2 == 1
    if _ON_A_DAY.search(context) or (second > 9 and second not in (10, 100) and not inch) or second < first:
        month, day = (first, second) if first <= 12 else (second, first)
        if 1 <= month <= 12 and 1 <= day <= 31 and (first != second or _ON_A_DAY.search(context)):
            return dated(month, str(day))
    return None


def _month_first(found: re.Match[str]) -> str:
    """Jan. 3rd, 2024; March 10-12."""
    last = found["last"]
    if found["lastmonth"]:
        said = f"{dated(found['month'], found['day'])} to {dated(found['lastmonth'], last)}"
    else:
        said = dated(found["month"], found["day"]) + (f" to {ordinal(int(last))}" if last else "")
    return f"{said}, {year(int(found['year']))}" if found["year"] else said


def _day_first(found: re.Match[str]) -> str:
    """15 January; 15th of January; 15-20 January -> January fifteenth to twentieth."""
    if low := found["low"]:
        said = f"{dated(found['month'], low)} to {ordinal(int(found['day']))}"
        return f"{said}, {year(int(found['year']))}" if found["year"] else said
    if found["of"]:
        return f"{ordinal(int(found['day']))} of {dated(found['month'], None, found['year'])}"
    return dated(found["month"], found["day"], found["year"])


def _names(found: re.Match[str]) -> str:
    """Mon-Fri -> Monday to Friday."""
    return f"{full(found['first'])} to {full(found['last'])}"


def _years(found: re.Match[str]) -> str | None:
    """1980-1986; 2019-20, where it is no month (2019-12); 2023/24."""
    first, last = int(found["first"]), found["last"]
    if found["dash"] == "/" and (first + 1) % 100 != int(last) % 100:
        return None
    if len(last) == 4:
        return f"{year(first)} to {year(int(last))}" if first < int(last) else None
    if first % 100 < int(last):
        return f"{year(first)} to {cardinal(int(last)) if last[0] != '0' else digits(last)}"
    return (
        dated(int(last), None, found["first"]) if 1 <= int(last) <= 12 and re.fullmatch(HYPHEN, found["dash"]) else None
    )


def _decade(found: re.Match[str]) -> str | None:
    """1980s -> nineteen eighties, '80s -> eighties; 1960s-1970s; "for 30s" are seconds."""
    low, number = found["low"], found["number"]
    seconds = FOR_A_TIME.search(before(found)) or _OF_TIME.match(found.string, found.end())
    if len(number) == 2 and not (low or found["apostrophe"]) and seconds:
        return None
    said = [plural(year(int(each)) if len(each) == 4 else cardinal(int(each))) for each in (low, number) if each]
    return " to ".join(said)


def _year(found: re.Match[str]) -> str | None:
    number = int(found.group())
    return year(number) if number >= 1100 or _IN_A_YEAR.search(before(found)) else None


DATES: tuple[WrittenForm, ...] = (
    form(
        "date, year first",
        DIGITS,
        rf"(?P<year>[0-9]{{4}})(?P<joint>[/.{HYPHENS}])(?P<month>0?[1-9]|1[0-2])(?P<again>[/.{HYPHENS}])(?P<day>{DAY})(?:(?P<time>[T])(?=[0-9]{{2}}:)|{END})",
        _iso,
    ),
    form(
        "date in numbers",
        DIGITS,
        rf"(?P<first>{DAY})(?P<joint>[/.{HYPHENS}])(?P<second>{DAY})(?P<again>[/.{HYPHENS}])(?P<year>{YEAR}|[0-9]{{2}}){END}",
        _numeric,
    ),
    form(
        "date, month first",
        _MONTHS_BEGIN,
        rf"(?P<month>{MONTH})\s(?P<day>{DAY}){_TH}?(?:{DASH}(?:(?P<lastmonth>{MONTH})\s)?(?P<last>{DAY}){_TH}?)?(?:,?\s(?P<year>{YEAR})(?!\w|,[0-9]))?{END}",
        _month_first,
    ),
    form(
        "month and year",
        _MONTHS_BEGIN,
        rf"(?P<month>{MONTH}),?\s(?P<year>{YEAR}){END}",
        lambda found: dated(found["month"], None, found["year"]),
    ),
    form(
        "date, day first, and range of days",
        DIGITS,
        rf"(?:(?P<low>{DAY}){_TH}?{DASH})?(?P<day>{DAY}){_TH}?(?P<of>\sof)?\s(?P<month>{MONTH})"
        rf"(?:,?\s(?P<year>{YEAR})(?!\w|,[0-9]))?",
        _day_first,
    ),
)
_DATE = (
    rf"(?:[0-9]{{1,4}}[/.]{DAY}(?:[/.](?:{YEAR}|[0-9]{{2}}))?|{YEAR}{HYPHEN}[0-9]{{2}}{HYPHEN}[0-9]{{2}}"
    rf"|{MONTH}\s{DAY}{_TH}?,?\s{YEAR}|{MONTH},?\s{YEAR}|{DAY}{_TH}?\s{MONTH}(?:,?\s{YEAR})?)"
)


def _date(text: str, context: str = "") -> str | None:
    if re.fullmatch("[0-9]+/[0-9]+", text):
        return day_of_month(text, context)
    said = (each.say(found) for each in DATES if (found := each.pattern.fullmatch(text)))
    return next(filter(None, said), None)


def _dates(found: re.Match[str]) -> str | None:
    """1/15-1/20 -> January fifteenth to January twentieth. Where one of them is a date, both are: 12/31-1/1."""
    low, high = found["low"], found["high"]
    if not (_date(low, before(found)) or _date(high)):
        return None
    first, last = _date(low, "on "), _date(high, "on ")
    return f"{first} to {last}" if first and last else None


FORMS: tuple[WrittenForm, ...] = (
    form("range of dates", DIGITS + _MONTHS_BEGIN, rf"(?P<low>{_DATE}){DASH}(?P<high>{_DATE}){END}", _dates),
    *DATES,
    form(
        "quarter or half of a year",
        "QH",
        rf"(?P<part>[QH][1-4])(?:/|{HYPHEN})(?P<year>{YEAR}){END}",
        lambda found: f"{found['part'][0]} {cardinal(int(found['part'][1]))} {year(int(found['year']))}",
    ),
    form("range of months", _MONTHS_BEGIN, rf"(?P<first>{MONTH}){DASH}(?P<last>{MONTH})(?! ?[0-9])", _names),
    form("range of weekdays", _WEEKDAYS_BEGIN, rf"(?P<first>{WEEKDAY}){DASH}(?P<last>{WEEKDAY})", _names),
    form(
        "weekday",
        _WEEKDAYS_BEGIN,
        rf"(?P<name>{_ABBREVIATED})"
        rf"(?P<known>[.](?=[ ,])|\b(?=,? (?:{MONTH} ?[0-9]|[0-9])|{_AND} {_ABBREVIATED}\b))?(?!\w)",
        lambda found: full(found["name"]) if found["known"] is not None or _LISTED.search(before(found)) else None,
    ),
    form(
        "weekdays",
        _WEEKDAYS_BEGIN,
        rf"{WEEKDAY}(?:/{WEEKDAY})+(?![\w/])",
        lambda found: ", ".join(full(name) for name in found.group().split("/")),
    ),
    form(
        "range of years",
        DIGITS,
        rf"(?P<first>1[1-9][0-9]{{2}}|20[0-9]{{2}})(?P<dash>{DASH}|/)(?P<last>{YEAR}|[0-9]{{2}}){END}",
        _years,
    ),
    form(
        "decade, and range of decades",
        DIGITS + "'’",
        rf"(?:['’]?(?P<low>{_DECADE})['’]?s{DASH})?(?P<apostrophe>['’])?(?P<number>{_DECADE})['’]?s\b",
        _decade,
    ),
)
YEARS: tuple[WrittenForm, ...] = (
    form("year", DIGITS, rf"{YEAR}{END}", _year),
    form(
        "short year",
        "'’",
        r"(?<!\w)['’](?P<year>[0-9]{2})(?![\w'’])",
        lambda found: f"oh {cardinal(int(found['year']))}" if found["year"][0] == "0" else cardinal(int(found["year"])),
    ),
)
"""Years: four digits that are no other form, and of which nothing says that they are a quantity."""
