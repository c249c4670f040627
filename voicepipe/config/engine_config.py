"""Tables of the configuration that concern engines: which ones, where their models are, on which device they run."""

import math
from typing import Annotated, Any, Literal

from msgspec import Meta

from voicepipe.base.ranges import DEVICE, Count, Ms, Positive, Section, Temperature, Variable, check_url
from voicepipe.base.secret_source import SecretPair, check_pairs

Device = Annotated[str, Meta(pattern=DEVICE)]
""""cuda:1" is the second GPU that this process sees; "auto": a GPU if there is one, shared with the other models as
`engines/gpu_placement.py` decides."""
Timeout = Annotated[int, Meta(ge=1, le=7200)]
"""Seconds."""
Stall = Annotated[float, Meta(ge=1, le=600)]
"""Seconds by which a job may be later than on a slow engine: then the engine hangs, and is down."""


class EnginesConfig(Section, frozen=True):
    """The engines that a PoP uses."""

    vad: Literal["silero", "scripted"] = "silero"
    asr: Literal["whisper", "nemotron", "scripted"] = "whisper"
    llm: Literal["auto", "frontdesk", "vllm", "openai", "scripted"] = "auto"
    """ "auto": `frontdesk` for agents with intents; for others a server of the OpenAI kind on this machine."""
    tts: Literal["auto", "hibari", "espeak", "kokoro", "neutts", "coqui", "scripted"] = "auto"
    """ "auto": hibari speaks English, espeak-ng every other language and what agents name of its voices."""


WHISPER_ENGLISH, WHISPER_POLYGLOT = "Systran/faster-whisper-tiny.en", "Systran/faster-whisper-base"
"""Whisper's models that `models pull` knows."""


class WhisperConfig(Section, frozen=True):
    """faster-whisper: Whisper by CTranslate2."""

    model: str = WHISPER_ENGLISH
    """A directory with a model that CTranslate2 has converted, or such a model's name. tiny.en understands English
    only."""
    device: Device = "cpu"
    compute_type: str = "auto"
    """CTranslate2's name; "auto": int8 on a CPU, float16 on a GPU."""
    threads: Count = 0
    """Passes at a time on a CPU, each on one thread; 0: one a core."""
    detect_language: bool = False
    """The model detects the language of each utterance; otherwise it is the agent's."""
    partial_ms: Annotated[int, Meta(ge=100, le=10_000)] = 500
    """While a voice does not pause, it is read again after so much more sound, if the model has time for it."""
    batch: Positive = 8
    """Utterances that a GPU reads in one go, at most; a CPU reads one after the other."""
    window_ms: Annotated[int, Meta(ge=0, le=30_000, multiple_of=500)] = 0
    """Shorter utterances are padded with silence to this length; 0: with 2 s of silence. Whisper was trained on 30 s.
    Longer windows take longer: 10 s take three times as long as 2."""
    stall_s: Stall = 10
    """Seconds beyond the length of the sound that is read."""


ENGLISH, POLYGLOT = "nvidia/nemotron-speech-streaming-en-0.6b", "nvidia/nemotron-3.5-asr-streaming-0.6b"
"""Nemotron's models on the hub."""


class NemotronConfig(Section, frozen=True):
    """Nemotron Speech Streaming by transformers."""

    model: str = ENGLISH
    """A directory, or a name on the hub; English. "nvidia/nemotron-3.5-asr-streaming-0.6b" knows 40 languages."""
    device: Device = "auto"
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """ "auto": float32 on a CPU, bfloat16 on a GPU."""
    threads: Count = 0
    """Threads on a CPU; 0: all cores but one, which the event loop needs."""
    chunk_ms: Literal[80, 160, 320, 560, 1120] = 160
    """Length of sound that is processed in one go. The model knows a chunk and nothing behind it: longer chunks are
    recognised better and later, and cost less. 320 is for the model with 40 languages only."""
    streams: Annotated[int, Meta(ge=1, le=1024)] = 64
    """Utterances that are recognised at a time, with 7 MB of a GPU each; more wait."""
    gather_ms: Annotated[int, Meta(ge=0, le=560)] = 40
    """Interval between steps unless words are waited for: each step serves more calls, and the GPU is free in between.
    At most half of `chunk_ms`: a call takes one chunk of each step, and must catch up if it was late."""
    detect_language: bool = False
    """The model with 40 languages detects the language of each utterance; otherwise it is the agent's."""
    stall_s: Stall = 10
    """Seconds that a step may take."""

    def __post_init__(self) -> None:
        if 2 * self.gather_ms > self.chunk_ms:
            most = self.chunk_ms // 2
            raise ValueError(
                f"gather_ms: cannot be {self.gather_ms}; at most {most}, half of chunk_ms ({self.chunk_ms})"
            )
        if self.model == ENGLISH and self.chunk_ms == 320:
            raise ValueError(f"chunk_ms: cannot be 320 with {ENGLISH}; give 160 or 560, or set model to {POLYGLOT}")
        if self.model == ENGLISH and self.detect_language:
            raise ValueError(f"detect_language: {ENGLISH} hears English alone; set model to {POLYGLOT}")

    def dtype_on(self, device: str) -> str:
        """torch's name of the type in which it computes on "cpu", "cuda:1"."""
        if self.dtype == "auto":
            return "float32" if device == "cpu" else "bfloat16"
        return self.dtype


