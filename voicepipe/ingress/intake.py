"""How fast a call takes in sound that waits for it, beside all else on the event loop. Pure."""

AHEAD_S, FAST_BLOCK_S = 60.0, 0.005
"""Sound this far ahead of real time is taken at four times that, a block each 5 ms: a client may send a recording at
once, and what waits to be recognised is bounded."""
BEHIND_BLOCKS = 4
"""Of a call that is late, so many at a stretch: where each turn of the loop takes longer than a block lasts (20 ms),
one a turn would let it fall behind further and further, though the loop has time enough for all of its sound."""
BEHIND_S = 1.0
"""No call counts as later than this: one that sent nothing for a minute, on hold or between two presses of a key, has
no minute to make up for."""


class Intake:
    """One call's. Times in seconds of any clock."""

    def __init__(self, now: float) -> None:
        self._began = now

    def pause_s(self, heard_s: float, now: float, block: int) -> float | None:
        """Seconds to wait after the call's block number `block`; 0: the others get their turn; None: go on at once.

        `heard_s`: so much of its sound was heard until `now`.
        """
        self._began = max(self._began, now - heard_s - BEHIND_S)
        ahead_s = heard_s - (now - self._began)
        if ahead_s > AHEAD_S:
            return FAST_BLOCK_S
        return None if ahead_s < 0 and block % BEHIND_BLOCKS else 0.0
