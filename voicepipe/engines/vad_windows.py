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
    """A listener to the voice detector's answers about windows. Implemented by `VadFrontEnd`."""

    def answered(self, answer: float | Exception) -> None:
        """The probability that the window holds voice, or why there is none."""


class Detector(Protocol):
    """The part of `base.Vad` that judges windows."""

    def probabilities(self, asked: Sequence[tuple[Any, Pcm]]) -> Sequence[float]: ...


class Windows:
    """Collects the windows of all calls, and has the voice detector judge them together, once in a turn of the event
    loop."""

    def __init__(self, vad: Detector) -> None:
        self._vad = vad
        self._asked: list[tuple[Any, Pcm, WindowListener]] = []
        self._notifying = False

    def ask(self, stream: Any, window: Pcm, listener: WindowListener) -> None:
        """Judge a window. `listener` is answered later in this turn of the loop. It may ask about the stream's next
        window, whose answer still comes in this turn."""
        self._asked.append((stream, window, listener))
        if not self._notifying:
            self._notifying = True
            asyncio.get_running_loop().call_soon(self._notify)

    def of(self, stream: Any) -> "StreamWindows":
        """The windows of one stream of the detector's."""
        return StreamWindows(self, stream)

    def _notify(self) -> None:
        try:
            while self._asked:
                asked, self._asked = self._asked, []
                for answer, (_, _, listener) in zip(self._answers(asked), asked, strict=True):
                    try:
                        listener.answered(answer)
                    except Exception:  # Others were asked about, too.
                        log.exception("what a window holds could not be told")
        finally:
            self._notifying = False

    def _answers(self, asked: Sequence[tuple[Any, Pcm, WindowListener]]) -> Sequence[float | Exception]:
        try:
            return self._vad.probabilities([(stream, window) for stream, window, _ in asked])
        except Exception:
            return [self._alone(stream, window) for stream, window, _ in asked]

    def _alone(self, stream: Any, window: Pcm) -> float | Exception:
        """Judge one window: one that the detector cannot look at must not fail the others."""
        try:
            return self._vad.probabilities([(stream, window)])[0]
        except Exception as error:
            return error


class StreamWindows:
    """The windows of one caller's sound, which a detector judges. Implements `vad_front_end.WindowDetector`."""

    def __init__(self, windows: Windows, stream: Any) -> None:
        self._windows, self._stream = windows, stream

    def ask(self, window: Pcm, listener: WindowListener) -> None:
        """As `Windows.ask`; `window`: int16[512]."""
        self._windows.ask(self._stream, window, listener)