RAY = "ray"
"""vLLM's executor that has Ray start the processes on other hosts."""
SIZES = ("pipeline_parallel_size", "prefill_context_parallel_size", "data_parallel_size", "nnodes")
"""Arguments of vLLM's that multiply its processes, or divide them among hosts."""


class VllmConfig(Section, frozen=True):
    """vLLM, by its own names."""

    model: str = ""
    """A directory, or a model's name on the hub."""
    tensor_parallel_size: Positive = 1
    """GPUs that share each layer; the first ones that this process sees."""
    max_model_len: Annotated[int, Meta(ge=256)] = 8192
    """Tokens of a prompt and its reply."""
    kv_cache_memory_bytes: Count = 0
    """Bytes of each GPU for the conversations of calls; 0: what `args.gpu_memory_utilization` leaves, on a GPU of its
    own."""
    tool_call_parser: str = ""
    """vLLM's name for how the model writes tool calls ("hermes", "llama3_json"); empty: tools are not offered to it."""
    temperature: Temperature = 0.0
    max_tokens: Positive = 512
    """Tokens of a reply for which nothing sets another limit."""
    start_timeout_s: Timeout = 600
    """Seconds for loading, compiling and warming up; then the start is given up with a hint."""
    stall_s: Stall = 10
    """Seconds without a token of any reply, beyond 2 ms for each character of the prompts."""
    lora: dict[str, str] = {}
    """LoRA adapters of the model: the name that an agent gives as its `model`, and the adapter's directory."""
    args: dict[str, Any] = {}
    """Every other engine argument of vLLM, unchanged."""

    def __post_init__(self) -> None:
        for name in self.lora:
            if name == self.model or not name.strip():
                raise ValueError(f"lora.{name}: give the adapter a name of its own, other than the model's")
        for name in SIZES:
            if type(size := self.args.get(name, 1)) is not int or size < 1:
                raise ValueError(f"args.{name}: cannot be {size!r}; give a whole number from 1 on")
        if self.hosts > 1:
            self._check_hosts()

    def _check_hosts(self) -> None:
        """Raises ValueError: this host cannot be the first of several."""
        if self.by_ray:
            raise ValueError("args.nnodes: leave it out; Ray finds its hosts by itself")
        if "master_addr" not in self.args:
            raise ValueError("args.master_addr: is missing; give this host's address, as the other hosts see it")
        if self.args.get("node_rank", 0) != 0:
            raise ValueError(
                "args.node_rank: leave it out; the PoP's host is the first, and the others run `vllm serve --headless`"
            )
        if self.processes % self.hosts:
            raise ValueError(
                f"args.nnodes: {self.processes} processes (tensor_parallel_size and what multiplies it in args) cannot "
                f"be divided among {self.hosts} hosts"
            )

    def lacks_model(self, agent: str, model: str) -> str:
        """Why no model answers the agent that names `model` as its own, and what helps; empty: one does."""
        known = (self.model, *self.lora)
        if not model or model in known:
            return ""
        return f"Agent {agent}: model: there is no vllm.lora.{model}; allowed: {', '.join(known)}"

    @property
    def processes(self) -> int:
        """Processes that share one copy of the model, each with a GPU."""
        each = ("pipeline_parallel_size", "prefill_context_parallel_size")
        return math.prod((self.tensor_parallel_size, *(int(self.args.get(name, 1)) for name in each)))

    @property
    def hosts(self) -> int:
        """Hosts among which vLLM divides them without Ray; this one is the first."""
        return int(self.args.get("nnodes", 1))

    @property
    def by_ray(self) -> bool:
        """Whether Ray starts them, and chooses the hosts."""
        return bool(self.args.get("distributed_executor_backend") == RAY)

    @property
    def revision(self) -> str:
        """Branch, tag or commit of the model on the hub; empty: its main branch."""
        return str(self.args.get("revision") or "")


OMITTED = ("temperature", "max_tokens", "max_completion_tokens", "tool_choice")
"""Fields of a request that a server of the OpenAI kind can do without."""


