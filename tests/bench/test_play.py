"""What `bench engines` decides: when calls ask for what, percentiles, and tables."""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray
from rich.console import Console

from tests.support.virtual_time import VirtualTimeLoop
from voicepipe.agent import Agent
from voicepipe.base.errors import EngineBusy, EngineError
from voicepipe.base.figures import cpu, for_tables
from voicepipe.bench import figures, run
from voicepipe.bench.configured import QUESTIONS, stages
from voicepipe.bench.figures import FiguresResult, Samples, calls_in_time
from voicepipe.bench.load import BY_LENGTH, LATER, TRAFFIC, CallTurn, turns
from voicepipe.bench.play import PlayedEngines, PlayedLoad, play
from voicepipe.bench.report import BenchReport
from voicepipe.config import Config, LadderConfig
from voicepipe.engines.base import Engines
from voicepipe.engines.hosting import gpus
from voicepipe.engines.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.sizing.prediction import latency_ms
from voicepipe.sizing.traffic import LATER_PHRASE_S


def of(call: int, seconds: float, seed: int = 1) -> list[CallTurn]:
    return list(takewhile(lambda turn: turn.at < seconds, turns(call, seed)))


def test_turns_are_those_of_calls() -> None:
    calls, seconds = 8, 400.0
    all_turns = [turn for call in range(calls) for turn in of(call, seconds)]
    wanted = calls * seconds / TRAFFIC.turn_s
    assert len(all_turns) == pytest.approx(wanted, rel=0.1)
    assert sum(turn.guess_s is not None for turn in all_turns) == pytest.approx(
        (TRAFFIC.silences - 1) * wanted, rel=0.25
    )
    assert sum(turn.spoken_s for turn in all_turns) == pytest.approx(TRAFFIC.speaking * calls * seconds, rel=0.1)
    assert of(3, seconds) == of(3, seconds) != of(3, seconds, seed=2)
    for turn, following in zip(of(3, seconds), of(3, seconds)[1:], strict=False):
        assert turn.at + turn.spoken_s < following.at


def test_calls_begin_at_random_phases_and_one_ends_a_turn_soon() -> None:
    ends = [of(call, 20)[0].at + of(call, 20)[0].spoken_s for call in range(8)]
    assert ends[0] < 3
    assert len({round(end, 2) for end in ends}) == 8
    assert max(ends) < 2 * TRAFFIC.turn_s


def test_a_turns_latency_is_what_the_wait_does_not_hide() -> None:
    assert latency_ms(50) == 160
    assert latency_ms(200) == 280


class Instant:
    """Engines that take no time; what they were asked."""

    name, phrasing = "instant", BY_LENGTH

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.guesses = self.over = 0
        self.phrases: list[tuple[str, bool]] = []

    def listen(self, call: int, told: Callable[[int], None]) -> "InstantUtterance":
        return InstantUtterance(self, told)

    async def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
        self.guesses += guess
        for _ in range(TRAFFIC.reply_tokens):
            yield "la "

    async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
        self.phrases.append((text, first))
        yield
        yield


class InstantUtterance:
    def __init__(self, engine: Instant, told: Callable[[int], None]) -> None:
        self._engine, self._told, self._fed = engine, told, 0

    def feed(self, pcm: NDArray[np.int16]) -> None:
        self._engine.fed.append(pcm.size)
        self._fed += pcm.size
        self._told(self._fed - 320)

    async def settle(self) -> None:
        pass

    def cancel(self) -> None:
        self._engine.over += 1


SOUND = np.ones(16_000, np.int16)


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> None:
    """The media clock and the load live by the loop's clock, which jumps."""
    monkeypatch.setattr(time, "monotonic", lambda: asyncio.get_running_loop().time())


