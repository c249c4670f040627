"""One host under calls: what its GPUs must hold, how busy each stage is, and what a turn then takes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from voicepipe.prediction import BEFORE_COMPUTE_MS
from voicepipe.sizing import gpu_memory
from voicepipe.sizing.first_phrase import FirstPhrase, Making, Time
from voicepipe.sizing.gpu_models import GIB, GpuModel
from voicepipe.sizing.language import language
from voicepipe.sizing.recognition import Recogniser
from voicepipe.sizing.sharing import MPS_SHARE, shared
from voicepipe.sizing.speed import Group
from voicepipe.sizing.traffic import Phrase, Traffic
from voicepipe.sizing.voices import Voice

USABLE = 0.97
"""Of a GPU's memory; the driver keeps the rest, and what is freed is not always whole."""
BUSIEST = 0.9
"""Of a stage; the queue before a busier one grows without end."""
MOST_STREAMS = 64
"""Of a recogniser that keeps a slot for each call, for which memory is reckoned: `nemotron.streams`."""


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
        return round(self.gpu.memory_gib * GIB * USABLE)

    @property
    def llm_fixed(self) -> int:
        """Bytes of each GPU of the group without what calls have said."""
        weights = gpu_memory.llm_weights(self.group.shape, self.group.dtype)
        return weights // self.group.gpus + gpu_memory.LLM_WORKSPACE + gpu_memory.CONTEXT

    @property
    def speech_fixed(self) -> int:
        """Bytes of the GPU that recognises and speaks."""
        return self.asr.memory(MOST_STREAMS) + self.tts.memory + gpu_memory.CONTEXT

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
    """Share of the time in which each stage works; 1 and more: it cannot keep up. "asr": with every partial, of which
    those are left out for which there is no time; "finals": without what can be left out; "tts": several workers share
    one GPU, so that they add none."""
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
    sharing = shared(
        ("asr", "llm", "tts") if host.shared else ("asr", "tts"),
        {
            "asr": lambda slow: host.asr.stage(*of, slow).on_gpu,
            "llm": lambda slow: language(host.group, traffic, calls, slow).on_gpu,
            "tts": lambda slow: host.tts.stage(*of, slow, traffic.phrase).on_gpu,
        },
        {"llm": MPS_SHARE} if host.mps else {},
    )
    asr, llm = host.asr.stage(*of, sharing["asr"].slow), language(host.group, traffic, calls, sharing["llm"].slow)

    def making(phrase: Phrase) -> Making:
        tts = host.tts.stage(*of, sharing["tts"].slow, phrase)
        heard = asr.met.variance + (sharing["asr"].spread * asr.gpu) ** 2
        written = llm.met.variance + (sharing["llm"].spread * llm.gpu(phrase)) ** 2
        spoken = tts.met.variance + (sharing["tts"].spread * tts.gpu) ** 2
        return Making(Time(asr.ms + llm.whole(phrase), math.sqrt(heard + written)), Time(tts.ms, math.sqrt(spoken)))

    first = FirstPhrase(making(traffic.phrase), making(traffic.short_phrase), _rung(traffic, asr.ms, llm.token))
    whole, made = first.at()
    written = whole - asr.ms if math.isfinite(asr.ms) else llm.whole(traffic.phrase)
    tts = host.tts.stage(*of, sharing["tts"].slow, traffic.phrase)
    return TurnEstimate(
        asr=asr.ms,
        first_token=math.inf if llm.full else llm.first_token,
        first_phrase=written - llm.first_token,
        tts=made.sounds.mean,
        token=llm.token,
        replies=llm.replies,
        compute_p95=first.p95,
        busy={"asr": asr.busy, "finals": asr.least, "tts": tts.busy},
        slow={name: each.slow for name, each in sharing.items()},
        full=llm.full,
    )


def _rung(traffic: Traffic, asr_ms: float, token_ms: float) -> float:
    """When a first phrase that is not whole is cut, in ms from when the engines begin: with the next token, which takes
    half a token more in the mean. The ladder begins at commit, and a turn is not committed before its last words are
    known."""
    if not traffic.short_phrase_ms:
        return math.inf
    return max(traffic.sure_ms - BEFORE_COMPUTE_MS, asr_ms) + traffic.short_phrase_ms + token_ms / 2


def most_calls(host: SizedHost, compute_ms: float, limit: int = 1024) -> tuple[int, str]:
    """How many calls fit and are answered within `compute_ms`, and what keeps one more from it."""
    few = _most(limit, lambda calls: not _obstacle(host, calls, compute_ms))
    return few, _obstacle(host, few + 1, compute_ms)


def keeps_up(host: SizedHost, stage: str, limit: int = 1024) -> int:
    """With how many calls a stage of `TurnEstimate.busy` does, however long each then waits."""
    return _most(limit, lambda calls: turn(host, calls).busy[stage] <= BUSIEST)


def _most(limit: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `limit` for which it holds, if it holds for each smaller one; 0 if for none."""
    few, many = 0, limit
    while few < many:
        middle = (few + many + 1) // 2
        few, many = (middle, many) if fits(middle) else (few, middle - 1)
    return few


def _obstacle(host: SizedHost, calls: int, compute_ms: float) -> str:
    if not host.fits or host.kv_needed(calls) > host.kv_room:
        return "memory"
    predicted = turn(host, calls)
    for stage, name in (("finals", "recognition"), ("tts", "synthesis")):
        if predicted.busy[stage] > BUSIEST:
            return name
    if predicted.full:
        return "language"
    if predicted.compute_p95 <= compute_ms:
        return ""
    if calls == 1:
        return "latency"
    return predicted.slowest
