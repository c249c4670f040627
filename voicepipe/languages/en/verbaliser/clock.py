"""Times of day."""

import re

from voicepipe.languages.en import words as english
from voicepipe.languages.en.verbaliser.calendar import WEEKDAY
from voicepipe.languages.en.verbaliser.numbers import cardinal
from voicepipe.languages.written_form import DASH, DIGITS, END, GAP, WrittenForm, form, unnamed

_GOES_ON = rf"(?=\s+(?:[a-z]|{WEEKDAY}|[ECMPG][SMD]?T\b)|\s?[-–,;:)])"
HALF = rf"(?P<half>[aApP])[.]?{GAP}[mM]\b(?:[.]{_GOES_ON})?"
_MINUTES = "(?P<hour>[01]?[0-9]|2[0-4]):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?"
TIME = rf"(?:{_MINUTES}(?:{GAP}{HALF})?|(?P<only>1[0-2]|0?[1-9]){GAP}{HALF})"
_HOUR = "(?:1[0-2]|0?[1-9])"
ANY_TIME = unnamed(rf"(?:{TIME}|{_HOUR}[.][0-5][0-9]{GAP}{HALF})")
_NAMED = r"(?:[nN]oon|[mM]idnight)\b"
_PARTS = re.compile(re.sub("<half>", "<with>", TIME, count=1))


def clock(text: str) -> str:
    """7:30 pm -> seven thirty p m; 7:05 -> seven oh five; 7:00 -> seven o'clock; 15:00 -> fifteen hundred."""
    found = _PARTS.match(re.sub("^([0-9]+)[.]", r"\1:", text))  # 10.30am
    if text.isalpha():
        return text
    if not found:
        return cardinal(int(text))
    hour, minute, second = int(found["hour"] or found["only"]), int(found["minute"] or 0), int(found["second"] or 0)
    half = (found["half"] or found["with"] or "").lower()
    if not minute and not second and not half and hour in (0, 24):
        return "midnight"
    said = cardinal(hour)
    if minute:
        said += f" oh {english.UNITS[minute]}" if minute < 10 else f" {cardinal(minute)}"
    elif not half:
        said += " o'clock" if hour <= 12 else " hundred"
    if second:
        said += f" and {cardinal(second)} {'second' if second == 1 else 'seconds'}"
    return f"{said} {half} m" if half else said


def _range(found: re.Match[str]) -> str | None:
    """2-5pm -> two to five p m; 10:30-11:00 -> ten thirty to eleven o'clock; 2-5 may be anything."""
    if found["first"].isdecimal() and found["last"].isdecimal():
        return None
    return f"{clock(found['first'])} to {clock(found['last'])}"


def _duration(found: re.Match[str]) -> str:
    """1h30 -> one hour thirty minutes."""
    parts = zip((found["hours"], found["minutes"], found["seconds"]), ("hour", "minute", "second"), strict=True)
    return " ".join(f"{cardinal(int(part))} {name if int(part) == 1 else f'{name}s'}" for part, name in parts if part)


FORMS: tuple[WrittenForm, ...] = (
    form(
        "duration",
        DIGITS,
        r"(?P<hours>[0-9]{1,3})h ?(?P<minutes>[0-5]?[0-9])(?:m(?:in)?|(?= |\b))(?: ?(?P<seconds>[0-5]?[0-9])s)?(?!\w)",
        _duration,
    ),
    form(
        "duration",
        DIGITS,
        r"(?P<hours>)(?P<minutes>[0-9]{1,3})m(?:in)? ?(?P<seconds>[0-5]?[0-9])s(?:ec)?(?!\w)",
        _duration,
    ),
    form(
        "time, UTC",
        DIGITS,
        rf"(?P<time>{unnamed(_MINUTES)})(?:[.][0-9]{{1,9}})?Z(?!\w)",
        lambda found: f"{clock(found['time'])} UTC",
    ),
    form(
        "range of times",
        DIGITS + "nNmM",
        rf"(?P<first>{ANY_TIME}|{_NAMED}|{_HOUR}){DASH}(?P<last>{ANY_TIME}|{_NAMED}|{_HOUR}){END}",
        _range,
    ),
    form("time", DIGITS, rf"(?P<time>{ANY_TIME}){END}", lambda found: clock(found["time"])),
)
