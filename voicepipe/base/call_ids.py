"""Ids of calls. An id names the PoP that has the call, so any directory knows where to forward a request about it."""

import re
import secrets

_ID = re.compile(r"rtc_([a-z0-9][a-z0-9_-]*)\.([0-9a-f]{12})")


def new(pop: str) -> str:
    """A new id for a call at this PoP, as "rtc_fra1.0c5e77aa91f2"."""
    return f"rtc_{pop}.{secrets.token_hex(6)}"


def pop_of(call_id: str) -> str | None:
    """The PoP that gave this id; None: it is no call's id."""
    found = _ID.fullmatch(call_id)
    return found[1] if found else None


def bare(call_id: str) -> str:
    """The part of an id that distinguishes calls of the same PoP: for the ids of its items."""
    return call_id.removeprefix("rtc_").rpartition(".")[2]
