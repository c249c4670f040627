"""What `bench engines` decides without torch: when calls ask for what, percentiles, and tables."""

import asyncio
import json
import math
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from importlib.metadata import packages_distributions
from itertools import takewhile
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from tests.waiting import until
from voicepipe.bench.engines import figures
from voicepipe.bench.engines.figures import FiguresResult, Samples, percentile
from voicepipe.bench.engines.load import LATER, PASSES_A_SECOND, PHRASES, TRAFFIC, schedule
from voicepipe.bench.engines.play import PlayedEngines, capacity, play
from voicepipe.bench.engines.readings import Readings
from voicepipe.bench.engines.report import BenchReport
from voicepipe.bench.engines.standins.streaming import __main__ as streaming
from voicepipe.bench.engines.standins.streaming.cases import ALONE, CASES, PROCESSES, chosen
from voicepipe.bench.engines.standins.streaming.voice import TAIL_S, SpokenReplies
from voicepipe.commands.cli import main
from voicepipe.prediction import latency_ms
from voicepipe.sizing.shapes import ASRS, LLMS
from voicepipe.sizing.traffic import LATER_PHRASE_S, Traffic


def test_what_is_measured_by_default_has_the_published_number_of_weights() -> None:
    assert LLMS["llama-3.1-8b"].weights == 8_030_261_248
    assert ASRS["large-v3-turbo"].weights == 808_878_080


def test_the_schedule_is_that_of_calls() -> None:
    calls, seconds = 8, 400.0
    events = list(takewhile(lambda event: event.at < seconds, schedule(calls, seed=1)))
    assert events == sorted(events)
    assert len(events) / calls / seconds == pytest.approx(PASSES_A_SECOND, rel=0.1)
    turns = calls * seconds / TRAFFIC.turn_s
    assert sum(event.ends for event in events) == pytest.approx(turns, rel=0.1)
    assert sum(event.final for event in events) == pytest.approx(turns * TRAFFIC.silences, rel=0.1)
    assert events == list(takewhile(lambda event: event.at < seconds, schedule(calls, seed=1)))
    one = [event for event in events if event.call == 3]
    for before, event in zip(one, one[1:], strict=False):
        assert event.heard_s == (0.5 if before.ends else pytest.approx(before.heard_s + event.at - before.at))


def test_calls_do_not_all_end_their_turns_at_once_and_one_does_soon() -> None:
    ends: dict[int, float] = {}
    for event in takewhile(lambda event: event.at < 20, schedule(8, seed=1)):
        if event.ends:
            ends.setdefault(event.call, event.at)
    times = sorted(ends.values())
    assert len(times) == 8 and times[0] < 3
    assert all(later - earlier < 3 for earlier, later in zip(times, times[1:], strict=False))


def test_percentiles() -> None:
    times = [float(n) for n in range(1, 21)]
    assert [percentile(times, share) for share in (0, 0.5, 0.95, 1)] == [1, 10, 19, 20]
    assert percentile([7.0], 0.95) == 7
    assert math.isnan(percentile([], 0.5))


def test_a_turns_latency_is_what_the_wait_does_not_hide() -> None:
    assert latency_ms(50) == 160
    assert latency_ms(200) == 280


async def test_finals_go_first_and_partials_that_came_too_late_are_left_out() -> None:
    passes: list[tuple[int, bool]] = []

    def read(heard_s: list[float], urgent: bool) -> None:
        passes.append((len(heard_s), urgent))

    readings = Readings("test", 0, read)
    asked = [readings.read(0, 0.5, final=False), readings.read(1, 0.5, final=False), readings.read(1, 1.0, final=False)]
    asked += [readings.read(call, 2.0, final=True) for call in (1, 2, 3)]
    assert await asyncio.gather(*asked) == [True, False, False, True, True, True]
    assert passes == [(3, True), (1, False)]
    readings.close()


async def test_what_the_engine_raises_is_heard() -> None:
    def read(heard_s: list[float], urgent: bool) -> None:
        raise RuntimeError("out of memory")

    readings = Readings("test", 0, read)
    with pytest.raises(RuntimeError, match="out of memory"):
        await play(PlayedEngines(asr=readings), calls=1, seconds=5, seed=1)
    readings.close()


async def test_whoever_gave_up_does_not_keep_others_from_being_heard() -> None:
    readings = Readings("test", 0, lambda heard_s, urgent: time.sleep(0.05))
    async with asyncio.timeout(60):
        given_up = [asyncio.create_task(readings.read(call, 0.5, final=False)) for call in range(3)]
        await asyncio.sleep(0.01)
        for task in given_up:
            task.cancel()
        assert await readings.read(2, 1.0, final=False)
        assert 0 < await capacity(readings, 0.5, seed=1) < 8 / 0.05 / PASSES_A_SECOND
    readings.close()


class Counted:
    """A recogniser for which a reading takes 5 ms, many at a time."""

    def __init__(self) -> None:
        self.done = 0

    async def read(self, call: int, heard_s: float, *, final: bool) -> bool:
        await asyncio.sleep(0.005)
        self.done += 1
        return True


async def test_every_reading_counts_towards_what_can_be_heard() -> None:
    counted = Counted()
    calls = await capacity(counted, 0.5, seed=1)  # type: ignore[arg-type]
    assert calls * 0.5 * PASSES_A_SECOND == pytest.approx(counted.done, abs=16)


class Instant:
    """Engines that take no time."""

    name, weights = "instant", 1_500_000_000

    async def read(self, call: int, heard_s: float, *, final: bool) -> bool:
        return True

    async def reply(self, call: int) -> AsyncGenerator[int, None]:
        for count in range(1, TRAFFIC.reply_tokens + 1):
            yield count

    async def speak(self, call: int, *, first: bool) -> None:
        pass

    def close(self) -> None:
        pass


