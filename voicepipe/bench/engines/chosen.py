"""Which engines are measured here: those of a configuration, or of shapes. Of shapes the real ones that can be used,
stand-ins for the others."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from voicepipe.bench.engines.play import PlayedEngines
from voicepipe.bench.engines.shapes import TINY, TINY_LLM, TTSS
from voicepipe.bench.engines.stages import AsrStage, LlmStage
from voicepipe.errors import ConfigError, EngineMissing
from voicepipe.sizing.shapes import ASRS, LLMS

if TYPE_CHECKING:
    from voicepipe.bench.engines.standins.device import Device

LONGEST_S = 30
LARGE = 1_000_000_000
"""Weights of a language model with which a CPU is busy for minutes."""
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
    """Of each number of calls, with idle gaps and without them."""
    window_s: int
    """Seconds that a pass of ASR hears, whatever the utterance has."""
    device: str
    standins: bool
    """Nothing but stand-ins, whatever is installed."""
    seed: int
    config: Path | None = None
    """The engines of this configuration, in place of shapes."""
    rounds: int = 3
    """In which `seconds` are spent."""
    kinds: tuple[bool, ...] = (True, False)
    """With idle gaps (True), without them."""
    budget_ms: float = 300.0
    """A turn that takes longer is late."""


def checked(options: Options) -> None:
    """Raises ConfigError."""
    if not 1 <= options.window_s <= LONGEST_S:
        raise ConfigError(f"--asr-window {options.window_s}: Whisper hears from 1 to {LONGEST_S} seconds.")
    if options.seconds < 1:
        raise ConfigError(f"--seconds {options.seconds:g}: a run takes 1 second or more.")


def device_of(options: Options) -> "Device":
    """Where stand-ins run. Raises EngineMissing, ConfigError."""
    try:
        from voicepipe.bench.engines.standins.device import Device
    except ImportError as error:
        raise EngineMissing(
            f"bench engines needs torch for models of true shape ({error}): the environment of pops/gpu.md has it, "
            "by vLLM (elsewhere: pip install torch); or measure a configuration's engines: --config FILE."
        ) from None
    return Device(options.device)


@asynccontextmanager
async def loaded(options: Options, device: "Device", progress: Progress) -> AsyncIterator[PlayedEngines]:
    """Warm engines of true shapes; the LLM first: vLLM counts free memory. Raises ConfigError, EngineError."""
    from voicepipe.bench.engines.standins.llama import KINDS

    known = {name: shape for name, shape in LLMS.items() if shape.kind in KINDS} | {TINY: TINY_LLM}
    llm, asr = _shape("--shape", known, options.llm), _shape("--asr-shape", ASRS, options.asr)
    tts = _shape("--tts-shape", TTSS, options.tts)
    if said := slow(llm.weights, cuda=device.cuda):
        progress(said)
    async with AsyncExitStack() as stack:
        real = PlayedEngines()
        if not options.standins and (find_spec("vllm") or find_spec("faster_whisper")):
            from voicepipe.bench.engines.shaped import shaped

            real = await stack.enter_async_context(shaped(options, llm, asr, device, progress))
        from voicepipe.bench.engines.standins import stages

        language: LlmStage | None = real.llm
        if language is None:
            progress(f"LLM: {options.llm}, by a stand-in in a process of its own")
            language = await stages.language(options, llm)
            stack.callback(language.close)
        hearing: AsrStage | None = real.asr
        if hearing is None:
            progress(f"ASR: Whisper {options.asr} with windows of {options.window_s} s, by a stand-in")
            hearing = stages.recogniser(options, asr, device)
            stack.callback(hearing.close)
        progress(f"TTS: {options.tts}, by a stand-in")
        voice = stages.voice(options, tts, device)
        stack.callback(voice.close)
        yield PlayedEngines(hearing, language, voice)


def noise() -> Any:
    """Ten seconds that random weights hear as well as speech: int16 at 16 kHz."""
    import numpy as np

    return np.random.default_rng(0).integers(-3000, 3000, 160_000, np.int16)


def slow(weights: int, *, cuda: bool) -> str:
    """What a language model of so many weights takes where there is no GPU, in 32 bits; empty: it is small."""
    if cuda or weights < LARGE:
        return ""
    size = f"{weights / 1e9:.0f} billion weights on a CPU: {weights * 4 / 1e9:.0f} GB of memory"
    return f"{size}, and minutes before the first figure; --tiny is a trial"


def _shape(option: str, known: Mapping[str, Shape], name: str) -> Shape:
    if name not in known:
        near = get_close_matches(name.lower(), known, 1)
        hint = f"did you mean {near[0]}? Or " if near else ""
        raise ConfigError(f"{option} {name}: there is no such shape; {hint}choose one of {', '.join(known)}.")
    return known[name]
