"""Numbers that name a thing, and words with digits inside: what they say is which digits, not how many."""

import re

from voicepipe.languages.en.verbaliser.numbers import cardinal, digits, grouped, plural
from voicepipe.languages.en.words import NUMBERED_PLACES, NUMBERED_RECORDS
from voicepipe.languages.written_form import (
    DIGITS,
    END,
    HYPHEN,
    HYPHENS,
    LETTERS,
    WrittenForm,
    before,
    constant,
    form,
)

_LINK = r"(?:[\s:#]|\b(?:code|number|no\.?|id|is|was|are)\b)"
_SHORT = "|".join((*NUMBERED_PLACES, r"apt\.?|apartment|bus|route|highway|pin|passcode|password|code|cvc|cvv|ssn"))
_LONG = "|".join((*NUMBERED_RECORDS, "card|number|box"))
NAMED = re.compile(rf"(?i)\b(?:{_SHORT}){_LINK}*$|\b(?:{_LONG}){_LINK}*(?:\b(?:code|number|no\.?|id)\b|#){_LINK}*$")
"""The number behind these words names a thing from three digits on."""
NAMED_LONG = re.compile(
    rf"(?i)\b(?:{_LONG}){_LINK}*$|\b(?:end(?:s|ing)(?: in| with)?|last (?:four|4)(?: digits)?(?: are| is|:)?) $"
)
"""Behind these from four digits on: people order 250 of something, too."""
NO_PREFIX = "TO OF IN BY AT ON IS OR AS WE MY NO SO UP BE DO IF IT US PM AM"
"""Words of two letters that are no airline's or state's, where all is written in capitals."""


def code(number: str) -> str:
    """The digits of a number that names a thing; "twelve" and "one hundred" as people say them."""
    if number[0] != "0" and (len(number) < 3 or (len(number) == 3 and number.endswith("00"))):
        return cardinal(int(number))
    return grouped(number)


def _identifier(found: re.Match[str]) -> str | None:
    number, context = found["number"], before(found)
    if NAMED.search(context) or (len(number) > 3 and NAMED_LONG.search(context)):
        return code(number)
    return None


def _prefixed(found: re.Match[str]) -> str | None:
    """BA 249, CA 90210."""
    if found["prefix"] in NO_PREFIX.split() or re.fullmatch("1[1-9][0-9]{2}|20[0-9]{2}", found["number"]):
        return None
    return f"{found['prefix']} {digits(found['number'])}"


def _mixed(found: re.Match[str]) -> str:
    """A12 -> A twelve; X7K42 -> X seven K four two; ABC-123 -> ABC one two three; F-16s -> F sixteens."""
    parts = re.findall(r"[^\W\d_]+|[0-9]+", found.group())
    runs = [part for part in parts if part[0] in DIGITS]
    each = len(runs) > 1 or len(runs[0]) > 2
    said = [part if part[0] not in DIGITS else digits(part) if each else code(part) for part in parts]
    if parts[-1] == "s" and len(runs) == 1 and len(parts) > 1:
        said[-2:] = [plural(said[-2])]
    return " ".join(said)


def _resolution(found: re.Match[str]) -> str:
    """1080p -> ten eighty p."""
    high, low = divmod(int(found["number"]), 100)
    return f"{cardinal(high)} {cardinal(low) if low else 'hundred'} {found['letter']}"


_WORD = r"[^\W\d_]"

NAMES: tuple[WrittenForm, ...] = (
    form(
        "identifier",
        DIGITS,
        rf"(?P<number>[0-9]{{3,12}})(?![\w%]|[.:/{HYPHENS}][0-9]|,[0-9]{{3}}(?![0-9]))",
        _identifier,
    ),
    form("airline or state", LETTERS, rf"(?P<prefix>[A-Z]{{2}}) (?P<number>[0-9]{{3,5}}){END}", _prefixed),
    form(
        "paragraph",
        DIGITS,
        r"(?P<number>[0-9]{3})(?P<parts>(?:\([a-z0-9]\)){1,3})",
        lambda found: f"{digits(found['number'])} {' '.join(digits(part) or part for part in found['parts'][1::3])}",
    ),
    form("line of a picture", DIGITS, r"(?P<number>[0-9]{3,4})(?P<letter>[pi])\b", _resolution),
)
MIXED: tuple[WrittenForm, ...] = (
    form(
        "word with digits",
        LETTERS,
        rf"(?:{_WORD}{{1,32}}|[A-Z]{{1,8}}{HYPHEN})(?:[0-9]{{1,32}}(?![0-9.:/,]*[0-9]))(?:{HYPHEN}?(?:{_WORD}|[0-9])){{0,32}}(?![\w])",
        _mixed,
    ),
    form("digits with letters", DIGITS, rf"[0-9]{{1,32}}{_WORD}(?:{HYPHEN}?(?:{_WORD}|[0-9])){{0,32}}(?![\w])", _mixed),
    constant("number of a thing", "#", "#(?=[A-Z][A-Z0-9-]{0,8}[0-9])", "number "),
    form(
        "number of a thing",
        "#",
        r"# ?(?P<number>[0-9]{1,12})(?![\w]|[.:/][0-9])",
        lambda found: f"number {code(found['number'])}",
    ),
    form("joint", "-‐‑–", r"(?<=[^\W\d_])[-‐‑](?=[0-9])|(?<=[0-9])[-‐‑](?=[^\W\d_])", lambda found: " "),
)