async def test_a_run_times_every_stage_of_every_turn() -> None:
    instant = Instant()
    samples = await play(PlayedEngines(instant, instant, instant), calls=2, seconds=2, seed=1)
    assert samples.turns > 1 and samples.unanswered == 0 and samples.dropped == 0
    assert set(samples.times) == {*figures.STAGES, *figures.TURN}
    assert {len(samples.times[name]) for name in (figures.LLM_TOKEN, figures.COMPUTE)} == {samples.turns}
    assert len(samples.times[figures.ASR_FINAL]) >= samples.turns
    assert len(samples.times[figures.TTS_LATER]) == LATER * samples.turns


def test_a_reply_is_as_long_as_the_plan_reckons() -> None:
    assert PHRASES[0] == TRAFFIC.phrase_tokens and PHRASES[-1] == TRAFFIC.reply_tokens
    spoken_s = TRAFFIC.phrase_s + LATER * LATER_PHRASE_S
    assert spoken_s == pytest.approx(TRAFFIC.spoken * TRAFFIC.turn_s, rel=0.2)


async def test_a_stage_by_itself_is_not_a_turn() -> None:
    for alone in (PlayedEngines(asr=Instant()), PlayedEngines(llm=Instant()), PlayedEngines(tts=Instant())):
        samples = await play(alone, calls=2, seconds=1, seed=1)
        assert samples.turns and not samples.unanswered
        assert figures.COMPUTE not in samples.times


def test_the_report() -> None:
    together = Samples({figures.ASR_FINAL: [8.0, 10.0], figures.COMPUTE: [120.0]}, partials=20, dropped=5, turns=2)
    results = [FiguresResult(1, together, Samples({figures.ASR_FINAL: [7.0]}), 40.2, 31.0)]
    instant = {"llm": "instant"}
    report = BenchReport("a GPU", {"torch": "2.11.0"}, instant, {"llm": 1_500_000_000}, 30.0, results)
    lines = report.markdown().splitlines()
    assert lines[0] == "a GPU. LLM: instant, 1.50 B weights. torch 2.11.0."
    assert "| | alone | 1 call |" in [line.replace("|  |", "| |") for line in lines]
    assert "| ASR, final | 7.0/7.0 | 8.0/10 |" in lines
    assert "| turn compute |  | 120/120 |" in lines
    assert "| partials left out |  | 25 % |" in lines
    assert "| calls that ASR could hear | 40 | 31 |" in lines
    (told,) = json.loads(json.dumps(report.json()))["results"]
    assert told["together"]["ASR, final"] == {"p50_ms": 8.0, "p95_ms": 10.0, "count": 2}
    assert told["asr_capacity_calls_beside"] == 31.0
    assert report.table().row_count == len(report.rows())
    assert f"40 new tokens behind {Traffic().context_tokens} in the prefix cache, as `voicepipe plan`" in lines[-1]


def test_without_torch_it_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "voicepipe.bench.engines.standins.device", raising=False)
    assert main(["bench", "engines"]) == 2
    assert "pip install torch" in capsys.readouterr().err


@pytest.mark.parametrize("calls", ["", "0", "1,", "many"])
def test_numbers_of_calls(calls: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["bench", "engines", "--calls", calls])
    assert "as in 1,8,32" in capsys.readouterr().err


def test_cases_that_there_are_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        streaming.main([str(tmp_path / "out.json"), "--only", "three processes"])
    assert "names none of: alone, 64 calls, graph" in capsys.readouterr().err


def test_cases_of_other_numbers_of_calls_and_with_a_voice() -> None:
    assert chosen("", (), voice=False) == list(CASES)
    assert {case.where for case in chosen("alone, 64", (), voice=False)} == {ALONE}
    spoken = chosen("", (16, 40), voice=True)
    assert [(case.where, case.calls, case.voice) for case in spoken] == [(PROCESSES, 16, True), (PROCESSES, 40, True)]
    assert spoken[0].name.endswith(", voice") and spoken[0] not in CASES
    assert [case.calls for case in chosen("two processes", (), voice=True)] == [64, 16, 48, 32]
    assert chosen("alone", (), voice=True) == []


@pytest.mark.parametrize("calls", ["", "0", "16,65", "many"])
def test_numbers_of_calls_that_a_streaming_recogniser_is_not_tried_with(
    calls: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        streaming.main([str(tmp_path / "out.json"), "--calls", calls])
    assert "--calls" in capsys.readouterr().err


@dataclass
class Asked:
    """A language model that only notes what it is asked."""

    phrases: Connection
    turns: list[tuple[int, float]] = field(default_factory=list)

    def ask(self, turn: int, now: float) -> None:
        self.turns.append((turn, now))


async def test_each_turn_is_timed_from_the_end_of_speech_to_its_own_first_sound() -> None:
    phrases, told = Pipe(duplex=False)
    language, began = Asked(phrases), time.monotonic() - 0.1
    replies = SpokenReplies(Instant(), language)
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
    class Mute(Instant):
        async def speak(self, call: int, *, first: bool) -> None:
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


def test_torch_and_two_libraries_more_are_all_that_it_needs() -> None:
    code = "import sys; import voicepipe.bench.engines.run; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    needed = {name.partition(".")[0] for name in loaded} & {*packages_distributions()} - {"voicepipe"}
    assert needed <= {"rich", "pygments", "markdown_it", "mdurl", "numpy", "_distutils_hack", *sys.stdlib_module_names}
