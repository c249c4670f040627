"""Windows of several calls are asked about together, each stream's in order, all of them in one turn of the loop."""

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from voicepipe.audio import Pcm
from voicepipe.engines.vad_windows import Windows

WINDOW: Pcm = np.zeros(512, np.int16)


class Answered:
    """A `WindowListener`."""

    def __init__(self, told: Callable[[float | Exception], None]) -> None:
        self.answered = told


class Detector:
    """Keeps what it was asked about at once."""

    def __init__(self, *, fails: bool = False) -> None:
        self.asked: list[list[str]] = []
        self._fails = fails

    def probabilities(self, asked: Sequence[tuple[str, Pcm]]) -> list[float]:
        self.asked.append([stream for stream, _ in asked])
        if self._fails:
            raise ArithmeticError
        return [0.5] * len(asked)


async def test_what_comes_in_one_turn_is_asked_about_together_and_told_in_it() -> None:
    detector, told = Detector(), list[str]()
    windows = Windows(detector)

    def of(stream: str, left: int) -> None:
        def answered(answer: float | Exception) -> None:
            told.append(stream)
            if left > 1:
                of(stream, left - 1)

        windows.ask(stream, WINDOW, Answered(answered))

    for stream, number in (("a", 1), ("b", 3), ("c", 2)):
        of(stream, number)
    assert not told
    await asyncio.sleep(0)
    assert detector.asked == [["a", "b", "c"], ["b", "c"], ["b"]]
    assert told == ["a", "b", "c", "b", "c", "b"]
    of("d", 1)
    await asyncio.sleep(0)
    assert told[-1] == "d"


async def test_one_call_that_fails_leaves_the_others_their_answers() -> None:
    detector, told = Detector(), list[float | Exception]()
    windows = Windows(detector)

    def fails(answer: float | Exception) -> None:
        raise RuntimeError("this call is ending")

    for answered in (told.append, fails, told.append):
        windows.ask("a", WINDOW, Answered(answered))
    await asyncio.sleep(0)
    assert told == [0.5, 0.5]
    windows.ask("a", WINDOW, Answered(told.append))
    await asyncio.sleep(0)
    assert told == [0.5] * 3


async def test_a_window_that_cannot_be_looked_at_fails_no_other() -> None:
    class Picky(Detector):
        def probabilities(self, asked: Sequence[tuple[str, Pcm]]) -> list[float]:
            if any(stream == "bad" for stream, _ in asked):
                raise ArithmeticError
            return super().probabilities(asked)

    windows, told = Windows(Picky()), list[float | Exception]()
    for stream in ("a", "bad", "b"):
        windows.ask(stream, WINDOW, Answered(told.append))
    await asyncio.sleep(0)
    assert [answer for answer in told if isinstance(answer, float)] == [0.5, 0.5]
    assert isinstance(told[1], ArithmeticError)


async def test_a_detector_that_fails_is_told_to_each_call_that_asked() -> None:
    windows, told = Windows(Detector(fails=True)), list[float | Exception]()
    for stream in "ab":
        windows.ask(stream, WINDOW, Answered(told.append))
    await asyncio.sleep(0)
    assert [type(answer) for answer in told] == [ArithmeticError] * 2
