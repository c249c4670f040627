"""Which engines are measured here: the real ones that can be used, stand-ins for the others."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

from voicepipe.bench.engines.play import PlayedEngines
from voicepipe.bench.engines.readings import Readings
from voicepipe.bench.engines.shapes import TINY, TINY_LLM, TTSS
from voicepipe.errors import ConfigError, EngineError, EngineMissing
from voicepipe.sizing.shapes import ASRS, LLMS

if TYPE_CHECKING:
    from voicepipe.bench.engines.stages import AsrStage, LlmStage, TtsStage
    from voicepipe.bench.engines.standins.device import Device

LONGEST_S = 30
NEMOTRONS = {"nemotron": False, "nemotron-tiny": True}
"""Names of `--asr-shape` besides Whisper's sizes: the recogniser that streams, and a small one for trials."""
Shape = TypeVar("Shape")
Progress = Callable[[str], None]
"""Told what is done next."""


@dataclass(frozen=True)
class Options:
    """What is to be measured."""

    llm: str
    asr: str
    tts: str
    calls: tuple[int, ...]
    seconds: float
    window_s: int
    """Seconds that a pass of ASR hears, whatever the utterance has."""
    device: str
    standins: bool
    """Nothing but stand-ins, whatever is installed."""
    seed: int


def device_of(options: Options) -> "Device":
    """Raises EngineMissing, ConfigError."""
    if not 1 <= options.window_s <= LONGEST_S:
        raise ConfigError(f"--asr-window {options.window_s}: Whisper hears from 1 to {LONGEST_S} seconds.")
    if options.seconds < 1:
        raise ConfigError(f"--seconds {options.seconds:g}: a run takes 1 second or more.")
    try:
        from voicepipe.bench.engines.standins.device import Device
    except ImportError as error:
        raise EngineMissing(
            f"bench engines needs torch ({error}): pip install torch, in an environment of its own."
        ) from None
    return Device(options.device)


async def loaded(options: Options, device: "Device", stack: ExitStack, progress: Progress) -> PlayedEngines:
    """Warm engines, closed by the stack; the LLM first: vLLM counts free memory. Raises ConfigError, EngineError."""
    llm = await _llm(options, device, progress)
    stack.callback(llm.close)
    asr = _asr(options, device, progress)
    stack.callback(asr.close)
    tts = _tts(options, device, progress)
    stack.callback(tts.close)
    return PlayedEngines(asr, llm, tts)


async def _llm(options: Options, device: "Device", progress: Progress) -> "LlmStage":
    from voicepipe.bench.engines.standins.llama import KINDS

    known = {name: shape for name, shape in LLMS.items() if shape.kind in KINDS}
    shape, calls = _shape("--shape", known | {TINY: TINY_LLM}, options.llm), max(options.calls)
    if not options.standins and find_spec("vllm"):
        from voicepipe.bench.engines.vllm import BenchVllm

        if device.torch.index:
            raise ConfigError(
                f"--device {device.torch}: vLLM takes the first GPU that it sees; leave --device out and set the "
                f"environment variable CUDA_VISIBLE_DEVICES={device.torch.index}, or measure with --stand-ins."
            )
        progress(f"LLM: {options.llm}, by vLLM")
        served = BenchVllm(options.llm, shape, calls, cuda=device.cuda)
        await served.warm()
        return served
    from voicepipe.bench.engines.standins.llm import TorchLlm

    progress(f"LLM: {options.llm}, by a stand-in")
    return TorchLlm(options.llm, shape, calls, device)


def _asr(options: Options, device: "Device", progress: Progress) -> "AsrStage":
    if options.asr in NEMOTRONS:
        from voicepipe.bench.engines.nemotron import WEIGHTS, NemotronReader

        progress(f"ASR: {options.asr}, by transformers")
        streaming = NemotronReader(tiny=NEMOTRONS[options.asr], device=str(device.torch))
        title = f"transformers {version('transformers')}: {options.asr}, a chunk of 160 ms for each partial"
        return Readings(title, WEIGHTS, streaming.read)
    shape = _shape("--asr-shape", ASRS, options.asr)
    name = f"Whisper {options.asr} with windows of {options.window_s} s"
    if not options.standins and find_spec("faster_whisper"):
        from voicepipe.bench.engines.whisper import WhisperReader

        progress(f"ASR: {name}, by faster-whisper")
        try:
            reader = WhisperReader(shape, options.window_s, device=str(device.torch))
        except EngineError as error:
            progress(f"ASR: {error}")
        else:
            return Readings(f"faster-whisper {version('faster-whisper')}: {name}", shape.weights, reader.read)
    from voicepipe.bench.engines.standins.asr import TorchAsr

    progress(f"ASR: {name}, by a stand-in")
    standin = TorchAsr(shape, options.window_s, device)
    return Readings(f"stand-in: {name} in torch, {device.named(device.half)}", shape.weights, standin.read)


def _tts(options: Options, device: "Device", progress: Progress) -> "TtsStage":
    from voicepipe.bench.engines.standins.tts import TorchTts

    progress(f"TTS: {options.tts}, by a stand-in")
    return TorchTts(options.tts, _shape("--tts-shape", TTSS, options.tts), device)


def _shape(option: str, shapes: Mapping[str, Shape], name: str) -> Shape:
    if name not in shapes:
        raise ConfigError(f"{option} {name}: there is no such shape; choose one of {', '.join(shapes)}.")
    return shapes[name]
