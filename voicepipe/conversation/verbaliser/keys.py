"""Star and pound, as keys of a telephone and as the signs that hide digits. Looked for before markdown, whose signs
they are, too."""

import re

from voicepipe.conversation.verbaliser.form import DIGITS, WrittenForm, before, form
from voicepipe.conversation.verbaliser.numbers import digits, grouped

NAMES = {"*": "star", "#": "pound"}
_VERB = r"(?i)\b(?:press|dial|enter|hit|push|tap|touch|type|us|code|followed by|then)(?:e?[sd]?|ing)\b"
_KEYS = re.compile(rf"{_VERB}(?: (?:the|key|or|and|then|[0-9*#]+)\b|[ ,0-9*#])* $")
"""Right before keys: "press", "dial 1 or"."""
_PRESSED = re.compile(rf"{_VERB}[^.!?\n]{{0,40}}$")
_NAMED = r" (?:key|sign|button)\b"
_HIDDEN = re.compile(r"(?i)\b(?:account|card|end(?:s|ing)(?: in| with)?|number) $")

_EMPHASIS_ENDS = re.compile(r"[^\n*]{0,80}[^\s*]\*(?!\w)")


def said(keys: str) -> str:
    """*67# -> star six seven pound."""
    return " ".join(NAMES.get(key) or digits(key) for key in keys)


def _keys(found: re.Match[str]) -> str | None:
    written = found.group()
    if written[0] == "*" and _EMPHASIS_ENDS.match(found.string, found.end()):
        return None
    service = written[0] == "*" and written[-1] == "#"  # *123#, a network's own code.
    return said(written) if service or _KEYS.search(before(found)) else None


def _key(found: re.Match[str]) -> str | None:
    return NAMES[found["key"]] if found["named"] is not None or _PRESSED.search(before(found, 80)) else None


FORMS: tuple[WrittenForm, ...] = (
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
