"""Decides whether a WebRTC peer gets errors because much of what it sends is dropped, by the guards' counts once a
second. Pure.

Single losses, and bursts after a network has stalled, are nobody's fault: a peer gets an error for what goes on for
`IN_A_ROW` looks. Two seconds of sound that arrive at once are 100 packets and fit into the guards' own bursts
(`rtp/ice.py`); a minute that does is dropped within one look. RTX and FEC double what a phone sends, to 100 packets a
second.
"""

from typing import NamedTuple

from voicepipe.ingress.wire_errors import WireError
from voicepipe.rtp.transport import DropCounts

LOOK_S = 1.0
IN_A_ROW = 3
MANY = DropCounts(media=100, data=100, lies=20, unplaced=20)
"""Dropped between two looks.

- `media`: as many packets as an honest phone with RTX or FEC sends in all.
- `data`: SCTP halves its rate at the first loss of a round trip (RFC 9260, 7.2.3), and after a time-out sends a
  single packet: whoever keeps to it does not lose a hundred datagrams in each of three seconds.
- `lies`: no stack of which we know sends any; those of a stack that has a defect come with its retransmissions, of
  which there are a few a second.
- `unplaced`: counts while nothing is placed. Whoever keeps to SCTP sends first what is missing, and nothing else
  until that has arrived.
"""
NOTIFIED_EVERY_S = 30.0
END_S = 30.0
"""A peer that has made its data channel useless for so long is hung up: nothing that it asks there can arrive."""
ENDED = "data_channel"
"""The reason with which such a call ends."""

_ERRORS = {
    "media": WireError(
        "rate_limit_exceeded",
        "You send far more audio packets than a call has sound, and most are dropped. Send a packet for every 20 ms of "
        "sound, as fast as it is recorded.",
        kind="rate_limit_error",
    ),
    "data": WireError(
        "rate_limit_exceeded",
        "You send more on the data channel than this server can take from one call, and part of it is dropped. Send "
        "fewer messages, or smaller ones.",
        kind="rate_limit_error",
    ),
    "lies": WireError(
        "data_channel_invalid",
        "Your SCTP packets have lengths, counts or acknowledgements that cannot be true, and are dropped. Use a WebRTC "
        f"library that keeps to RFC 9260. If it goes on for {END_S:g} s the call is ended.",
    ),
    "unplaced": WireError(
        "data_channel_stuck",
        "Your data channel is full of messages that have no end, or that wait for one which never came. Send what is "
        f"missing (RFC 9260, 6.2). If it goes on for {END_S:g} s the call is ended.",
    ),
}  # fmt: skip


class DropVerdict(NamedTuple):
    """The errors to send now, as (what was dropped, the error), and whether to end the call."""

    errors: list[tuple[str, WireError]]
    is_over: bool


class DropWarnings:
    """Judges by the drops of one call whether its peer misbehaves. `look` is called every `LOOK_S`."""

    def __init__(self) -> None:
        self._before = DropCounts(0, 0, 0, 0)
        self._placed: int | None = None
        self._in_a_row = dict.fromkeys(DropCounts._fields, 0)
        self._reported_at = dict.fromkeys(DropCounts._fields, float("-inf"))

    def look(self, drops: DropCounts, placed: int | None, now: float) -> DropVerdict:
        """Judge the counts of drops so far. `placed` changes when SCTP has taken a chunk in order; `now`: monotonic
        seconds."""
        stuck, self._placed = placed == self._placed, placed
        errors: list[tuple[str, WireError]] = []
        for what, total, before, many in zip(DropCounts._fields, drops, self._before, MANY, strict=True):
            goes_on = total - before >= many and (stuck or what != "unplaced")
            self._in_a_row[what] = self._in_a_row[what] + 1 if goes_on else 0
            if self._in_a_row[what] >= IN_A_ROW and now - self._reported_at[what] >= NOTIFIED_EVERY_S:
                self._reported_at[what] = now
                errors.append((what, _ERRORS[what]))
        self._before = drops
        useless = max(self._in_a_row["lies"], self._in_a_row["unplaced"])
        return DropVerdict(errors, useless * LOOK_S >= END_S)
