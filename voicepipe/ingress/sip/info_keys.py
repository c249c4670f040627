"""Keys of a phone in the body of an INFO, as old phones and gateways send them: no RFC says how. Some send a press as
RTP event and as INFO. Pure."""

import re
from collections import deque
from typing import Literal, NamedTuple

from voicepipe.ingress.sip.header_text import warning
from voicepipe.ingress.sip.sip_access import SipRefusal
from voicepipe.rtp.telephone_events import KEYS

TYPES = (
    "application/dtmf-relay",
    "application/dtmf",
    "audio/telephone-event",
    "application/vnd.nortelnetworks.digits",
)
"""Types of the bodies that are read, all in the same way: "Signal=5" (Cisco), "5" alone, "Event=5", and "d=5"
(Nortel)."""
LONGEST = 1000
"""Characters of the longest body that is read: one with a key has about 30."""
LONGEST_HELD_S = 30.0
"""Longest duration that is believed, in seconds: some gateways count in other units than milliseconds."""
_NAMED = re.compile(r"\s*(signal|event|d)\s*[=:](.*)", re.IGNORECASE)
_OTHER = re.compile(r"\s*[A-Za-z-]+\s*[=:]")
"""Further fields of the body: how long the key was down, how loud."""
_DURATION = re.compile(r"\s*duration\s*[=:](.*)", re.IGNORECASE)
_NUMBER = re.compile(r"0*([0-9]{1,2})")
_BLANK = " \t\0\"'"
MessagePath = Literal["rtp", "info"]
TOGETHER_S = 2.0
"""The second message of a press comes at most so many seconds later: RTP reports a key when it goes down, INFO mostly
when it comes up, and then mostly with how long it was down, which is not counted. A longer time would lose more presses
of a phone that reports one by RTP and the next of the same key by INFO."""


def key_of(content_type: str, body: str) -> str:
    """The key that the body reports: one of "0" to "9", "*", "#", "A" to "D"; "" where the body is empty, as in an INFO
    that only asks whether the call goes on.

    Numbers are those of RFC 4733's events, so 10 is "*" and 11 is "#", as some gateways have it. `content_type`:
    without parameters, in lower case; "" where none is given: the body is read all the same. Raises SipRefusal: 415, a
    body of this type is not read, or 400, it reports no key."""
    if not body.strip():
        return ""
    if content_type and content_type not in TYPES:
        accept = "Accept", ", ".join(TYPES)
        raise SipRefusal(415, "Unsupported Media Type", f"an INFO of {content_type}", (accept,))
    if len(body) > LONGEST:
        raise _unread(f"its body has {len(body)} characters, and at most {LONGEST} are read")
    values = _key_values(body)
    keys = {_key(value) for value in values}
    if not values:
        raise _unread('it names no key: write "Signal=5"')
    if len(keys) > 1:
        raise _unread("it names several keys: send an INFO for each")
    return keys.pop()


def held_s(body: str) -> float:
    """Seconds for which the key was down when this was sent, which the body gives in milliseconds; 0: it gives none. At
    most `LONGEST_HELD_S`."""
    for line in body.splitlines():
        if (found := _DURATION.fullmatch(line)) and (said := found[1].strip(_BLANK)).isdecimal() and len(said) < 10:
            return min(int(said) / 1000, LONGEST_HELD_S)
    return 0.0


def _key_values(body: str) -> list[str]:
    """The key in a body: in the first of these fields that is there, else in a line that is no field."""
    lines = body.splitlines()
    named = [(found[1].lower(), found[2].strip(_BLANK)) for line in lines if (found := _NAMED.fullmatch(line))]
    for name in ("signal", "event", "d"):
        if values := [value for called, value in named if called == name and value]:
            return values
    return [bare for line in lines if not _OTHER.match(line) and (bare := line.strip(_BLANK))]


def _key(value: str) -> str:
    number = _NUMBER.fullmatch(value)
    if number and int(number[1]) < len(KEYS):
        return KEYS[int(number[1])]
    if len(value) == 1 and value.upper() in KEYS:
        return value.upper()
    if value == "!" or (number and int(number[1]) == 16):
        raise _unread("it tells of a hook flash, which is no key: nothing here can be put on hold by one")
    raise _unread(f"it tells of {value[:20]!r}, which is no key: keys are {' '.join(KEYS)} and their numbers, 0 to 15")


def _unread(why: str) -> SipRefusal:
    return SipRefusal(400, "Bad Request", f"an INFO without a key: {why}", (warning(why),))


class _Pressed(NamedTuple):
    key: str
    path: MessagePath
    when: float


class KeyPaths:
    """Matches the messages of one call about keys, which come by two paths. The faster message reports the press; the
    same key by the other path, shortly after, is the same press. Each press has one message by each path at most: the
    same key by the same path is another press, so that neither of two is lost."""

    def __init__(self) -> None:
        self._unmatched: deque[_Pressed] = deque(maxlen=40)
        """Presses that have come by one path only."""

    def is_new_press(self, key: str, path: MessagePath, now: float, held_s: float = 0.0) -> bool:
        """Whether a key that comes by `path` at the monotonic second `now` is a new press; from then on it is known.
        `held_s`: for so long the key was down by then."""
        for one in self._unmatched:
            if one.key == key and one.path != path and now - one.when <= TOGETHER_S + held_s:
                self._unmatched.remove(one)
                return False
        self._unmatched.append(_Pressed(key, path, now))
        return True
