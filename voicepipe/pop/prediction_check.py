"""Compares turns with the prediction that was made when their call was admitted."""

import time
from collections.abc import Callable
from typing import Protocol

from voicepipe.conversation.events import CallEvent, ReplyDone
from voicepipe.pop.admission import WINDOW_S, engines_ms
from voicepipe.sizing.prediction import latency_ms

FIRST_S = WINDOW_S
"""Seconds of a call: by then the prediction depends on other turns, and other calls have begun."""


class PredictionFollower(Protocol):
    """Is notified of turns whose latency was predicted."""

    def prediction_check(self, ratio: float) -> None:
        """The latency of a turn, divided by the one that nineteen of twenty were to keep."""


class PredictionCheck:
    """Compares the turns of one call with the prediction that was made when it was admitted. `predicted_ms`: turn
    latency, 95th percentile, as predicted just before; `failed_ms`: the value of a turn without an answer. Only the
    engines' time is compared, since only that is predicted."""

    def __init__(
        self, follower: PredictionFollower, predicted_ms: float, failed_ms: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._follower = follower
        self._predicted_ms, self._failed_ms = predicted_ms, failed_ms
        self._clock = clock
        self._until = clock() + FIRST_S

    def note(self, event: CallEvent) -> None:
        """Process an event of the call."""
        if isinstance(event, ReplyDone) and self._clock() < self._until:
            took_ms = engines_ms(event, self._failed_ms)
            if took_ms is not None:
                self._follower.prediction_check(latency_ms(took_ms) / self._predicted_ms)
