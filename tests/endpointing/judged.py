"""What a rule of waiting makes of the silences that were heard: what callers wait who have finished, and how many are
interrupted who go on. Every rule is judged on the same silences, and on the same pauses."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_evidence

import numpy as np
from msgspec.structs import replace

from latency_probes import clips
from latency_probes.sound import rng_for
from tests.endpointing.heard import PREPARE_MS, Gap, Heard
from voicepipe.turn.endpoint import Endpointer, Evidence

NEAR_MS = 120
"""A silence that begins so near to the end of what was said is the one behind it: the ear may be early."""
DRAWN = 200
"""Lengths of a pause that are tried on each."""
Wait = Callable[[Evidence], float]
"""The silence, in ms, that ends a turn of which so much is known."""


def by_degrees(endpointer: Endpointer) -> Wait:
    return lambda evidence: endpointer.judge(evidence).required_ms


def without_turn_model(wait: Wait) -> Wait:
    """As if there were none."""
    return lambda evidence: wait(replace_evidence(evidence, voice=None))


def without_full_stop(wait: Wait) -> Wait:
    """As if the recogniser told the mark that it writes, and no more."""
    return lambda evidence: wait(replace_evidence(evidence, full_stop=None))


@dataclass(slots=True)
class Judged:
    """Of one rule."""

    finished_ms: list[float] = field(default_factory=list)
    """What each caller waits who has finished, and was not interrupted before."""
    interrupted: int = 0
    """So many of them were, at a silence inside a word or a phrase that was spoken in one breath."""
    pauses: int = 0
    """Callers who paused and went on."""
    cut_ins: float = 0.0
    """So many of them were interrupted, on average over the lengths that their pauses may have."""
    unfinished_ms: list[float] = field(default_factory=list)
    """What callers wait who stop in the middle and say no more."""


def judge(rows: Sequence[Heard], wait: Wait, pauses: str) -> Judged:
    """`pauses`: the kind of the probes' clips whose pauses are taken."""
    drawn = [clips.pause_ms(pauses, rng_for(seed, pauses)) for seed in range(DRAWN)]
    judged = Judged()
    for row in rows:
        early = any(_ends(gap, wait) <= gap.ms for gap in row.gaps if not _behind(row, gap))
        behind = [gap for gap in row.gaps if _behind(row, gap)]
        ends_ms = behind[-1].last_ms - row.end_ms + _ends(behind[-1], wait) if behind else float("inf")
        if row.kind == "pause_inside":
            judged.pauses += 1
            judged.cut_ins += 1.0 if early else sum(ends_ms < pause_ms for pause_ms in drawn) / DRAWN
        elif row.kind == "unfinished":
            judged.unfinished_ms.append(ends_ms)
        elif early:
            judged.interrupted += 1
        else:
            judged.finished_ms.append(ends_ms)
    return judged


def as_said(row: Heard) -> Heard:
    """As a recogniser would tell it that mishears nothing."""
    gaps = [replace(gap, text=row.text, full_stop=None) if _behind(row, gap) else gap for gap in row.gaps]
    return replace(row, gaps=gaps)


def in_order(rows: Sequence[Heard], endpointer: Endpointer) -> float:
    """Share of pairs of a finished sentence and a begun one of which the finished one looks the more complete: the area
    under the ROC curve. No rule of waiting can tell apart what the evidence does not."""
    odds: dict[str, list[float]] = {"finished": [], "pause_inside": []}
    for row in rows:
        behind = [gap for gap in row.gaps if _behind(row, gap) and gap.text]
        if behind and row.kind in odds:
            odds[row.kind].append(endpointer.log_odds(behind[-1].evidence)[0])
    above = np.array(odds["finished"])[:, None] - np.array(odds["pause_inside"])[None]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))


def _behind(row: Heard, gap: Gap) -> bool:
    """Whether it is the silence behind what was said."""
    return gap.last_ms >= row.end_ms - NEAR_MS


def _ends(gap: Gap, wait: Wait) -> float:
    """How long this silence has to last to end the turn."""
    if gap.sure_ms < 0 or not gap.text:
        return float("inf")
    return max(wait(gap.evidence), gap.sure_ms, PREPARE_MS)
