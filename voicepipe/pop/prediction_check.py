"""Was one more call answered as soon as was predicted when it was let in?"""

import time
from collections.abc import Callable
from typing import Protocol

from voicepipe.conversation.events import CallEvent, ReplyDone
from voicepipe.pop.admission import WINDOW_S, engines_ms
from voicepipe.sizing.prediction import latency_ms

FIRST_S = WINDOW_S
"""Of a call: by then the prediction stands on other turns, and other calls have begun."""


class PredictionFollower(Protocol):
    """Who is told."""

    def prediction_check(self, ratio: float) -> None:
        """The latency of a turn to that which nineteen of twenty were to keep."""


class PredictionCheck:
    """Watches one call. `predicted_ms`: turn latency, 95th percentile, as predicted just before it was admitted;
    `failed_ms`: what a turn without an answer counts as. Only the engines' time is compared, as it alone is predicted.
    """

    def __init__(
        self, follower: PredictionFollower, predicted_ms: float, failed_ms: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self._follower = follower
        self._predicted_ms, self._failed_ms = predicted_ms, failed_ms
        self._clock = clock
        self._until = clock() + FIRST_S

    def note(self, event: CallEvent) -> None:
        """The call tells how it is going."""
        if isinstance(event, ReplyDone) and self._clock() < self._until:
            took_ms = engines_ms(event, self._failed_ms)
            if took_ms is not None:
                self._follower.prediction_check(latency_ms(took_ms) / self._predicted_ms)
