"""Which engines are measured here: the real ones that can be used, stand-ins for the others."""

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from voicepipe.bench.engines.play import Engines
from voicepipe.bench.engines.readings import Readings
from voicepipe.bench.engines.shapes import ASRS, LLMS, TTSS
from voicepipe.errors import ConfigError, EngineMissing

if TYPE_CHECKING:
    from voicepipe.bench.engines.stages import Asr, Llm, Tts
    from voicepipe.bench.engines.standins.device import Device

Shape = TypeVar("Shape")


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


def shape_of(kind: str, shapes: dict[str, Shape], name: str) -> Shape:
    """Raises ConfigError."""
    if name not in shapes:
        raise ConfigError(f"{kind} {name}: no such shape; there are {', '.join(shapes)}.")
    return shapes[name]


def device_of(options: Options) -> "Device":
    """Raises EngineMissing, ConfigError."""
    try:
        from voicepipe.bench.engines.standins.device import Device
    except ImportError as error:
        raise EngineMissing(
            f"bench engines needs torch ({error}): pip install torch, in an environment of its own."
        ) from None
    return Device(options.device)


async def loaded(options: Options, device: "Device", stack: ExitStack) -> Engines:
    """Warm engines, closed by the stack. Raises ConfigError, EngineMissing."""
    llm, asr, tts = _llm(options, device), _asr(options, device), _tts(options, device)
    for engine in (llm, asr, tts):
        stack.callback(engine.close)
    return Engines(asr, llm, tts)


def _llm(options: Options, device: "Device") -> "Llm":
    from voicepipe.bench.engines.standins.llm import TorchLlm

    shape = shape_of("--shape", LLMS, options.llm)
    return TorchLlm(options.llm, shape, max(options.calls), device)


def _asr(options: Options, device: "Device") -> "Asr":
    from voicepipe.bench.engines.standins.asr import TorchAsr

    shape = shape_of("--asr-shape", ASRS, options.asr)
    engine = TorchAsr(shape, options.window_s, device)
    precision = str(device.half).removeprefix("torch.")
    name = f"stand-in: Whisper {options.asr} in torch, {precision}, windows of {options.window_s} s"
    return Readings(name, shape.weights, engine.read)


def _tts(options: Options, device: "Device") -> "Tts":
    from voicepipe.bench.engines.standins.tts import TorchTts

    return TorchTts(options.tts, shape_of("--tts-shape", TTSS, options.tts), device)
