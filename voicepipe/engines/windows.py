"""The windows of all calls' sound that come in one turn of the event loop, asked about together.

A detector's weights are fetched into the processor's cache once for all of them, not once a window. Nothing waits for
that: with few calls a turn has one window, and the more calls there are, the more windows come while others are heard.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol

from voicepipe.audio import Pcm

log = logging.getLogger(__name__)


class WindowListener(Protocol):
    """Who asks about windows."""

    def answered(self, answer: float | Exception) -> None:
        """The probability that the window holds voice, or why there is none."""


class Detector(Protocol):
    """As `base.Vad`."""

    def probabilities(self, asked: Sequence[tuple[Any, Pcm]]) -> Sequence[float]: ...


class Windows:
    """One for all calls of a detector."""

    def __init__(self, vad: Detector) -> None:
        self._vad = vad
        self._asked: list[tuple[Any, Pcm, WindowListener]] = []
        self._telling = False

    def ask(self, stream: Any, window: Pcm, listener: WindowListener) -> None:
        """`listener` is answered later in this turn of the loop. It may ask about the stream's next window, whose
        answer still comes in this turn."""
        self._asked.append((stream, window, listener))
        if not self._telling:
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell)

    def of(self, stream: Any) -> "StreamWindows":
        """Those of one stream of the detector's."""
        return StreamWindows(self, stream)

    def _tell(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                for answer, (_, _, listener) in zip(self._answers(asked), asked, strict=True):
                    try:
                        listener.answered(answer)
                    except Exception:  # Others were asked about, too.
                        log.exception("what a window holds could not be told")
        finally:
            self._telling = False

    def _answers(self, asked: Sequence[tuple[Any, Pcm, WindowListener]]) -> Sequence[float | Exception]:
        try:
            return self._vad.probabilities([(stream, window) for stream, window, _ in asked])
        except Exception:
            return [self._alone(stream, window) for stream, window, _ in asked]

    def _alone(self, stream: Any, window: Pcm) -> float | Exception:
        """One that the detector cannot look at is not to fail the others."""
        try:
            return self._vad.probabilities([(stream, window)])[0]
        except Exception as error:
            return error


class StreamWindows:
    """The windows of one caller's sound."""

    def __init__(self, windows: Windows, stream: Any) -> None:
        self._windows, self._stream = windows, stream

    def ask(self, window: Pcm, listener: WindowListener) -> None:
        """As `Windows.ask`; `window`: int16[512]."""
        self._windows.ask(self._stream, window, listener)
