"""One host under calls: what its GPUs must hold, how busy each stage is, and what a turn then takes."""

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import NormalDist

from voicepipe.prediction import BEFORE_COMPUTE_MS
from voicepipe.sizing import constants as c
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.first_phrase import Making, first_sound
from voicepipe.sizing.gpu_models import GIB, GpuModel
from voicepipe.sizing.language import Group, Writing, writing
from voicepipe.sizing.recognition import Recogniser
from voicepipe.sizing.stage import Sharing, Wait, shared
from voicepipe.sizing.traffic import Phrase, Traffic
from voicepipe.sizing.voices import Voice

MOST_CALLS = 1024


@dataclass(frozen=True, slots=True)
class SizedHost:
    """The language model's group, and recognition with synthesis on the GPU after it, or on its first."""

    group: Group
    gpus: int
    asr: Recogniser
    tts: Voice
    mps: bool = False
    """CUDA MPS runs, so that processes work at the same time and not in turns."""
    max_model_len: int = 8192
    traffic: Traffic = field(default_factory=Traffic)

    @property
    def gpu(self) -> GpuModel:
        return self.group.gpu

    @property
    def shared(self) -> bool:
        """Whether a GPU of the group does recognition and synthesis, too."""
        return self.group.gpus >= self.gpus

    @property
    def usable(self) -> int:
        """Bytes of each GPU."""
        return round(self.gpu.memory_gib * GIB * c.USABLE)

    @property
    def llm_fixed(self) -> int:
        """Bytes of each GPU of the group without what calls have said."""
        weights = gpu_memory.llm_weights(self.group.shape, self.group.dtype)
        return weights // self.group.gpus + c.LLM_WORKSPACE + c.CONTEXT

    @property
    def speech_fixed(self) -> int:
        """Bytes of the GPU that recognises and speaks."""
        return self.asr.memory + self.tts.memory + c.CONTEXT

    @property
    def kv_room(self) -> int:
        """Bytes of each GPU of the group for what calls have said; below 0: so much is missing without any."""
        return self.usable - self.llm_fixed - (self.speech_fixed if self.shared else 0)

    def kv_needed(self, calls: int) -> int:
        """Bytes of each GPU of the group. vLLM wants room for one context of `max_model_len`, too."""
        shape = self.group.shape
        all_calls = calls * gpu_memory.kv_call(shape, self.traffic.context_tokens)
        shards = gpu_memory.kv_shards(shape, self.group.tensor) * self.group.pipeline
        return -(-max(all_calls, gpu_memory.kv_call(shape, self.max_model_len)) // shards)

    @property
    def fits(self) -> bool:
        """With room for one call."""
        return self.kv_needed(1) <= self.kv_room and self.speech_fixed <= self.usable


@dataclass(frozen=True, slots=True)
class TurnEstimate:
    """What the engines take, in ms, from the end of the voice to the reply's first sound, in a turn in which each wait
    is the mean one."""

    asr: float
    first_token: float
    first_phrase: float
    """From the first token until the first phrase is whole, or is cut."""
    tts: float
    token: float
    """From one token to the next, with `replies` others at a time."""
    replies: float
    """That are generated at a time, in the mean."""
    compute_p95: float
    """19 of 20 turns take no longer."""
    busy: dict[str, float]
    """Share of the time in which recognition ("asr") and synthesis ("tts") work at least; 1 and more: it cannot keep
    up. Workers of one GPU add none."""
    slow: dict[str, float]
    """By what each stage's work on the GPU takes longer beside the others ("asr", "llm", "tts")."""
    full: bool
    """More replies come at a time than the language model takes."""

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
    """At `calls` calls."""
    traffic = host.traffic
    of = host.gpu, traffic, calls

    def language(slow: float) -> Writing:
        return writing(host.group, traffic.tokens(calls), traffic.new_tokens, traffic.context_tokens, slow)

    on_gpu: dict[str, Callable[[float], float]] = {
        "asr": lambda slow: host.asr.stage(*of, slow).on_gpu,
        "llm": lambda slow: language(slow).on_gpu,
        "tts": lambda slow: host.tts.stage(*of, slow, traffic.phrase).on_gpu,
    }
    together = ("asr", "llm", "tts") if host.shared else ("asr", "tts")
    sharing = shared(together, on_gpu, {"llm": c.MPS_SHARE} if host.mps else {})
    hears, writes, speaks = (sharing[name] for name in on_gpu)
    asr, llm, tts = (
        host.asr.stage(*of, hears.slow),
        language(writes.slow),
        host.tts.stage(*of, speaks.slow, traffic.phrase),
    )

    def making(phrase: Phrase) -> Making:
        tts = host.tts.stage(*of, speaks.slow, phrase)
        whole = math.inf if llm.full else c.REQUEST_MS + llm.ms(phrase.tokens)
        heard = _lasting(asr.ms, asr.wait, hears, asr.gpu)
        written = _lasting(whole, llm.wait, writes, llm.first(phrase.tokens).gpu)
        return Making(heard + written, _lasting(tts.ms, tts.wait, speaks, tts.gpu))

    first = first_sound(making(traffic.phrase), making(traffic.short_phrase), _rung(traffic, asr.ms, llm.token))
    first_token = c.REQUEST_MS + llm.ms(1)
    return TurnEstimate(
        asr=asr.ms,
        first_token=math.inf if llm.full else first_token,
        first_phrase=first.written - (asr.ms if math.isfinite(asr.ms) else 0) - first_token,
        tts=first.sounds,
        token=llm.token,
        replies=llm.replies,
        compute_p95=first.p95,
        busy={"asr": asr.busy, "tts": tts.busy},
        slow={name: each.slow for name, each in sharing.items()},
        full=llm.full,
    )


def _lasting(ms: float, wait: Wait, sharing: Sharing, gpu: float) -> NormalDist:
    """What takes `ms` in the mean, of which `gpu` on the GPU, and differs by whom it meets there."""
    return NormalDist(ms, math.sqrt(wait.variance + (sharing.spread * gpu) ** 2))


def _rung(traffic: Traffic, asr_ms: float, token_ms: float) -> float:
    """When a first phrase that is not whole is cut, in ms from when the engines begin: with the next token, which takes
    half a token more in the mean. The ladder begins at commit, and a turn is not committed before its last words are
    known."""
    if not traffic.short_phrase_ms:
        return math.inf
    return max(traffic.sure_ms - BEFORE_COMPUTE_MS, asr_ms) + traffic.short_phrase_ms + token_ms / 2


def most_calls(host: SizedHost, compute_ms: float) -> tuple[int, str]:
    """How many calls fit and are answered within `compute_ms`, and what keeps one more from it."""
    few = bisect_left(range(1, MOST_CALLS + 1), True, key=lambda calls: bool(_obstacle(host, calls, compute_ms)))
    return few, _obstacle(host, few + 1, compute_ms)


def _obstacle(host: SizedHost, calls: int, compute_ms: float) -> str:
    if not host.fits or host.kv_needed(calls) > host.kv_room:
        return "memory"
    predicted = turn(host, calls)
    for stage, name in (("asr", "recognition"), ("tts", "synthesis")):
        if predicted.busy[stage] > c.BUSIEST:
            return name
    if predicted.full:
        return "language"
    if predicted.compute_p95 <= compute_ms:
        return ""
    return "latency" if calls == 1 else predicted.slowest
