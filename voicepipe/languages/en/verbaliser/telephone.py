"""Telephone numbers, digit by digit in their groups; star and pound, as keys of a telephone and as the signs that hide
digits."""

import re

from voicepipe.languages.en.verbaliser.numbers import cardinal, digits, grouped
from voicepipe.languages.written_form import COUNTRY, DIGITS, END, HYPHEN, HYPHENS, WrittenForm, before, form

EXTENSION = r"(?:,? ?(?:[eE]xt(?:ension|[.])?|x|#)[ .:]{0,2}#?(?P<extension>[0-9]{1,6}))?"
GROUPS = "|".join(rf"\(?[0-9]{{2,5}}\)?(?:{joint}[0-9]{{2,6}}){{1,5}}" for joint in (" ", "[.]", HYPHEN))
MIXED = rf"\(?[0-9]{{2,5}}\)? ?[0-9]{{2,4}}(?:[ {HYPHENS}][0-9]{{2,5}}){{1,3}}"
NANP = rf"(?:1[ ./{HYPHENS}]?)?\(?[2-9][0-9]{{2}}\)?[ ./{HYPHENS}]?[2-9][0-9]{{2}}[ .{HYPHENS}]?[0-9]{{4}}"
"""The North American plan's: 416-555-0192, with or without a 1 before it."""
CALLED = re.compile(
    r"(?i)\b(?:call|dial|text|phone|ring|contact|reach)(?:ing)?(?: (?:[0-9]{3}|or|and|to|at|us|me|on)\b,?){0,3} $"
)
TEXTED = re.compile(r"(?i)\b(?:text|sms|short code)\b[^.!?\n]{0,30}$")
LINES = re.compile("[2-9]11|988|112|999|000|10[15]")
"""Numbers of three digits that are dialled as they are."""

KEY_NAMES = {"*": "star", "#": "pound"}
_VERB = r"(?i)\b(?:press|dial|enter|hit|push|tap|touch|type|us|code|followed by|then)(?:e?[sd]?|ing)\b"
_BEFORE_KEYS = re.compile(rf"{_VERB}(?: (?:the|key|or|and|then|[0-9*#]+)\b|[ ,0-9*#])* $")
"""Right before keys: "press", "dial 1 or"."""
_PRESSED = re.compile(rf"{_VERB}[^.!?\n]{{0,40}}$")
_NAMED = r" (?:key|sign|button)\b"
_HIDDEN = re.compile(r"(?i)\b(?:account|card|end(?:s|ing)(?: in| with)?|number) $")

_EMPHASIS_ENDS = re.compile(r"[^\n*]{0,80}[^\s*]\*(?!\w)")


def telephone(text: str) -> str:
    """+44 20 7946 0958 -> plus four four, two zero, seven nine four six, zero nine five eight."""
    parts: list[str] = []
    for group in re.findall("[0-9]+", text):
        if len(group) > 10 and (country := COUNTRY.match(group)) and (text[0] == "+" or group[0] == "1"):
            parts.append(digits(country.group()))
            group = group[country.end() :]
        parts.append(grouped(group))
    return ("plus " if text.startswith("+") else "") + ", ".join(parts)


def _number(found: re.Match[str]) -> str:
    said = telephone(found["number"])
    return f"{said}, extension {digits(found['extension'])}" if found["extension"] else said


def _north_american(found: re.Match[str]) -> str:
    """212-555-0187/0188: the second one differs in its last group."""
    return f"{_number(found)}, or {digits(found['other'])}" if found["other"] else _number(found)


def _vanity(found: re.Match[str]) -> str:
    """1-800-FLOWERS: the letters are a word."""
    words = (digits(part) if part.isdigit() else part for part in re.findall("[0-9]+|[A-Z]+", found["word"]))
    return f"{telephone(found['number'])}, {' '.join(words)}"


def _short(found: re.Match[str]) -> str | None:
    """Three digits where a person is asked to dial them; five or six where a person is asked to text to them."""
    number, context = found.group(), before(found)
    if number == "911" or (LINES.fullmatch(number) and CALLED.search(context)):
        return digits(number)
    return grouped(number) if len(number) in (5, 6) and TEXTED.search(context) else None


