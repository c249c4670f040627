"""One host under calls: what its GPUs must hold, how busy each stage is, and what a turn then takes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from voicepipe.sizing import gpu_memory, speech_speed
from voicepipe.sizing.gpu_models import GIB, GpuModel
from voicepipe.sizing.shapes import AsrShape
from voicepipe.sizing.speed import Group, decode_ms, step_ms

REQUEST_MS = 6.0
"""From our process to vLLM's and back: tokenising, its queue, its scheduler."""
USABLE = 0.97
"""Of a GPU's memory; the driver keeps the rest, and what is freed is not always whole."""
MOST_REPLIES = 256
"""vLLM's default for sequences at a time."""
LATER_PHRASE_S = 2.6
"""Of speech, of each phrase of a reply but the first."""
BUSIEST = 0.9
"""Of a stage; the queue before a busier one grows without end."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a call asks for."""

    turn_s: float = 8.0
    """From one turn to the next."""
    speaking: float = 0.5
    """Share of the time in which the caller does."""
    spoken: float = 0.5
    """Share of the time for which speech is made."""
    partial_s: float = 0.5
    """An utterance is read again after so much more of it."""
    window_s: float = 10.0
    """What Whisper reads in one go."""
    utterance_s: float = 3.0
    silences: float = 1.5
    """In a turn, that might be its end: each is a final pass, a prompt and a first phrase, which may be for nothing."""
    context_tokens: int = 2048
    """Instructions and what was said, kept in the prefix cache; ten minutes of talk."""
    new_tokens: int = 40
    """Of a prompt, that the prefix cache does not hold."""
    reply_tokens: int = 60
    phrase_tokens: int = 8
    """Until the first phrase is whole."""
    phrase_s: float = 1.2
    """Of speech in it."""


@dataclass(frozen=True, slots=True)
class SizedHost:
    """The language model's group, and recognition with synthesis on the GPU after it, or on its first."""

    group: Group
    gpus: int
    asr: AsrShape
    tts: str
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
        tts = gpu_memory.tts(gpu_memory.TTS_WEIGHTS[self.tts], processes=1 if self.tts == "coqui" else 0)
        return gpu_memory.asr(gpu_memory.asr_weights(self.asr)) + tts + gpu_memory.CONTEXT

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
    """What the engines take, in ms, from the end of the voice to the reply's first sound. Means."""

    asr: float
    first_token: float
    first_phrase: float
    """From the first token to the first phrase's last."""
    tts: float
    token: float
    """From one token to the next, with `replies` others at a time."""
    replies: float
    """That are generated at a time, in the mean."""
    waiting_p95: float
    """What a turn that meets others takes more than the mean."""
    busy: dict[str, float]
    """Share of the time in which each stage works; 1 and more: it cannot keep up. "asr": with every partial, of which
    those are left out for which there is no time; "finals": without any; "tts": several workers share one GPU, so that
    they add none."""

    @property
    def compute(self) -> float:
        return self.asr + self.first_token + self.first_phrase + self.tts

    @property
    def slowest(self) -> str:
        """The stage that has the largest share of it."""
        language = self.first_token + self.first_phrase
        shares = {"recognition": self.asr, "language": language, "synthesis": self.tts}
        return max(shares, key=shares.__getitem__)

    @property
    def compute_p95(self) -> float:
        return self.compute + self.waiting_p95


def turn(host: SizedHost, calls: int) -> TurnEstimate:
    """At `calls` calls."""
    group, traffic = host.group, host.traffic
    gpu_ms = speech_speed.pass_gpu_ms(host.asr, host.gpu, traffic.window_s, traffic.utterance_s)
    cpu_ms = speech_speed.pass_ms(host.asr, host.gpu, traffic.window_s, traffic.utterance_s) - gpu_ms
    first, later = (speech_speed.speak_ms(host.tts, seconds) for seconds in (traffic.phrase_s, LATER_PHRASE_S))
    finals = calls * traffic.silences / traffic.turn_s / 1000  # a millisecond
    partials = calls * traffic.speaking / traffic.partial_s / 1000
    phrases = calls * traffic.spoken / LATER_PHRASE_S / 1000
    firsts = calls * traffic.silences / traffic.turn_s / 1000  # they go before the others; some are for nothing
    wasted = firsts * (1 - 1 / traffic.silences)

    # Who finds another stage at work on the same GPU shares it, so that each takes twice as long for that time.
    asr_gpu = min(1.0, (finals + partials) * (gpu_ms + cpu_ms)) * gpu_ms / (gpu_ms + cpu_ms)
    tts_ms = phrases * later + wasted * first
    tts_gpu = min(1.0, tts_ms)
    llm_slow = 1 + (asr_gpu + tts_gpu if host.shared else 0.0)
    replies = _replies(host, calls, llm_slow)
    llm = 1 - math.exp(-replies)
    beside = llm if host.shared else 0.0
    read = cpu_ms + gpu_ms * (1 + tts_gpu + beside)
    tts_slow = 1 + asr_gpu + beside
    token = llm_slow * decode_ms(group, 1 + round(replies), traffic.context_tokens)
    new = traffic.new_tokens + round(replies)
    prefill = llm_slow * step_ms(group, new, traffic.context_tokens, sequences=1 + round(replies))

    reading, speaking = (finals + partials) * read, tts_ms * tts_slow
    # For what is being done, which cannot be interrupted. A first phrase does not wait for a later one: each has half
    # of the GPU, so that it loses what is left of the other, and no more than its own time.
    waits = ((min(1.0, reading), read), (llm, token), (min(1.0, speaking), tts_slow * first * (2 - first / later)))
    asr_wait, llm_wait, tts_wait = (share * length / 2 for share, length in waits)
    return TurnEstimate(
        asr=read * (1 + _queue(finals * read)) + asr_wait,
        first_token=REQUEST_MS + prefill + llm_wait if replies < MOST_REPLIES else math.inf,
        first_phrase=(traffic.phrase_tokens - 1) * token,
        tts=tts_slow * first * (1 + _queue(firsts * tts_slow * first)) + tts_wait if speaking < 1 else math.inf,
        token=token,
        replies=replies,
        waiting_p95=1.65 * math.sqrt(sum(_variance(share, length) for share, length in waits)),
        busy={"asr": reading, "finals": finals * read, "tts": speaking},
    )


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
    if predicted.replies >= MOST_REPLIES:
        return "language"
    if predicted.compute_p95 <= compute_ms:
        return ""
    if calls == 1:
        return "latency"
    return predicted.slowest


def _replies(host: SizedHost, calls: int, slow: float = 1.0) -> float:
    """Replies that are being generated at a time, in the mean: the more there are the longer each takes. `slow`: by
    what a token takes longer beside others on the GPU. `MOST_REPLIES`: they come faster than they end."""
    traffic = host.traffic
    tokens = traffic.reply_tokens + (traffic.silences - 1) * traffic.phrase_tokens
    replies = before = 0.0
    for _ in range(200):
        step = slow * decode_ms(host.group, max(1, math.ceil(replies)), traffic.context_tokens)
        before, replies = replies, min(MOST_REPLIES, calls * tokens * step / 1000 / traffic.turn_s)
        if replies - before < 0.01:  # it only grows, from none
            break
    return replies


def _queue(load: float) -> float:
    """Mean wait for a server that always takes the same time (M/D/1), in units of that time."""
    return load / (2 * (1 - load)) if load < 1 else math.inf


def _variance(share: float, length: float) -> float:
    """Of a wait that there is with probability `share`, for any part of `length`."""
    return share * length * length / 3 - (share * length / 2) ** 2
