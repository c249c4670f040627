"""What a turn takes on a host under calls, from the end of the voice to the reply's first sound."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from voicepipe.sizing.constants import MOST_BUSY, MPS_SHARE
from voicepipe.sizing.host import SizedHost
from voicepipe.sizing.language import LoadedLlm, loaded_llm
from voicepipe.sizing.prediction import BEFORE_COMPUTE_MS
from voicepipe.sizing.stage import Contention, LoadedStage, contentions
from voicepipe.sizing.traffic import FirstPhrase

MOST_CALLS = 1024
QUANTILE_COUNT = 100
QUANTILES = np.array([NormalDist().inv_cdf((n + 0.5) / QUANTILE_COUNT) for n in range(QUANTILE_COUNT)])
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
    """What a turn takes with so many calls at a time."""
    traffic = host.traffic

    def recognition(others: Contention) -> LoadedStage:
        return host.asr.stage(host.gpu, traffic, calls, others)

    def language(others: Contention) -> LoadedLlm:
        return loaded_llm(host.group, traffic.tokens(calls), traffic.new_tokens, traffic.context_tokens, others)

    def synthesis(others: Contention, phrase: FirstPhrase = traffic.phrase) -> LoadedStage:
        return host.tts.stage(host.gpu, traffic, calls, others, phrase)

    on_gpu: dict[str, Callable[[Contention], float]] = {
        "asr": lambda others: recognition(others).on_gpu,
        "llm": lambda others: language(others).on_gpu,
        "tts": lambda others: synthesis(others).on_gpu,
    }
    alone = {} if host.shared else {"llm": Contention()}
    together = {name: share for name, share in on_gpu.items() if name not in alone}
    contention = alone | contentions(together, {"llm": MPS_SHARE} if host.mps else {})
    asr, llm, tts = recognition(contention["asr"]), language(contention["llm"]), synthesis(contention["tts"])

    def phrase_times(phrase: FirstPhrase) -> PhraseTimes:
        return PhraseTimes(asr.latency + llm.latency(phrase.tokens), synthesis(contention["tts"], phrase).latency)

    deadline_ms = _deadline_ms(host, asr.latency.mean, llm.token)
    written, sounds, p95 = first_sound(phrase_times(traffic.phrase), phrase_times(traffic.short_phrase), deadline_ms)
    first_token, heard = llm.latency(1).mean, asr.latency.mean
    phrase_ms = written - heard if math.isfinite(heard) else llm.latency(traffic.phrase.tokens).mean
    return TurnEstimate(
        asr=heard,
        first_token=first_token,
        first_phrase=phrase_ms - first_token if math.isfinite(phrase_ms) else math.inf,
        tts=sounds,
        token=llm.token,
        replies=llm.replies,
        compute_p95=p95,
        busy={"asr": asr.busy, "tts": tts.busy},
        slow={name: others.slowdown for name, others in contention.items()},
    )


def _deadline_ms(host: SizedHost, asr_ms: float, token_ms: float) -> float:
    """The deadline of the first phrase, in ms from when the engines begin: if it is not whole by then, it is cut with
    the next token, which comes half a token later in the mean. The deadline counts from commit, and a turn is not
    committed before its last words are known."""
    if not host.traffic.short_phrase_ms:
        return math.inf
    return max(host.traffic.sure_ms - BEFORE_COMPUTE_MS, asr_ms) + host.traffic.short_phrase_ms + token_ms / 2


class PhraseTimes(NamedTuple):
    """When a phrase is written, and when it sounds."""

    written: NormalDist
    """Time from when the engines begin until it is whole."""
    sounds: NormalDist
    """Time from then to its first sound."""


def first_sound(long: PhraseTimes, short: PhraseTimes, deadline_ms: float) -> tuple[float, float, float]:
    """Three times in ms, of which the first two are those of a turn in which each wait is the mean one: until the first
    phrase is written; from then to its first sound; and from the engines' begin to the first sound in 19 of 20 turns.

    `long`: a whole phrase. `short`: one that was cut, because it was not whole at the deadline (infinite: there is
    none). A phrase that is whole just before the deadline is spoken as it is, and a voice that makes whole phrases
    takes longer for it than for one that was cut. So the turn that waited longest need not be the slowest, and
    percentiles are counted over cases."""
    waits = np.array([0.0, *QUANTILES])
    whole, shorter = (made.written.mean + waits * made.written.stdev for made in (long, short))
    late = whole > deadline_ms
    written = np.where(late, np.maximum(shorter, deadline_ms), whole)
    sounds = np.where(late, short.sounds.mean, long.sounds.mean)
    deviation = np.where(late, short.sounds.stdev, long.sounds.stdev)
    cases = (written + sounds)[1:, None] + deviation[1:, None] * QUANTILES
    at = int(0.95 * cases.size)
    return float(written[0]), float(sounds[0]), float(np.partition(cases, at, axis=None)[at])


def capacity(host: SizedHost, compute_ms: float) -> tuple[int, str]:
    """The number of calls that fit and are answered within `compute_ms`, and what keeps one more from it."""
    few = bisect_left(range(1, MOST_CALLS + 1), True, key=lambda calls: bool(_bottleneck(host, calls, compute_ms)))
    return few, _bottleneck(host, few + 1, compute_ms)


def _bottleneck(host: SizedHost, calls: int, compute_ms: float) -> str:
    if not host.fits or host.kv_needed(calls) > host.kv_room:
        return "memory"
    predicted = turn(host, calls)
    for stage, name in (("asr", "recognition"), ("tts", "synthesis")):
        if predicted.busy[stage] > MOST_BUSY:
            return name
    if not math.isfinite(predicted.first_token):
        return "language"
    if predicted.compute_p95 <= compute_ms:
        return ""
    return "latency" if calls == 1 else predicted.slowest
