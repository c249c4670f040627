"""Which codes are decoded together, and what of their sound is sent: pure.

The codec is not causal. Each of its codes is 20 ms of sound, and those around it change that sound: the nearest ones
most, by its convolutions, and all others a little, by its attention and its norms, which take the whole window. So what
is sent stands in the middle of a window, with codes on both sides that were decoded for its sake alone, and one
window's sound fades into the next one's. Before the first code of a phrase stand those of the voice's recording.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Sound = NDArray[np.float32]

EVERY = 6
"""vLLM tells of so many tokens at a time: each time wakes the event loop."""
FIRST, MOST = 8, 48
"""Codes that are sent at first, and from then on at most; each time twice as many are waited for."""
LOOKAHEAD = 5
"""Codes that must follow one whose sound is sent. The convolutions reach 13 codes to either side; what is further away
than this changes no more than the window's other codes do."""
FADE = 1
"""Codes over which one window's sound fades into the next one's."""
WIDTH = 160
"""Codes of a window, where there are so many, as there always are after 3 s of recording: all have one length, so that
those of several calls are one batch and the GPU knows the shape. At least 107 of them stand before what is sent."""


@dataclass(frozen=True, slots=True)
class CodeWindow:
    """A window of codes that are decoded together: `begin` to `end`. Of their sound, that from `sent` to `settled` is
    sent. The recording's first code is 0."""

    begin: int
    end: int
    sent: int
    settled: int


class CodeWindows:
    """Cuts one phrase's codes into windows. `recorded`: number of codes of the voice's recording."""

    def __init__(self, recorded: int) -> None:
        self._sent = recorded
        self._least = FIRST

    def due(self, codes: int, *, ended: bool = False) -> Iterator[CodeWindow]:
        """The windows that can be decoded now that there are `codes` codes, the recording's among them. `ended`: no
        more come."""
        while True:
            more = codes - self._sent - (0 if ended else LOOKAHEAD)
            if more <= 0 or (more < self._least and not ended):
                return
            settled = self._sent + min(more, MOST)
            end = min(codes, settled + LOOKAHEAD)
            yield CodeWindow(max(0, end - WIDTH), end, self._sent, settled)
            self._sent = settled
            self._least = min(MOST, 2 * self._least)


class CrossFade:
    """Joins the sound of windows, one after the other. `hop`: samples of a code."""

    def __init__(self, hop: int) -> None:
        self._hop = hop
        self._tail: Sound = np.empty(0, np.float32)
        """The last window's sound behind the part that was sent."""

    def push(self, window: CodeWindow, sound: Sound) -> Sound:
        """float32[hop * codes of the window] -> what is sent of it."""
        at, until = ((code - window.begin) * self._hop for code in (window.sent, window.settled))
        piece = sound[at:until].copy()
        if fading := min(self._tail.size, piece.size):
            rising = np.arange(1, fading + 1, dtype=np.float32) / (fading + 1)
            piece[:fading] = rising * piece[:fading] + (1 - rising) * self._tail[:fading]
        self._tail = sound[until : until + FADE * self._hop]
        return piece
