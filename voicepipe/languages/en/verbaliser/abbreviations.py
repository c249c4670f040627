"""What abbreviations stand for."""

import re

from voicepipe.languages.written_form import LETTERS, WrittenForm, before, form

ALWAYS = {
    "e.g.": "for example", "i.e.": "that is", "etc.": "et cetera", "vs.": "versus", "approx.": "approximately",
    "mr.": "Mister", "mrs.": "Missus", "ms.": "Miss", "prof.": "Professor", "tel.": "telephone", "dept.": "department",
    "a.m.": "a m", "p.m.": "p m", "incl.": "including", "excl.": "excluding", "appt.": "appointment",
    "misc.": "miscellaneous",
    "a.k.a.": "also known as", "et al.": "and others", "qty.": "quantity",
}  # fmt: skip
TITLES = {
    "mt.": "Mount", "gov.": "Governor", "sen.": "Senator", "capt.": "Captain", "sgt.": "Sergeant", "lt.": "Lieutenant",
    "rev.": "Reverend", "gen.": "General", "col.": "Colonel", "hon.": "Honorable",
}  # fmt: skip
"""Before a name."""
STREETS = {
    "ave.": "Avenue", "blvd.": "Boulevard", "rd.": "Road", "ln.": "Lane", "pkwy.": "Parkway", "hwy.": "Highway",
    "sq.": "Square",
}  # fmt: skip
AFTER_NAMES = {
    "inc.": "Incorporated", "ltd.": "Limited", "corp.": "Corporation", "co.": "Company", "jr.": "Junior",
    "sr.": "Senior",
}  # fmt: skip
TITLE_OR_STREET = {"dr.": ("Doctor", "Drive"), "st.": ("Saint", "Street")}
BEFORE_NUMBERS = {
    "no.": "number", "nos.": "numbers", "min.": "at least", "max.": "at most", "p.": "page", "pp.": "pages",
    "vol.": "volume", "fig.": "figure", "ch.": "chapter", "sec.": "section", "apt.": "apartment", "ste.": "suite",
    "ca.": "about",
}  # fmt: skip
"""Only there: "No." is an answer, too."""
SLASHED = {
    "w/o": "without",
    "w/out": "without",
    "w/in": "within",
    "w/": "with",
    "c/o": "care of",
    "n/a": "not applicable",
}
ENDING = ("etc.", "a.m.", "p.m.", *STREETS, *AFTER_NAMES, *TITLE_OR_STREET)
"""A sentence may end with these: then their point stays."""
_NAME = re.compile(r"(?<![.!?] )(?<!^)\b(?:[A-Z][\w'’]*|[0-9]+(?:st|nd|rd|th)),? $")
"""A name before it that is not merely the first word of a sentence: "12 Main", "5th"."""

_ANY_NAME = re.compile(r"(?<!^)\b[A-Z][\w'’]* $")
"""Matches a name at the text's end, unless it is the text's first word."""


def _abbreviation(found: re.Match[str]) -> str | None:
    written = found.group()
    key = written.lower()
    rest = found.string[found.end() : found.end() + 40]
    follows = rest.lstrip()[:1]
    number = follows.isdigit() or (follows == "#" and rest.lstrip()[1:2].isdigit())
    capital = written[0].isupper()
    if key in BEFORE_NUMBERS:
        return BEFORE_NUMBERS[key] if number else None
    if key in TITLE_OR_STREET:
        title, street = TITLE_OR_STREET[key]
        named = (_NAME if follows else _ANY_NAME).search(before(found))
        said = street if named or (follows and not follows.isupper()) else title
        if not capital and not follows.isupper():
            return None
    elif key in STREETS or key in AFTER_NAMES:
        said = STREETS.get(key) or AFTER_NAMES[key]
        if not capital:
            return None
    elif key in TITLES and capital and follows.isupper():
        said = TITLES[key]
    elif key in ALWAYS:
        said = ALWAYS[key]
    else:
        return None
    ends = (
        key in ENDING
        and said not in ("Doctor", "Saint")
        and (not follows or (follows.isupper() and key not in AFTER_NAMES))
    )
    return f"{said}." if ends else said


FORMS: tuple[WrittenForm, ...] = (
    form(
        "abbreviation with a slash",
        "wWcCnN",
        r"(?i:w/o(?:ut)?\b|w/in\b|w/(?!\w/)|c/o\b|n/a\b)",
        lambda found: SLASHED[found.group().lower()] + (" " if found.string[found.end() :][:1].isalnum() else ""),
    ),
    form("abbreviation", LETTERS, r"(?:[A-Za-z][.]){2,3}|et al[.]|[A-Za-z]{1,7}[.]", _abbreviation),
)
