"""Written text -> words as people say them: prices, dates, times, telephone numbers, markdown, addresses, emoji.

Each language is a table of (pattern, function); the first pattern that fits at a place is taken. A language without a
table gets the part that is the same in all of them: markdown, emoji and links are removed.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from voicepipe.turn import characters

Rule = tuple[re.Pattern[str], Callable[[re.Match[str]], str]]


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the text that begins and ends at a word, with the space after it, and what is said for it."""

    written: str
    spoken: str


def speakable(text: str, language: str = "en") -> str:
    """What a synthesiser should be given for `text`. Never raises; "" when there is nothing to say."""
    return together(pieces(text, language))


def together(parts: Iterable[Piece]) -> str:
    """All that is said for them."""
    return " ".join(part.spoken for part in parts if part.spoken)


def pieces(text: str, language: str = "en") -> list[Piece]:
    """`text` in order, with what is said for each part; the written parts joined are `text` itself."""
    rules = LANGUAGES.get(language.lower().split("-")[0]) or LANGUAGES[""]
    result: list[Piece] = []
    said: list[str] = []
    start = at = 0
    while at < len(text):
        if text[at].isspace():
            gap, at = at, _next_word(text, at)
            result.append(Piece(text[start:at], _ended(_spaced(said), text[gap:at], at < len(text))))
            start = at
            said.clear()
            continue
        at, words = _rule(rules, text, at)
        said.append(words)
    return [*result, Piece(text[start:], _spaced(said))] if start < len(text) else result


def _next_word(text: str, at: int) -> int:
    """Where the space at `at` ends; `at` itself where there is none."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def _spaced(said: list[str]) -> str:
    """Words of neighbouring rules stand one space apart."""
    return " ".join("".join(said).split())


def heard(parts: Iterable[Piece], words: int) -> str:
    """The written text of which `words` spoken words have been heard; a piece counts once all of it was.

    For histories that keep what the caller heard, where "$18.50" is one written word and three spoken ones.
    """
    text = ""
    for piece in parts:
        words -= len(piece.spoken.split())
        if words < 0:
            break
        text += piece.written
    return text


def _rule(rules: "_Rules", text: str, at: int) -> tuple[int, str]:
    """The end of what the first fitting rule takes at `at`, and what is said for it; else one plain run of letters."""
    for pattern, say in rules.table if rules.some.match(text, at) else ():
        found = pattern.match(text, at)
        if found and found.end() > at:
            # A rule that takes the space after its words ("- ") would hide a word's end.
            return at + len(found.group().rstrip()), say(found)
    # A run of letters goes as a whole: rules for numbers and marks begin at the edge of a word.
    return characters.spoken(text, at)


def _ended(said: str, gap: str, more: bool) -> str:
    """A line's end is heard as a pause: "one\\ntwo" is said "one, two"."""
    if more and "\n" in gap and characters.ends_in_word(said):
        return said + ("." if gap.count("\n") > 1 else ",")
    return said


# --- numbers in English ------------------------------------------------------------------------------------------

ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
ORDINALS = {"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth"}
ORDINALS |= {"twelve": "twelfth"}
MONTHS = "January February March April May June July August September October November December".split()
MONTH_KEYS = {name[:3].lower(): name for name in MONTHS}
CURRENCIES = {
    "$": ("dollar", "cent"),
    "€": ("euro", "cent"),
    "£": ("pound", "pence"),
    "¥": ("yen", ""),
    "₹": ("rupee", "paisa"),
}
UNITS = {
    "km/h": "kilometers per hour", "mph": "miles per hour", "km": "kilometers", "cm": "centimeters",
    "mm": "millimeters", "kg": "kilograms", "mg": "milligrams", "ml": "milliliters", "m": "meters", "g": "grams",
    "l": "liters", "lb": "pounds", "lbs": "pounds", "oz": "ounces", "ft": "feet", "mi": "miles", "min": "minutes",
    "mins": "minutes", "sec": "seconds", "hrs": "hours", "hr": "hours", "h": "hours", "ms": "milliseconds",
    "s": "seconds", "kB": "kilobytes", "MB": "megabytes", "GB": "gigabytes", "TB": "terabytes", "kW": "kilowatts",
    "W": "watts", "Hz": "hertz", "kHz": "kilohertz", "m²": "square meters", "km²": "square kilometers",
    "°C": "degrees Celsius", "°F": "degrees Fahrenheit", "°": "degrees", "%": "percent", "‰": "per mille",
    "k": "thousand",
}  # fmt: skip
SINGULAR = {"feet": "foot", "percent": "percent", "hertz": "hertz", "kilohertz": "kilohertz", "thousand": "thousand"}
ABBREVIATIONS = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "approx.": "approximately",
    "dr.": "Doctor", "mr.": "Mister", "mrs.": "Missus", "ms.": "Miss", "prof.": "Professor", "no.": "number",
    "tel.": "telephone", "dept.": "department", "ave.": "avenue", "blvd.": "boulevard", "a.m.": "a m", "p.m.": "p m",
    "mon.": "Monday", "tue.": "Tuesday", "wed.": "Wednesday", "thu.": "Thursday", "fri.": "Friday", "w/": "with",
    "incl.": "including", "max.": "at most", "min.": "at least",
}  # fmt: skip
DOMAINS = "com|org|net|edu|gov|info|example|io|dev|app|ai|eu|de|uk|fr|nl"
SIGNS = {"&": "and", "@": "at", "+": "plus", "=": "equals", "<": "less than", ">": "greater than", "#": "number"}
SPELLED = {".": " dot ", "/": " slash ", "-": " dash ", "_": " underscore ", "@": " at ", "?": " ", "=": " ", "&": " "}


