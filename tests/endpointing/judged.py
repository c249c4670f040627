"""What a rule of waiting makes of the silences that were heard: what callers wait who have finished, and how many are
interrupted who go on. Every rule is judged on the same silences, and on the same pauses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from latency_probes import clips
from latency_probes.sound import rng_for
from tests.endpointing.heard import PREPARE_MS, Gap, Heard
from voicepipe.turn.endpoint import SURE, UNFINISHED, Endpointer, Evidence

NEAR_MS = 120
"""A silence that begins so near to the end of what was said is the one behind it: the ear may be early."""
Wait = Callable[[Evidence], float]
"""The silence, in ms, that ends a turn of which so much is known."""


def by_three_waits(endpointer: Endpointer) -> Wait:
    """The rule up to November 2026: sure, unsure or unfinished."""

    def wait(evidence: Evidence) -> float:
        probability = endpointer.probability(evidence)
        return 140 if probability >= SURE else 850 if probability > UNFINISHED else 950

    return wait


def by_degrees(endpointer: Endpointer) -> Wait:
    return lambda evidence: endpointer.judge(evidence).required_ms


@dataclass(frozen=True, slots=True)
class Judged:
    """Of one rule."""

    finished_ms: list[float]
    """What each caller waits who has finished, and was not interrupted before."""
    interrupted: int
    """So many of them were, at a silence inside a word or a phrase that was spoken in one breath."""
    cut_ins: int
    pauses: int
    """Callers who paused and went on; so many of them were interrupted."""
    unfinished_ms: list[float]
    """What callers wait who stop in the middle and say no more."""


def judge(rows: Sequence[Heard], wait: Wait, pauses: str, seed: int = 1) -> Judged:
    """`pauses`: the kind of the probes' clips whose pauses are taken; each is drawn by the recording's name."""
    finished: list[float] = []
    unfinished: list[float] = []
    interrupted = cut_ins = paused = 0
    for row in rows:
        early = any(_ends(gap, wait) <= gap.ms for gap in row.gaps if gap.last_ms < row.end_ms - NEAR_MS)
        behind = [gap for gap in row.gaps if gap.last_ms >= row.end_ms - NEAR_MS]
        ends_ms = behind[-1].last_ms - row.end_ms + _ends(behind[-1], wait) if behind else float("inf")
        if row.kind == "pause_inside":
            paused += 1
            pause_ms = clips.pause_ms(pauses, rng_for(seed, row.id))
            cut_ins += early or ends_ms < pause_ms
        elif row.kind == "unfinished":
            unfinished.append(ends_ms)
        elif early:
            interrupted += 1
        else:
            finished.append(ends_ms)
    return Judged(finished, interrupted, cut_ins, paused, unfinished)


def _ends(gap: Gap, wait: Wait) -> float:
    """How long this silence has to last to end the turn."""
    if gap.sure_ms < 0 or not gap.text:
        return float("inf")
    return max(wait(gap.evidence), gap.sure_ms, PREPARE_MS)
