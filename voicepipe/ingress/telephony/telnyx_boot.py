"""Telnyx's calls that an earlier run of this PoP has left in progress: it died, and Telnyx holds their callers in
silence.

Every call bears the name of its PoP and of the run that has answered it (`client_state`), which its webhooks and the
list of active calls repeat. Pure, but for the name of this machine.
"""

import binascii
import socket
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence

import msgspec

from voicepipe.config import Config

MARK = "voicepipe"


class ActiveCall(msgspec.Struct, frozen=True):
    """An active call as Telnyx lists it."""

    call_control_id: str = ""
    call_session_id: str = ""
    client_state: str | None = None


class Boot:
    """This run of this PoP, which marks the calls that it answers at Telnyx. `boot` differs at each start."""

    def __init__(self, config: Config, boot: str) -> None:
        # Several PoPs may share an application, an id that nobody has changed, or a machine, but no machine's port.
        self._pop = f"{config.pop.id}/{socket.gethostname()}:{config.http.port or boot}"
        self._boot = boot
        self.mark = f"{MARK} {self._pop} {boot}"
        """The beginning of the `client_state` of every call of this run."""
        self.state = b64encode(self.mark.encode()).decode()
        """The `client_state` of the calls that it answers."""

    def is_dead(self, state: str | None) -> bool:
        """Whether a call with this `client_state` was answered or made by an earlier run of this same PoP."""
        said = _words(state)
        return said[:2] == [MARK, self._pop] and len(said) > 2 and said[2] != self._boot

    def left_behind(self, active: Sequence[ActiveCall]) -> list[str]:
        """Those of an application's active calls that have to be ended. A caller who was transferred goes on talking:
        their session has another leg."""
        legs = Counter(call.call_session_id for call in active)
        return [
            call.call_control_id
            for call in active
            if self.is_dead(call.client_state) and legs[call.call_session_id] == 1
        ]


def pop_of(state: str | None) -> str:
    """The PoP that has answered or made a call with this `client_state`; empty: it names none."""
    said = _words(state)
    return said[1].partition("/")[0] if said[0] == MARK and len(said) > 2 else ""


def _words(state: str | None) -> list[str]:
    try:
        return b64decode(state or "", validate=True).decode().split(" ")
    except (ValueError, binascii.Error):
        return [""]