def cardinal(number: int) -> str:
    """1234 -> "one thousand two hundred thirty four"; digit by digit from 10**15 on."""
    if number < 0:
        return f"minus {cardinal(-number)}"
    if number >= 10**15:
        return digits(str(number))
    if number < 20:
        return ONES[number]
    if number < 100:
        return TENS[number // 10] + (f" {ONES[number % 10]}" if number % 10 else "")
    size, name = next((size, name) for size, name in SCALES if number >= size)
    rest = number % size
    return f"{cardinal(number // size)} {name}" + (f" {cardinal(rest)}" if rest else "")


def ordinal(number: int) -> str:
    """21 -> "twenty first"."""
    *head, last = cardinal(number).split()
    last = ORDINALS.get(last) or (last[:-1] + "ieth" if last.endswith("y") else last + "th")
    return " ".join([*head, last])


def digits(text: str) -> str:
    """Digit by digit."""
    return " ".join(ONES[int(sign)] for sign in text if sign in "0123456789")


def year(number: int) -> str:
    """1987 -> "nineteen eighty seven", 2005 -> "two thousand five"."""
    high, low = divmod(number, 100)
    if high % 10 == 0 and low < 10:
        return cardinal(number)
    return f"{cardinal(high)} {'hundred' if low == 0 else f'oh {ONES[low]}' if low < 10 else cardinal(low)}"


def decimal(text: str) -> str:
    """A number as written, "1,234.50", with its thousands' commas."""
    whole, _, fraction = text.replace(",", "").partition(".")
    said = digits(whole) if len(whole) > 1 and whole.startswith("0") else cardinal(int(whole or "0"))
    return f"{said} point {digits(fraction)}" if fraction else said


def money(found: re.Match[str]) -> str:
    """$18.50 -> eighteen dollars fifty; $0.50 -> fifty cents; $2.5 million -> two point five million dollars."""
    many, part = CURRENCIES[found["sign"]]
    amount, scale = found["amount"].replace(",", ""), found["scale"]
    plural = many if many == "yen" else f"{many}s"
    if scale:
        word = {"k": "thousand", "m": "million", "bn": "billion"}.get(scale.strip().lower(), scale.strip().lower())
        return f"{decimal(amount)} {word} {plural}"
    whole, _, fraction = amount.partition(".")
    cents = int(fraction.ljust(2, "0")[:2] or "0")
    if not int(whole) and cents and part:
        return f"{cardinal(cents)} {part if cents == 1 or part == 'pence' else f'{part}s'}"
    said = f"{cardinal(int(whole))} {many if int(whole) == 1 else plural}"
    return f"{said} {cardinal(cents)}" if cents else said


def clock(found: re.Match[str]) -> str:
    """7:30 pm -> seven thirty p m; 7:05 -> seven oh five; 7:00 -> seven o'clock; 7 pm -> seven p m."""
    hour, minute, half = int(found["hour"]), int(found["minute"] or 0), (found["half"] or "").lower()
    said = cardinal(hour)
    if minute:
        said += f" oh {ONES[minute]}" if minute < 10 else f" {cardinal(minute)}"
    elif not half:
        said += " o'clock" if hour <= 12 else " hundred"
    return f"{said} {half[0]} m" if half else said


def date(found: re.Match[str]) -> str:
    """The date in any of its spellings -> May fourteenth, twenty twenty six."""
    groups = {name: value for name, value in found.groupdict().items() if value}
    name = groups.get("name", "")
    month = MONTH_KEYS[name[:3].lower()] if name else MONTHS[min(12, max(1, int(groups["month"]))) - 1]
    said = f"{month} {ordinal(int(groups['day']))}" if "day" in groups else month
    return f"{said}, {year(int(groups['year']))}" if "year" in groups else said


def telephone(found: re.Match[str]) -> str:
    """+44 20 7946 0958 -> plus four four, two zero, ...; a group of more than four digits is broken up in threes."""
    groups = re.findall(r"\d+", found.group())
    apart = [part for group in groups for part in (re.findall(r"\d{1,3}", group) if len(group) > 4 else [group])]
    return ("plus " if found.group().startswith("+") else "") + ", ".join(digits(part) for part in apart)


def measure(found: re.Match[str]) -> str:
    """5 km -> five kilometers; 1 kg -> one kilogram; 12.5% -> twelve point five percent."""
    unit = UNITS[found["unit"]]
    if found["number"] == "1":
        unit = SINGULAR.get(unit) or re.sub(r"s\b", "", unit, count=1)
    return f"{decimal(found['number'])} {unit}"


def address(text: str) -> str:
    """A link or an e-mail address, said sign by sign where it has signs."""
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", text).rstrip("/").split("?")[0]
    return " ".join("".join(SPELLED.get(sign, sign) for sign in bare).split())


def span(found: re.Match[str]) -> str:
    """5-7 -> five to seven."""
    return f"{decimal(found[1])} to {decimal(found[2])}"


def code(found: re.Match[str]) -> str:
    """A long or zero-led number is a code: digit by digit, in threes."""
    return ", ".join(digits(part) for part in re.findall(r"\d{1,3}", found.group()))


# --- the tables --------------------------------------------------------------------------------------------------


def _table(*rows: tuple[str, Callable[[re.Match[str]], str]]) -> tuple[Rule, ...]:
    return tuple((re.compile(pattern, re.ASCII if "\\d" in pattern else 0), say) for pattern, say in rows)


_NUMBER = r"\d{1,3}(?:,\d{3}){1,9}(?:\.\d{1,30})?|\d{1,15}(?:\.\d{1,10})?"
_MONTH = rf"(?P<name>(?:{'|'.join(MONTHS)})\b|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_EDGE = r"(?<![\w.,])"
_END = r"(?![\w]|[.,:]\d)"
_UNIT = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_MARKS = r"\*{1,3}|_{2,3}|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|~~|`+"

MARKDOWN = _table(
    (r"(?m:^)[ \t]*`{3}\w*", lambda found: ""),
    (r"(?m:^)#{1,6}(?=\s)", lambda found: ""),
    (r"(?m:^)>(?=\s)", lambda found: ""),
    (r"(?m:^)[-*+•](?=\s)", lambda found: ""),
    (r"(?m:^)(?=[ :|]*[-*_]{3})[ :|*_-]+(?m:$)", lambda found: ""),
    (r"\|(?=\s|$)", lambda found: ","),
    (r"\|", lambda found: " "),
    (r"!?\[(?=[^\[\]\n]*\]\()", lambda found: ""),
    (r"\]\([^)\s]{0,500}\)", lambda found: ""),
    (_MARKS, lambda found: ""),
)

_IN_LINK = "!-~\u00c0-\u024f\u0370-\u052f"
"""ASCII, and letters of scripts with spaces: what stands directly behind a link in others is no part of it."""
NEUTRAL: tuple[Rule, ...] = (
    *MARKDOWN,
    *_table((rf"https?://[{_IN_LINK}]*(?![.,;:!?)\]])[{_IN_LINK}]", lambda found: "")),
)

ENGLISH: tuple[Rule, ...] = (
    *_table((r"(?<=\d)\*(?=\d)", lambda found: " times ")),
    *MARKDOWN,
    *_table(
        (r"https?://\S*[^\s.,;:!?)\]*]|www\.[\w.-]+\w(?:/\S*[^\s.,;:!?)\]*])?", lambda found: address(found.group())),
        (r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,5}", lambda found: address(found.group())),
        (rf"[A-Za-z][\w-]{{0,63}}(?:\.[\w-]{{1,64}}){{0,5}}\.(?:{DOMAINS})\b", lambda found: address(found.group())),
        (rf"(?P<sign>[$€£¥₹])\s?(?P<amount>{_NUMBER})(?P<scale>\s?(?:million|billion|bn|[kKmM])\b)?", money),
        (rf"{_EDGE}(?P<amount>{_NUMBER})\s?(?P<sign>[€£])(?P<scale>)", money),
        (rf"{_EDGE}(?P<year>\d{{4}})-(?P<month>0\d|1[0-2])-(?P<day>0[1-9]|[12]\d|3[01]){_END}", date),
        (rf"{_EDGE}(?P<month>0?[1-9]|1[0-2])/(?P<day>0?[1-9]|[12]\d|3[01])/(?P<year>\d{{4}}){_END}", date),
        (rf"{_EDGE}(?P<day>1[3-9]|2\d|3[01])/(?P<month>0?[1-9]|1[0-2])/(?P<year>\d{{4}}){_END}", date),
        (rf"\b{_MONTH}\s+(?P<day>[12]\d|3[01]|0?[1-9])(?:st|nd|rd|th)?(?:,?\s+(?P<year>1\d{{3}}|20\d\d))?{_END}", date),
        (rf"{_EDGE}(?P<day>[12]\d|3[01]|0?[1-9])\s+{_MONTH}(?:\s+(?P<year>1\d{{3}}|20\d\d)\b)?", date),
        (
            r"(?<![\w:.,])(?P<hour>[01]?\d|2[0-4]):(?P<minute>[0-5]\d)(?:\s?(?P<half>[aApP])\.?[mM]\b(?:\.(?=\s+[a-z]))?)?(?![:\d])",
            clock,
        ),
        (r"(?<![\w:.,])(?P<hour>1[0-2]|0?[1-9])(?P<minute>)\s?(?P<half>[aApP])\.?[mM]\b(?:\.(?=\s+[a-z]))?", clock),
        (r"\+\d[\d ().-]{5,20}\d\b", telephone),
        (r"(?<![\w.,])(?=(?:[ ().-]{0,3}\d){7,15}\b)\(?\d{2,5}\)?(?:[ .-]\d{2,5}){1,5}\b(?!\.\d)", telephone),
        (rf"{_EDGE}(?P<number>{_NUMBER})\s?(?P<unit>{_UNIT})(?![\w²/])", measure),
        (r"(?<![\w.,])(\d{1,6})(?:st|nd|rd|th)\b", lambda found: ordinal(int(found[1]))),
        (rf"{_EDGE}({_NUMBER})\s?[-–]\s?({_NUMBER}){_END}", span),
        (r"(?<![\w.,])(?:1[1-9]\d\d|20\d\d)\b(?![.,]\d)", lambda found: year(int(found.group()))),
        (r"(?<![\w.,])(?:0\d+|\d{7,})\b(?![.,]\d)", code),
        (rf"(?<![\w.,])[-−](?={_NUMBER})", lambda found: "minus "),
        (rf"(?:{_NUMBER})", lambda found: _apart(found, decimal(found.group()))),
        (r"(?<![\w.])(?:[A-Za-z]\.){2,}|(?<![\w.])[A-Za-z]+\.|\bw/", lambda found: _abbreviation(found)),
        (r"(?<!\w)[&@+=<>](?!\w)|#(?=\d)|(?<=\w)[&@=](?=\w)", lambda found: f" {SIGNS[found.group()]} "),
    ),
)
"""The order matters: what is longer or more special comes first."""


class _Rules:
    """A language's table. At most places no rule fits, which one pattern finds out faster than forty."""

    def __init__(self, table: tuple[Rule, ...]) -> None:
        self.table = table
        nameless = ((re.sub(r"\(\?P<\w+>", "(?:", rule.pattern), rule.flags & re.ASCII) for rule, _ in table)
        self.some = re.compile("|".join(f"(?a:{pattern})" if ascii else pattern for pattern, ascii in nameless))


LANGUAGES = {"": _Rules(NEUTRAL), "en": _Rules(ENGLISH)}
"""By the tag's first part; "": all others."""


def _apart(found: re.Match[str], said: str) -> str:
    """Numbers inside a word are said apart from its letters: A12 -> A twelve."""
    before = found.start() and found.string[found.start() - 1].isalpha()
    after = found.string[found.end() : found.end() + 1].isalpha()
    return f"{' ' if before else ''}{said}{' ' if after else ''}"


def _abbreviation(found: re.Match[str]) -> str:
    """What an abbreviation stands for; its point stays if a sentence ends there."""
    written = found.group()
    said = ABBREVIATIONS.get(written.lower())
    after = _next_word(found.string, found.end())
    follows = found.string[after : after + 1]
    if said is None or (written.lower() in ("no.", "min.", "max.") and not follows.isdigit()):
        return written
    ends = written.lower() in ("etc.", "a.m.", "p.m.") and (not follows or follows.isupper())
    return f"{said}." if ends else said