def _extension(found: re.Match[str]) -> str:
    number = found["number"]
    said = cardinal(int(number)) if len(number) < 3 and number[0] != "0" else digits(number)
    return f"{'Extension' if found.group()[0] == 'E' else 'extension'} {said}"


def pressed(keys: str) -> str:
    """*67# -> star six seven pound."""
    return " ".join(KEY_NAMES.get(key) or digits(key) for key in keys)


def _keys(found: re.Match[str]) -> str | None:
    written = found.group()
    if written[0] == "*" and _EMPHASIS_ENDS.match(found.string, found.end()):
        return None
    service = written[0] == "*" and written[-1] == "#"  # *123#, a network's own code.
    return pressed(written) if service or _BEFORE_KEYS.search(before(found)) else None


def _key(found: re.Match[str]) -> str | None:
    return KEY_NAMES[found["key"]] if found["named"] is not None or _PRESSED.search(before(found, 80)) else None


DIALLED: tuple[WrittenForm, ...] = (
    form(
        "vanity number",
        DIGITS + "(",
        rf"(?P<number>(?:1[ .{HYPHENS}]?)?\(?[89][0-9]{{2}}\)?)[ .{HYPHENS}]"
        rf"(?P<word>(?=[0-9{HYPHENS}]{{0,4}}[A-Z]{{2}})[A-Z0-9](?:{HYPHEN}?[A-Z0-9]){{2,15}}){END}",
        _vanity,
    ),
    form(
        "international number",
        "+",
        rf"(?P<number>\+[0-9](?:[ ()./{HYPHENS}]{{0,3}}[0-9]){{6,18}}){EXTENSION}{END}",
        _number,
    ),
    form(
        "North American number",
        DIGITS + "(",
        rf"(?P<number>{NANP})(?:{EXTENSION}|/(?P<other>[0-9]{{4}})){END}",
        _north_american,
    ),
    form("short number", DIGITS, rf"[0-9]{{3,6}}{END}", _short),
    form("extension", "eE", rf"[eE]xt(?:ension|[.])?:? ?(?:# ?)?(?P<number>[0-9]{{1,6}}){END}", _extension),
)
"""Numbers whose shape alone says that they are dialled."""

GROUPED: tuple[WrittenForm, ...] = (
    form(
        "number in groups",
        DIGITS + "(",
        rf"(?P<number>(?=(?:[ ().{HYPHENS}]{{0,3}}[0-9]){{7,19}}\b)(?:{GROUPS}|{MIXED})){EXTENSION}{END}",
        _number,
    ),
)
"""Seven digits and more in groups: a telephone number, a card's, a postcode. Ranges and dates are looked for before."""

KEYS: tuple[WrittenForm, ...] = (
    form(
        "hidden digits",
        "*•#",
        # A group ends only where a separator stands: else a long row of stars could be parted in n^4 ways.
        r"[*•#]{4,24}(?:(?: -?|-)[*•#]{4,24}){0,3}(?: -?|-)?(?P<number>[0-9]{2,6})(?![\w*#]|[.,][0-9])",
        lambda found: grouped(found["number"]),
    ),
    form(
        "hidden digits",
        "*",
        r"\*{1,3}(?P<number>[0-9]{3,6})(?![\w*]|[.,][0-9]|[^\n]{0,80}\*)",
        lambda found: grouped(found["number"]) if _HIDDEN.search(before(found)) else None,
    ),
    form(
        "keys",
        "*#" + DIGITS,
        r"(?:[*#]{1,2}[0-9]{1,6}(?:[*#][0-9]{1,20}){0,3}#?|[0-9]{1,20}#)(?![\w*#]|[.,][0-9])",
        _keys,
    ),
    form("key", "*#", rf"(?<![^\s\"'“‘(])(?P<key>[*#])(?P<named>(?={_NAMED}))?(?! [0-9])(?=[\s.,;:!?)\"'”’]|$)", _key),
)
"""Looked for before markdown, whose signs they are, too."""
