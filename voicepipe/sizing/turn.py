"""What a turn takes on a host under calls, from the end of the voice to the reply's first sound."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from voicepipe.sizing.constants import BUSIEST, MPS_SHARE
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import TokenWriting, writing
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS
from voicepipe.sizing.stage import LoadedStage, SharedGpu, shared
from voicepipe.sizing.traffic import FirstPhrase

MOST_CALLS = 1024
MANY = 100
CASES = np.array([NormalDist().inv_cdf((n + 0.5) / MANY) for n in range(MANY)])
"""Waits that are equally likely, in standard deviations above the mean."""


@dataclass(frozen=True, slots=True)
class TurnEstimate:
    """The engines' times, in ms, in a turn in which each wait is the mean one."""

    asr: float
    first_token: float
    first_phrase: float
    """Time from the first token until the first phrase is whole, or is cut."""
    tts: float
    token: float
    """From one token to the next, with `replies` others at a time."""
    replies: float
    """Replies that are generated at a time, in the mean."""
    compute_p95: float
    """19 of 20 turns take no longer."""
    busy: dict[str, float]
    """Part of the time in which recognition ("asr") and synthesis ("tts") work at least; 1 and more: it cannot keep up.
    Workers of one GPU add none."""
    slow: dict[str, float]
    """The factor by which work on the GPU takes longer, for each stage that shares one ("asr", "llm", "tts")."""

    @property
    def compute(self) -> float:
        return self.asr + self.first_token + self.first_phrase + self.tts

    @property
    def slowest(self) -> str:
        """The stage that has the largest share of it."""
        language = self.first_token + self.first_phrase
        shares = {"recognition": self.asr, "language": language, "synthesis": self.tts}
        return max(shares, key=shares.__getitem__)


def turn(host: SizedHost, calls: int) -> TurnEstimate:
    """The estimate at `calls` calls."""
    traffic = host.traffic

    def hear(others: SharedGpu) -> LoadedStage:
        return host.asr.stage(host.gpu, traffic, calls, others)

    def write(others: SharedGpu) -> TokenWriting:
        return writing(host.group, traffic.tokens(calls), traffic.new_tokens, traffic.context_tokens, others)

    def speak(others: SharedGpu, phrase: FirstPhrase = traffic.phrase) -> LoadedStage:
        return host.tts.stage(host.gpu, traffic, calls, others, phrase)

    on_gpu: dict[str, Callable[[SharedGpu], float]] = {
        "asr": lambda others: hear(others).on_gpu,
        "llm": lambda others: write(others).on_gpu,
        "tts": lambda others: speak(others).on_gpu,
    }
    alone = {} if host.shared else {"llm": SharedGpu()}
    together = {name: share for name, share in on_gpu.items() if name not in alone}
    beside = alone | shared(together, {"llm": MPS_SHARE} if host.mps else {})
    asr, llm, tts = hear(beside["asr"]), write(beside["llm"]), speak(beside["tts"])

    def making(phrase: FirstPhrase) -> Making:
        return Making(asr.takes + llm.takes(phrase.tokens), speak(beside["tts"], phrase).takes)

    rung = _rung(host, asr.takes.mean, llm.token)
    written, sounds, p95 = first_sound(making(traffic.phrase), making(traffic.short_phrase), rung)
    first_token, heard = llm.takes(1).mean, asr.takes.mean
    phrase_ms = written - heard if math.isfinite(heard) else llm.takes(traffic.phrase.tokens).mean
    return TurnEstimate(
        asr=heard,
        first_token=first_token,
        first_phrase=phrase_ms - first_token if math.isfinite(phrase_ms) else math.inf,
        tts=sounds,
        token=llm.token,
        replies=llm.replies,
        compute_p95=p95,
        busy={"asr": asr.busy, "tts": tts.busy},
        slow={name: others.slow for name, others in beside.items()},
    )


def _rung(host: SizedHost, asr_ms: float, token_ms: float) -> float:
    """When a first phrase that is not whole is cut, in ms from when the engines begin: with the next token, which takes
    half a token more in the mean. The ladder begins at commit, and a turn is not committed before its last words are
    known."""
    if not host.traffic.short_phrase_ms:
        return math.inf
    return max(host.traffic.sure_ms - BEFORE_COMPUTE_MS, asr_ms) + host.traffic.short_phrase_ms + token_ms / 2


class Making(NamedTuple):
    """The times of making one phrase."""

    written: NormalDist
    """Time from when the engines begin until it is whole."""
    sounds: NormalDist
    """Time from then to its first sound."""


def first_sound(long: Making, short: Making, rung: float) -> tuple[float, float, float]:
    """When the voice gets the first phrase, and its first sound after that, in a turn in which each wait is the mean
    one; and by when 19 of 20 turns have their first sound.

    `short`: times of a phrase that is cut, `rung` ms after the engines began if it is not whole; infinite: none is. One
    that is whole just before is spoken as it is. A voice that makes whole phrases then takes longer than for one that
    was cut, so that the turn that waited longest need not be the slowest: percentiles are counted over cases."""
    waits = np.array([0.0, *CASES])
    whole, shorter = (made.written.mean + waits * made.written.stdev for made in (long, short))
    late = whole > rung
    written = np.where(late, np.maximum(shorter, rung), whole)
    sounds = np.where(late, short.sounds.mean, long.sounds.mean)
    deviation = np.where(late, short.sounds.stdev, long.sounds.stdev)
    cases = (written + sounds)[1:, None] + deviation[1:, None] * CASES
    at = int(0.95 * cases.size)
    return float(written[0]), float(sounds[0]), float(np.partition(cases, at, axis=None)[at])


def most_calls(host: SizedHost, compute_ms: float) -> tuple[int, str]:
    """The number of calls that fit and are answered within `compute_ms`, and what keeps one more from it."""
    few = bisect_left(range(1, MOST_CALLS + 1), True, key=lambda calls: bool(_obstacle(host, calls, compute_ms)))
    return few, _obstacle(host, few + 1, compute_ms)


def _obstacle(host: SizedHost, calls: int, compute_ms: float) -> str:
    if not host.fits or host.kv_needed(calls) > host.kv_room:
        return "memory"
    predicted = turn(host, calls)
    for stage, name in (("asr", "recognition"), ("tts", "synthesis")):
        if predicted.busy[stage] > BUSIEST:
            return name
    if not math.isfinite(predicted.first_token):
        return "language"
    if predicted.compute_p95 <= compute_ms:
        return ""
    return "latency" if calls == 1 else predicted.slowest
