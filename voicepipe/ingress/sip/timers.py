"""Session timers (RFC 4028): a call whose far end stops refreshing it is over. The far end refreshes. Pure."""

import re
from dataclasses import dataclass

from voicepipe.ingress.sip.message import SipMessage

LEAST_S = 90
"""The shortest interval in seconds (RFC 4028, 4)."""


@dataclass(frozen=True, slots=True)
class SessionTimer:
    """A session timer (RFC 4028): the session lasts `interval_s` from the last refresh."""

    interval_s: int

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Headers for the 200 that accepts the timer."""
        return ("Session-Expires", f"{self.interval_s};refresher=uac"), ("Require", "timer")

    @property
    def over_s(self) -> float:
        """Seconds after which the call is hung up without a refresh (RFC 4028, 10)."""
        return self.interval_s - min(32.0, self.interval_s / 3)


class TooShort(ValueError):
    """Answered with 422: the interval is below `LEAST_S`."""


def negotiated(request: SipMessage) -> SessionTimer | None:
    """The timer that an INVITE or UPDATE asks for. None: no timer, or one that we would have to refresh. Raises
    TooShort."""
    asked, _, params = request.header("session-expires").partition(";")
    if "timer" not in request.listed("supported") or not re.fullmatch(r"\s*[0-9]{1,9}\s*", asked):
        return None
    if int(asked) < LEAST_S:
        raise TooShort
    return None if "refresher=uas" in params.replace(" ", "").lower() else SessionTimer(int(asked))
