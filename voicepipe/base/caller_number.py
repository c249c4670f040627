"""A caller's number: how a log shows it, and how it is compared. Pure."""

import re

NUMBER = re.compile(r"(?:(?:\+|%2B)[\s().-]*)?\d(?:[\s().-]*\d){3,}", re.IGNORECASE)
"""A number of four digits or more; shorter ones are extensions."""
SEPARATORS = " -.()"
"""Characters that people write into numbers to read them (RFC 3966, 5.1.1, has no space; people do)."""
_COMPACT = re.compile(r"\+?[0-9*#]+")


def last_three(caller: str) -> str:
    """A caller's number by its last three digits: "...567" for "+49 30 1234567", "sip:...567@host" for
    "sip:+49301234567@host". A text without a number ("alice", "anonymous") and an extension ("201") stay as they
    are."""
    user, at, host = caller.rpartition("@")
    if not at:
        user, host = caller, ""
    return NUMBER.sub(_shortened, user) + at + host


def compact(caller: str) -> str:
    """A telephone number without visual separators: "+4930123" for "+49 (30) 1-23". Empty: it is no number."""
    bare = caller.translate(str.maketrans("", "", SEPARATORS))
    return bare if _COMPACT.fullmatch(bare) else ""


def same_number(one: str, other: str) -> bool:
    """Whether two callers' numbers are the same, however they are spelled."""
    return one == other or bool(compact(one)) and compact(one) == compact(other)


def _shortened(number: re.Match[str]) -> str:
    return "..." + "".join(filter(str.isdigit, number[0].lower().removeprefix("%2b")))[-3:]