def load(calls: int, seconds: float, *, gaps: bool = True) -> PlayedLoad:
    return PlayedLoad(calls, seconds, seed=1, gaps=gaps, sound=SOUND)


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_run_times_every_stage_of_every_turn_and_the_clock() -> None:
    instant = Instant()
    samples = await play(PlayedEngines(instant, instant, instant), load(2, 60.0))
    assert samples.turns >= 10 and samples.unanswered == 0
    assert set(samples.times) == {*figures.NAMES}
    assert {len(samples.times[name]) for name in (figures.LLM_CHUNK, figures.COMPUTE)} == {samples.turns}
    assert len(samples.times[figures.ASR_FINAL]) == samples.turns + instant.guesses
    assert len(samples.times[figures.TTS_LATER]) == LATER * samples.turns
    assert len(samples.times[figures.CLOCK]) == pytest.approx(2 * 60 * 50, rel=0.05)
    assert set(instant.fed) == {320}
    assert set(samples.times[figures.ASR_BEHIND]) <= {0.0, 20.0, 40.0}
    firsts = [text for text, first in instant.phrases if first]
    assert {len(text.split()) for text in firsts} == {TRAFFIC.phrase.tokens}


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
@pytest.mark.parametrize("first_phrase", ["clause", "short"])
async def test_first_phrases_are_cut_as_configured(first_phrase: Literal["clause", "short"]) -> None:
    tts, answer = ScriptedTts(), "We are open from noon to ten, on every day."
    llm = ScriptedLlm(dict.fromkeys(QUESTIONS, answer))
    config = Config(ladder=LadderConfig(first_phrase=first_phrase))
    await play(stages(config, Engines(ScriptedVad(), ScriptedAsr(), llm, tts), Agent("desk"), 1, 0), load(1, 30.0))
    assert {text.strip() for text in tts.firsts} == {
        {"clause": "We are open from noon to ten,", "short": "We are open"}[first_phrase]
    }


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_without_idle_gaps_a_call_has_more_turns() -> None:
    real, cut = [await play(PlayedEngines(tts=Instant()), load(1, 60.0, gaps=gaps)) for gaps in (True, False)]
    assert 6 <= real.turns < cut.turns


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_stage_by_itself_is_not_a_turn() -> None:
    for alone in (PlayedEngines(asr=Instant()), PlayedEngines(llm=Instant()), PlayedEngines(tts=Instant())):
        samples = await play(alone, load(1, 3.0))
        assert samples.turns and not samples.unanswered
        assert figures.COMPUTE not in samples.times


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_what_an_engine_raises_is_heard_at_once() -> None:
    class Broken(Instant):
        async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
            raise RuntimeError("out of memory")
            yield

    async with asyncio.timeout(30):
        with pytest.raises(RuntimeError, match="out of memory"):
            await play(PlayedEngines(tts=Broken()), load(1, 1000.0))


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_recogniser_that_takes_no_sound_ends_the_run() -> None:
    class Deaf(Instant):
        def listen(self, call: int, told: Callable[[int], None]) -> "InstantUtterance":
            raise EngineError("no model")

    with pytest.raises(EngineError, match="no model"):
        await play(PlayedEngines(asr=Deaf()), load(1, 1000.0))


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_turn_for_which_an_engine_has_no_room_is_not_answered() -> None:
    class Busy(Instant):
        async def reply(self, call: int, *, guess: bool) -> AsyncGenerator[str, None]:
            raise EngineBusy("admit fewer calls")
            yield

    samples = await play(PlayedEngines(Instant(), Busy(), Instant()), load(1, 30.0))
    assert samples.turns == samples.unanswered > 1


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_a_turn_that_gets_no_sound_is_not_answered_and_not_in_time() -> None:
    class Mute(Instant):
        async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
            return
            yield

    samples = await play(PlayedEngines(Instant(), Instant(), Mute()), load(1, 3.0))
    assert samples.turns == samples.unanswered == 1
    assert FiguresResult(1, True, [samples]).in_time(300.0) is False


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
async def test_what_holds_up_the_loop_is_seen_by_the_clock() -> None:
    class Blocking(Instant):
        async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualTimeLoop)
            loop.stand_still(0.15)
            yield

    samples = await play(PlayedEngines(tts=Blocking()), load(1, 30.0))
    held_up = [each for each in samples.times[figures.CLOCK] if each > 50]
    assert held_up and max(held_up) < 310  # a first phrase and a later one
    late = samples.figure(figures.CLOCK)
    assert late and late.p50 < 1


def test_a_reply_is_as_long_as_the_plan_reckons() -> None:
    """As nearly as whole phrases allow."""
    spoken_s = TRAFFIC.phrase.speech_s + LATER * LATER_PHRASE_S
    assert spoken_s == pytest.approx(TRAFFIC.spoken * TRAFFIC.turn_s, rel=0.3)


def result(calls: int, *latencies: float, gaps: bool = True, **more: Any) -> FiguresResult:
    return FiguresResult(calls, gaps, [Samples({figures.LATENCY: [each]}, turns=1) for each in latencies], **more)


def test_calls_in_time() -> None:
    few, more, late = result(1, 160.0, 200.0), result(8, 160.0, 300.0), result(32, 160.0, 400.0)
    assert calls_in_time([few, more, late], 300) == 8
    assert calls_in_time([few, late, result(64, 160.0)], 300) == 1
    assert calls_in_time([more, result(8, 400.0, gaps=False)], 300) == 0
    assert calls_in_time([result(1)], 300) == 0


