"""The subjects on which PoPs and directories publish, and the messages on each."""

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from voicepipe.base.ranges import NAME
from voicepipe.directory.report import Epoch

REPORTS = "vp.pop.*.report"
"""Subject of `report.PopReport`, once a second and whenever a PoP begins to drain."""
GOODBYES = "vp.pop.*.bye"
"""Subject of `PopGoodbye`: a run of a PoP ends."""
ROUND_TRIPS = "vp.pop.*.rtt"
"""Subject of `RoundTrip`: how far the caller of a call is from the PoP."""
ASSIGNMENTS = "vp.asg.*"
"""Subject of `Assignment`, which directories read: a directory has sent a call to the PoP."""
SESSIONS = "vp.brief.*"
"""Subject of `CallSession`."""
COMMANDS = "vp.cmd.*"
"""Subject of `Command`."""


class PopGoodbye(msgspec.Struct, frozen=True):
    """A run of a PoP ends."""

    epoch: Epoch


class RoundTrip(msgspec.Struct, frozen=True, omit_defaults=True):
    """The round trip of one call, as its PoP publishes it."""

    network: Annotated[str, Meta(min_length=1, max_length=64)]
    """The caller's network: "198.51.100.0/24", "2001:db8:7::/48", or the name of their provider."""
    ms: Annotated[float, Meta(ge=0, le=60_000)]
    again: bool = False
    """This call was reported before."""


class Assignment(msgspec.Struct, frozen=True):
    """A directory has sent a call to a PoP. All directories are told, so that they count it among the PoP's calls until
    the PoP reports that it has begun; the PoP itself is not."""

    call: str
    """As `Placement.placement_id`."""


class CallSession(msgspec.Struct, frozen=True):
    """The session of a caller's `ek_` key, for all PoPs that the caller may try; of a call by SIP an empty one, which
    only says whose call it is."""

    tenant: str
    call: str
    """As `Placement.placement_id`."""
    session: msgspec.Raw
    """As in `session.update`."""


class Command(msgspec.Struct, frozen=True):
    """An operator's order to a PoP."""

    do: Literal["drain"]


def of_pop(subject: str, pop: str) -> str:
    """The subject of one PoP: `subject` with its id in place of "*"."""
    return subject.replace("*", pop)


def pop_of(subject: str) -> str | None:
    """The PoP that a message comes from, or goes to; None: it names none."""
    name = subject.split(".")[2]
    return name if re.fullmatch(NAME, name) else None
