"""All runs of one measurement: for each number of calls the engines together, in rounds, then each by itself."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from voicepipe.bench.play import PlayedEngines, PlayedLoad, play
from voicepipe.bench.results import FiguresResult, Samples
from voicepipe.engines.hosting import gpus

WARM_UP_S = 6.0
"""Seconds that are played before each number of calls, and not counted."""
ALONE = 0.5
"""Part of the time for which each stage is measured by itself."""
CLOCKS_S = 0.5

Progress = Callable[[str], None]
"""Notified of each step."""


@dataclass(frozen=True)
class BenchOptions:
    """The options of a measurement."""

    config: Path | None = None
    """None: the default configuration."""
    shape: str = ""
    """The shape of a vLLM model with random weights, in place of the configuration's language model; empty: none."""
    calls: tuple[int, ...] = (1, 8, 32)
    seconds: float = 30.0
    """Seconds for each number of calls, with idle gaps and without them."""
    rounds: int = 3
    """Rounds into which `seconds` are divided."""
    kinds: tuple[bool, ...] = (True, False)
    """With idle gaps (True), without them."""
    budget_ms: float = 300.0
    """A turn that takes longer is late."""
    seed: int = 1


async def measured(
    engines: PlayedEngines, options: BenchOptions, sound: Any, progress: Progress
) -> list[FiguresResult]:
    """Results for each number of calls. Raises what an engine raises."""
    results = []
    for calls in options.calls:
        warming = PlayedLoad(calls, min(WARM_UP_S, options.seconds), options.seed, gaps=False, sound=sound)
        await play(engines, warming)
        alone = await _alone(engines, calls, options, sound, progress)
        for gaps in options.kinds:
            rounds, clocks = await _together(engines, calls, gaps, options, sound, progress)
            results.append(FiguresResult(calls, gaps, rounds, alone, clocks))
    return results


async def _together(
    engines: PlayedEngines, calls: int, gaps: bool, options: BenchOptions, sound: Any, progress: Progress
) -> tuple[list[Samples], tuple[int, int] | None]:
    """The samples of each round, and the range of the GPUs' clocks in MHz."""
    seconds, rounds = options.seconds / options.rounds, []
    async with _clocks() as seen:
        for number in range(options.rounds):
            progress(f"{_calls(calls)}, {'with' if gaps else 'without'} idle gaps: round {number + 1}, {seconds:.3g} s")
            rounds.append(await play(engines, PlayedLoad(calls, seconds, options.seed + number, gaps, sound)))
    return rounds, (min(seen), max(seen)) if seen else None


async def _alone(engines: PlayedEngines, calls: int, options: BenchOptions, sound: Any, progress: Progress) -> Samples:
    """Each stage under the same load, without idle gaps, and the media clock with nothing beside it."""
    times: dict[str, list[float]] = {}
    seconds = ALONE * options.seconds
    nobody = replace(engines, asr=None, llm=None, tts=None)
    for stage, single in (
        ("ASR", replace(nobody, asr=engines.asr)),
        ("LLM", replace(nobody, llm=engines.llm)),
        ("TTS", replace(nobody, tts=engines.tts)),
        ("the media clock", nobody),
    ):
        progress(f"{_calls(calls)}: {stage} by itself, {seconds:.3g} s")
        load = PlayedLoad(calls, seconds, options.seed, gaps=single is nobody, sound=sound)
        times |= (await play(single, load)).times  # the clock's are those of the last one
    return Samples(times)


@asynccontextmanager
async def _clocks() -> AsyncIterator[list[int]]:
    """Measures the GPUs' clocks in MHz; none where the driver does not report them."""
    seen: list[int] = []

    async def look() -> None:
        while clocks := await asyncio.to_thread(gpus.clocks):
            seen.extend(clocks)
            await asyncio.sleep(CLOCKS_S)

    looking = asyncio.create_task(look())
    try:
        yield seen
    finally:
        looking.cancel()


def _calls(calls: int) -> str:
    return "1 call" if calls == 1 else f"{calls} calls"
