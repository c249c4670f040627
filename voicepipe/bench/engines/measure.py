"""All runs of one measurement: for each number of calls the engines together, then each by itself."""

import asyncio

from voicepipe.bench.engines.chosen import Options, Progress
from voicepipe.bench.engines.figures import FiguresResult, Samples
from voicepipe.bench.engines.play import PlayedEngines, capacity, play

WARM_UP_S = 2.0
"""Played before each number of calls, and not counted."""
ALONE = 0.5
"""A stage by itself is measured for this share of the time."""
CAPACITY_S = 4.0


async def measured(engines: PlayedEngines, options: Options, progress: Progress) -> list[FiguresResult]:
    """A result for each number of calls. Raises what an engine raises."""
    assert engines.asr
    progress("ASR by itself: how many calls it could hear")
    await capacity(engines.asr, min(WARM_UP_S, options.seconds), options.seed)
    whole = await capacity(engines.asr, min(CAPACITY_S, options.seconds), options.seed)
    return [await _measured(engines, calls, options, progress, whole) for calls in options.calls]


async def _measured(
    engines: PlayedEngines, calls: int, options: Options, progress: Progress, whole: float
) -> FiguresResult:
    assert engines.asr

    async def run(what: str, taking_part: PlayedEngines, seconds: float) -> Samples:
        progress(f"{calls} {'call' if calls == 1 else 'calls'}: {what}, {seconds:g} s")
        return await play(taking_part, calls, seconds, options.seed)

    await play(engines, calls, min(WARM_UP_S, options.seconds), options.seed + 1)
    together = await run("ASR, LLM and TTS together", engines, options.seconds)
    others, seconds = PlayedEngines(llm=engines.llm, tts=engines.tts), min(CAPACITY_S, options.seconds)
    progress("ASR beside them: how many calls it could hear")
    async with asyncio.TaskGroup() as group:
        group.create_task(play(others, calls, seconds, options.seed))
        beside = group.create_task(capacity(engines.asr, seconds, options.seed))
    alone: dict[str, list[float]] = {}
    for stage, single in (
        ("ASR", PlayedEngines(asr=engines.asr)),
        ("LLM", PlayedEngines(llm=engines.llm)),
        ("TTS", PlayedEngines(tts=engines.tts)),
    ):
        alone |= (await run(f"{stage} by itself", single, ALONE * options.seconds)).times
    return FiguresResult(calls, together, Samples(alone), whole, beside.result())
