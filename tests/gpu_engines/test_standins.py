"""Which cases the stand-ins are measured in, and how turns are timed. Without torch."""

import asyncio
import time
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.gpu_engines.standins import __main__ as standins
from tests.gpu_engines.standins.cases import ALONE, CASES, PROCESSES, chosen
from tests.gpu_engines.standins.voice import TAIL_S, SpokenReplies
from tests.support.waiting import until


def test_cases_that_there_are_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        standins.main([str(tmp_path / "out.json"), "--only", "three processes"])
    assert "names none of: alone, 64 calls; " in capsys.readouterr().err


def test_cases_of_other_numbers_of_calls_and_with_a_voice() -> None:
    assert chosen("", (), voice=False) == list(CASES)
    assert {case.where for case in chosen("alone, 64", (), voice=False)} == {ALONE}
    spoken = chosen("", (16, 40), voice=True)
    assert [(case.where, case.calls, case.voice) for case in spoken] == [(PROCESSES, 16, True), (PROCESSES, 40, True)]
    assert spoken[0].name.endswith(", voice") and spoken[0] not in CASES
    assert [case.calls for case in chosen("two processes", (), voice=True)] == [64, 16, 48, 32]
    assert chosen("alone", (), voice=True) == []


@pytest.mark.parametrize("calls", ["", "0", "16,65", "many"])
def test_numbers_of_calls_that_are_not_measured(calls: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        standins.main([str(tmp_path / "out.json"), "--calls", calls])
    assert "--calls" in capsys.readouterr().err


@dataclass
class Asked:
    """A language model that only notes what it is asked."""

    phrases: Connection
    turns: list[tuple[int, float]] = field(default_factory=list)

    def ask(self, turn: int, now: float) -> None:
        self.turns.append((turn, now))


class Spoken:
    """A voice that takes no time."""

    async def speak(self, *, first: bool) -> None:
        pass


async def test_each_turn_is_timed_from_the_end_of_speech_to_its_own_first_sound() -> None:
    phrases, told = Pipe(duplex=False)
    language, began = Asked(phrases), time.monotonic() - 0.1
    replies = SpokenReplies(Spoken(), language)
    heard = [replies.turn(began + n / 1000) for n in range(3)]
    heard[1](began + 0.02)
    heard[0](began + 0.03)
    assert language.turns == [(1, began + 0.02), (0, began + 0.03)]
    replies.listen()
    whole = time.monotonic()
    told.send((whole, [(1, 0), (0, 0)]))
    told.send((whole, [(1, 1)]))
    await until(lambda: (found := replies.figures(began, began + TAIL_S + 1)).voice_later and len(found.turn) == 2)
    replies.deafen()
    told.send((whole, [(2, 0)]))
    await asyncio.sleep(0.05)
    found = replies.figures(began, began + TAIL_S + 1)
    assert len(found.voice_first) == 2 and len(found.voice_later) == 1 and found.unanswered == 1
    before_the_voice = sorted(1000 * (whole - began) - n for n in (0, 1))
    assert sorted(found.turn) == pytest.approx(
        [80 + a + b for a, b in zip(before_the_voice, found.voice_first, strict=True)], abs=5
    )
    later = replies.figures(began + 0.0005, began + TAIL_S + 0.0015)
    assert len(later.turn) == 1 and not later.unanswered and not replies.error


async def test_a_voice_that_fails_and_a_language_model_that_is_gone_are_told() -> None:
    class Mute(Spoken):
        async def speak(self, *, first: bool) -> None:
            raise RuntimeError("out of memory")

    phrases, told = Pipe(duplex=False)
    replies = SpokenReplies(Mute(), Asked(phrases))
    replies.turn(1.0)
    replies.listen()
    told.send((1.1, [(0, 0)]))
    await until(lambda: replies.error)
    assert replies.error == "the voice: RuntimeError: out of memory"
    assert replies.figures(0.0, 3.0).unanswered == 1
    told.close()
    await until(lambda: "tells no phrases: EOFError" in replies.error)
    replies.deafen()
