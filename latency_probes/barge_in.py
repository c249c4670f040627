"""Judges what became of a reply that something came over: an interruption, or a sound that should not matter."""

import numpy as np
from numpy.typing import NDArray

from latency_probes.records import OverResult, Said
from latency_probes.timeline import AUDIBLE_DBFS, Reply, Timeline, frame_levels
from voicepipe.audio import Pcm

DUCKED_DB = 10.0
SAME_DB = 3.0
SHORTER_FRAMES = 5
"""A reply that lacks this many frames of 10 ms of its reference was cut."""

Levels = NDArray[np.float64]


def judge_over(said: Said, line: Timeline, reply: Reply, reference: Pcm | None) -> OverResult | None:
    """Compare `reply` with `reference`, the same reply undisturbed. None where the reply was over before."""
    if said.over is None or not said.over_start:
        return None
    start = line.sent_at(said.over_start + said.over.voiced[0])
    arrived, plays = reply.frame_times()
    end = float(plays[-1]) + 0.01
    if end < start:
        return None
    levels = frame_levels(reply.pcm)
    expected = frame_levels(reference) if reference is not None else np.empty(0)
    compared = alike(levels[arrived < start], expected)
    decided = cut_decided(line, reply, start, end)
    short = compared and levels.size < expected.size - SHORTER_FRAMES
    cut = decided is not None or short
    audible = arrived[levels > AUDIBLE_DBFS]
    return OverResult(
        cut=cut,
        answered=any(start < other for other in later_replies(line, reply, said.until)),
        compared=compared,
        ducked_ms=ducked(levels, expected, arrived, start) if compared else None,
        silent_ms=max(0.0, float(audible[-1]) - start) * 1000 if cut and audible.size else None,
        decided_ms=(decided - start) * 1000 if decided is not None else None,
    )


def alike(levels: Levels, expected: Levels) -> bool:
    """Whether what was received before the disturbance is what the reference began with (frame levels in dBFS)."""
    count = min(levels.size, expected.size)
    audible = np.maximum(levels[:count], expected[:count]) > AUDIBLE_DBFS
    if not audible.any():
        return False
    return float(np.mean(np.abs(levels[:count] - expected[:count])[audible] < SAME_DB)) > 0.9


def ducked(levels: Levels, expected: Levels, arrived: Levels, start: float) -> float | None:
    """Milliseconds from `start` to the arrival of the first two audible frames that stand 10 dB too low."""
    count = min(levels.size, expected.size)
    frames = np.flatnonzero((expected[:count] > AUDIBLE_DBFS) & (arrived[:count] >= start))
    low = levels[frames] <= expected[frames] - DUCKED_DB
    both = np.flatnonzero(low[:-1] & low[1:])
    return float(arrived[frames[both[0]]] - start) * 1000 if both.size else None


def cut_decided(line: Timeline, reply: Reply, start: float, end: float) -> float | None:
    """Second at which the server first said that it cut `reply`, which is played until `end`; None if it did not."""
    done = [event for event in line.of_type("response.done") if event.data["response"]["id"] == reply.response_id]
    completed = any(event.data["response"].get("status") == "completed" for event in done)
    said = [event.arrived for event in done if event.data["response"].get("status") == "cancelled"]
    said += [
        event.arrived
        for event in line.of_type("conversation.item.truncated")
        if event.data.get("item_id") == reply.item_id
    ]
    said += [event.arrived for event in line.of_type("input_audio_buffer.speech_started")]
    # Voice after a reply that was given and played to its end cuts nothing.
    return min((at for at in said if at > start and (at < end or not completed)), default=None)


def later_replies(line: Timeline, reply: Reply, until: float) -> list[float]:
    """Seconds at which other replies became audible, up to `until`."""
    heard = [other.first_audible for other in line.replies.values() if other.response_id != reply.response_id]
    return [moment.arrived for moment in heard if moment and moment.arrived <= until]
