"""Words, however a recogniser writes them."""

import re

WORD = re.compile(r"\d+(?:[.:,-]\d+)*(?:st|nd|rd|th)?\b|[\w']+")
"""A time, a price, a day ("21st") or a telephone number in digits is one word."""


def plain(text: str) -> str:
    """Without case and punctuation, which a recogniser may put differently the next time: "At 7:30, Mr. O’Hara?" is
    "at 7:30 mr o'hara"."""
    return " ".join(WORD.findall(text.lower().replace("’", "'")))