def test_the_report() -> None:
    rounds = [
        Samples({figures.ASR_FINAL: [8.0, 10.0], figures.LATENCY: [160.0], figures.CLOCK: [0.5, 30.0]}, turns=1),
        Samples({figures.ASR_FINAL: [9.0], figures.LATENCY: [340.0]}, turns=2, unanswered=1),
    ]
    alone = Samples({figures.ASR_FINAL: [7.0]})
    results = [
        FiguresResult(1, True, rounds, alone, (1200, 1980)), FiguresResult(1, False, rounds[:1], alone),
    ]  # fmt: skip
    engines = {"llm": "vllm: a model", "asr": "whisper"}
    report = BenchReport("a GPU", {"torch": "2.11.0"}, engines, 30.0, results, ["VLLM::EngineCor"])
    lines = report.markdown().splitlines()
    assert lines[0] == (
        "a GPU. LLM: vllm: a model. ASR: whisper. processes beside this one: VLLM::EngineCor. torch 2.11.0."
    )
    assert "|  | 1 call, alone | 1 call | 1 call, no gaps |" in lines
    assert "| ASR, final | 7.0/7.0/7.0 | 9.0/9.9/10.0 | 9.0/9.9/10.0 |" in lines
    assert "| LLM, first token |  |  |  |" in lines
    assert "| turn latency |  | 250/331/338 | 160/160/160 |" in lines
    assert "| turn latency, p95 of the rounds |  | 160-340 | 160-160 |" in lines
    assert "| p95 within 300 ms |  | no | yes |" in lines
    assert "| turns not answered |  | 1 | 0 |" in lines
    assert "| media clock late, p50/p95/p99/max |  | 15/29/30/30 | 15/29/30/30 |" in lines
    assert "| GPU's clock, MHz |  | 1200-1980 |  |" in lines
    assert "at most 300 ms: 0 (tried: 1)" in lines[-1]
    told = json.loads(json.dumps(report.json()))
    assert told["calls_in_time"] == 0 and told["processes"] == ["VLLM::EngineCor"]
    assert told["results"][0]["together"]["ASR, final"] == {
        "p50_ms": 9.0, "p95_ms": 9.9, "p99_ms": 9.98, "max_ms": 10.0, "count": 3
    }  # fmt: skip
    assert told["results"][0]["p95_ms_of_rounds"]["turn latency"] == [160.0, 340.0]
    assert report.tables(Console(width=200))[0].row_count == len(report.rows())


def many() -> BenchReport:
    """A report whose table is wider than terminals are."""
    samples = Samples({figures.LATENCY: [1160.0], figures.CLOCK: [0.34, 25.0, 326.0, 661.0]}, turns=1)
    results = [FiguresResult(calls, gaps, [samples], samples) for calls in (1, 8, 32) for gaps in (True, False)]
    return BenchReport("a GPU", {"torch": "2.11.0"}, {"llm": "a model"}, 30.0, results)


def shown(report: BenchReport, console: Console) -> str:
    with console.capture() as captured:
        for table in report.tables(console):
            console.print(table)
    return captured.get()


def test_a_table_that_goes_to_a_file_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    said = shown(many(), for_tables())
    assert "…" not in said and "..." not in said
    header = next(line for line in said.splitlines() if "1 call, alone" in line)
    assert all(f"{calls} calls{more}" in header for calls in (8, 32) for more in (", alone", ", no gaps"))
    assert "176/611/651/661" in said


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_that_is_too_narrow_has_a_table_for_each_number_of_calls(width: int) -> None:
    wide, narrow = (shown(many(), Console(width=columns, force_terminal=True)) for columns in (400, width))
    assert wide.count("engines on a GPU") == 1 and narrow.count("engines on a GPU") == 3
    assert "…" not in narrow and "176/611/651/661" in narrow
    assert narrow.count("Calls of which 95 in 100") == 1 and "tried: 1, 8, 32" in narrow


@pytest.mark.engine
@pytest.mark.parametrize(
    ("asr", "llm", "tts", "gaps"),
    [("whisper", "frontdesk", "espeak", "both"), ("scripted", "scripted", "scripted", "none")],
)
def test_the_engines_of_a_configuration(asr: str, llm: str, tts: str, gaps: str, tmp_path: Path) -> None:
    file, config = tmp_path / "figures.json", tmp_path / "pop.toml"
    agents = Path(__file__).parents[2] / "configs" / "agents"
    config.write_text(f'[pop]\nagents = "{agents}"\n[engines]\nasr = "{asr}"\nllm = "{llm}"\ntts = "{tts}"\n')
    options = ["--config", str(config), "--calls", "2", "--seconds", "4", "--rounds", "1", "--gaps", gaps]
    line = [sys.executable, "-m", "voicepipe", "bench", "engines", *options, "--table", "--json", str(file)]
    printed = subprocess.run(line, capture_output=True, text=True)
    assert printed.returncode == 0, printed.stderr
    told = json.loads(file.read_text())["figures"]
    assert told["engines"] == {"asr": asr, "llm": f"{llm}{': the embedded engine' * (llm == 'frontdesk')}", "tts": tts}
    kinds = [True, False] if gaps == "both" else [False]
    assert [(each["calls"], each["idle_gaps"]) for each in told["results"]] == [(2, kind) for kind in kinds]
    for each in told["results"]:
        assert each["turns"] >= 1
        assert {figures.ASR_FINAL, figures.LLM_FIRST, figures.TTS_FIRST, figures.LATENCY} <= set(each["together"])
        assert each["together"][figures.CLOCK]["count"] > 50


def test_a_driver_that_nobody_can_ask_does_not_end_a_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once the engines were loaded, it did."""
    monkeypatch.setattr(gpus, "DRIVER", tmp_path)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert run._device() == cpu()
    assert "not asked" in run._versions()["driver"]