class OpenAiConfig(Section, frozen=True):
    """A server of the OpenAI kind on this host: vLLM's own, SGLang, llama.cpp, TensorRT-LLM."""

    base_url: str = ""
    model: str = ""
    """The model's name there; empty: the only one that the server has."""
    api_key_env: Variable = ""
    """The environment variable that holds the key, ..."""
    api_key_file: str = ""
    """... or the file that does; both empty: it asks for none."""
    api_key = SecretPair()
    temperature: Temperature = 0.0
    max_tokens: Count = 512
    """Tokens of a reply for which nothing sets another limit; 0: no limit is sent."""
    timeout_ms: Ms = 10_000
    """Time to the first token, and from one to the next."""
    thinks_first: bool = False
    """Replies begin with thoughts that no tag opens, since the model's template has opened it: they are held until it
    is closed."""
    body: dict[str, Any] = {}
    """More fields of each request, unchanged."""
    omit: tuple[str, ...] = ()
    """Fields of ours that the server does not take: they are not sent."""

    def __post_init__(self) -> None:
        check_pairs(self)
        check_url("base_url", self.base_url, "http://127.0.0.1:8000/v1")
        for field in self.omit:
            if field not in OMITTED:
                raise ValueError(f"omit: cannot have {field!r}; allowed: {', '.join(OMITTED)}")


class EspeakConfig(Section, frozen=True):
    """espeak-ng, which has no settings but its voice."""

    voice: str = "en-us"
    words_per_minute: Annotated[int, Meta(ge=80, le=450)] = 165


class KokoroConfig(Section, frozen=True):
    """kokoro-onnx."""

    model: str = "kokoro-v1.0.onnx"
    """File."""
    voices: str = "voices-v1.0.bin"
    """File."""
    voice: str = "af_heart"
    device: Device = "auto"
    threads: Count = 0
    """Threads on a CPU; 0: one a core."""
    workers: Positive = 2
    """Phrases that are made at a time, by one session: on a CPU they share its threads."""
    stall_s: Stall = 10
    """Seconds beyond 0.2 s for each character of the phrase."""


class RecordedVoice(Section, frozen=True):
    """The voice of a person, whom NeuTTS imitates by a recording."""

    file: str = ""
    """WAV: 3 to 15 s of one person in a quiet room."""
    text: str = ""
    """The words of the recording, exactly."""
    consent: str = ""
    """Who consented to the use of this voice, and when. It is written for people; nobody checks it."""
    language: str = "en-us"
    """BCP 47, as espeak-ng knows it; NeuTTS-Air was trained on English."""

    def __post_init__(self) -> None:
        if not self.consent.strip():
            raise ValueError(
                'consent: write who consented to the use of this voice, and when, as "Anna Example, 3 May 2026"'
            )
        for key in ("file", "text"):
            if not getattr(self, key).strip():
                raise ValueError(f"{key}: a voice needs a recording (file) and what is said in it (text)")


class NeuttsConfig(Section, frozen=True):
    """NeuTTS-Air: a language model in vLLM, and its codec by transformers."""

    model: str = "neuphonic/neutts-air"
    """A directory, or a model's name on the hub."""
    codec: str = "neuphonic/neucodec"
    """A directory, or its name on the hub."""
    voice: str = ""
    """One of `voices`; empty: the first."""
    device: Device = "auto"
    kv_cache_memory_bytes: Annotated[int, Meta(ge=1)] = 1_073_741_824
    """Bytes for vLLM: 12 KiB a token, so that 40 phrases are made at a time, each with 2048 tokens."""
    max_model_len: Annotated[int, Meta(ge=256)] = 2048
    """Tokens of a recording and of a phrase: 50 for each second."""
    temperature: Temperature = 1.0
    start_timeout_s: Timeout = 600
    """Seconds for loading, compiling, reading the recordings and warming up."""
    stall_s: Stall = 10
    """Seconds without a token of any phrase, beyond 2 ms for each character; and seconds for decoding a phrase."""
    args: dict[str, Any] = {}
    """Every other engine argument of vLLM, unchanged."""
    voices: dict[str, RecordedVoice] = {}
    """The voices by their names."""

    def __post_init__(self) -> None:
        if self.voice and self.voice not in self.voices:
            known = ", ".join(self.voices) or "none"
            raise ValueError(f"voice: there is no [neutts.voices.{self.voice}]; there are: {known}")


class CoquiConfig(Section, frozen=True):
    """coqui-tts, in a process and an environment of its own."""

    python: str = ""
    """The interpreter that has coqui-tts, e.g. ".venv-coqui/bin/python"."""
    model: str = ""
    """A directory with config.json and a checkpoint (*.pth)."""
    voice: str = ""
    """A speaker of the model; empty: its first."""
    device: Device = "auto"
    workers: Positive = 1
    """Processes, each with the model; one makes one phrase at a time."""
    start_timeout_s: Timeout = 120
    stall_s: Stall = 30
    """Seconds for a phrase, which has up to 300 letters."""


class ScriptedConfig(Section, frozen=True):
    """Scripted engines, which are for timing: the words that they recognise do not depend on the sound."""

    hears: tuple[str, ...] = ("hello",)
    """The words of the n-th utterance since the start, over and over; a word every 250 ms."""


class DelaysConfig(Section, frozen=True):
    """Delays that are added to each engine's own time, as GPU engines would need. For measurements and tests."""

    asr_ms: Ms = 0
    first_token_ms: Ms = 0
    token_ms: Ms = 0
    tts_ms: Ms = 0
