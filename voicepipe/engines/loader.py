"""Configuration -> loaded engines. Adapters are imported only when they are chosen: their libraries are heavy."""

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from voicepipe.base.errors import EngineMissing, cause
from voicepipe.config import Config
from voicepipe.config.credentials import secret_of
from voicepipe.config.engine_config import DelaysConfig
from voicepipe.engines import gpu_placement, packages
from voicepipe.engines.base import Asr, Engine, Engines, Llm, Prompt, Tts, TurnModel, Vad
from voicepipe.engines.hosting import gpus
from voicepipe.engines.needs import needs
from voicepipe.engines.weights import needed_models

log = logging.getLogger(__name__)
ONNX_WITH_CUDA = "pip uninstall -y onnxruntime onnxruntime-gpu, then pip install onnxruntime-gpu"
"""What to do where onnxruntime has no CUDA."""


@asynccontextmanager
async def loaded(config: Config, prompts: Sequence[Prompt] = ()) -> AsyncIterator[Engines]:
    """The configured engines, warm; closed when the context ends. Raises EngineError.

    `prompts`: how the prompts begin that the language model will get.
    """
    engines = choose(await asyncio.to_thread(placed, config))
    async with AsyncExitStack() as closing:
        for engine in engines.all():
            closing.push_async_callback(engine.close)
        await _start(engines, prompts)
        _freeze()
        closing.callback(gc.unfreeze)
        yield engines


async def _start(engines: Engines, prompts: Sequence[Prompt]) -> None:
    async def start(engine: Engine) -> None:
        await engine.start()
        if engine is engines.llm:
            for prompt in prompts:
                await engines.llm.warm(prompt)

    try:
        async with asyncio.TaskGroup() as group:
            for engine in engines.all():
                group.create_task(start(engine))
    except ExceptionGroup as errors:
        # Not by `except*`: before Python 3.11.4 what is raised there comes wrapped.
        raise cause(errors) from None


def _freeze() -> None:
    """Leave what loading made out of every garbage collection to come: a full one reads all objects of the process
    while no call moves, and with vLLM's 650,000 that took 0.4 s. Garbage goes first, since it would stay, too."""
    gc.collect()
    gc.freeze()


def placed(config: Config) -> Config:
    """`config` with each engine's device chosen and its memory there seen to. Reads files, and has
    coqui's interpreter try its GPU, which takes seconds. Raises EngineError;
    EngineMissing with a line for each package and model that is not here."""
    if missing := [*packages.problems(config), *needed_models.problems(config)]:
        raise EngineMissing("\n".join(missing))
    if not gpu_placement.uses_gpus(config):
        return config
    machine = gpus.read()
    chosen = gpu_placement.place(config, len(machine.gpus))
    named = {config.engines.asr, config.engines.tts}
    auto = [name for name in gpu_placement.PLACED if name in named and getattr(config, name).device == "auto"]
    if auto and not machine.gpus:
        log.warning("NVIDIA's driver shows no GPU on this machine; on the CPU runs: %s", ", ".join(auto))
    if machine.gpus:
        chosen = gpu_placement.place(config, len(machine.gpus), tuple(_without_cuda(config, chosen)))
        gpu_placement.check(list(needs(chosen)), machine.gpus)
    return chosen


def _without_cuda(config: Config, chosen: Config) -> Iterator[str]:
    """Tables whose engine is to choose its device and cannot use the GPU that was `chosen`, as it is here: onnxruntime
    comes with CUDA and without, and coqui-tts's environment has a torch of its own."""
    if kokoro_lacks_cuda(config):
        log.warning("kokoro runs on the CPU, since this onnxruntime has no CUDA; for a GPU: %s", ONNX_WITH_CUDA)
        yield "kokoro"
    if config.engines.tts == "coqui" and config.coqui.device == "auto":
        from voicepipe.engines.tts.coqui import without_cuda

        if why := without_cuda(chosen.coqui):
            log.warning("coqui runs on the CPU, since the torch of coqui.python cannot use its GPU: %s", why)
            yield "coqui"


def kokoro_lacks_cuda(config: Config) -> bool:
    """Whether it would choose the CPU also where there is a GPU."""
    if config.engines.tts != "kokoro" or config.kokoro.device != "auto":
        return False
    from voicepipe.engines.tts.kokoro import has_cuda

    return not has_cuda()


def choose(config: Config) -> Engines:
    """The configured engines, not started yet."""
    engines = Engines(_vad(config), _asr(config), _llm(config), _tts(config), _turn(config))
    if config.delays == DelaysConfig():
        return engines
    from voicepipe.engines.delayed import delayed

    return delayed(engines, config.delays)


def _vad(config: Config) -> Vad:
    if config.engines.vad == "scripted":
        from voicepipe.engines.scripted import ScriptedVad

        return ScriptedVad()
    from voicepipe.engines.vad.silero import SileroVad

    return SileroVad()


def _asr(config: Config) -> Asr:
    match config.engines.asr:
        case "scripted":
            from voicepipe.engines.scripted import ScriptedAsr

            return ScriptedAsr(config.scripted.hears)
        case "whisper":
            from voicepipe.engines.asr.whisper import WhisperAsr

            return WhisperAsr(config.whisper)
        case "nemotron":
            from voicepipe.engines.asr.nemotron.nemotron import NemotronAsr

            return NemotronAsr(config.nemotron)


def _llm(config: Config) -> Llm:
    match config.engines.llm:
        case "scripted":
            from voicepipe.engines.scripted import ScriptedLlm

            return ScriptedLlm()
        case "vllm":
            from voicepipe.engines.llm.vllm.vllm_llm import VllmLlm

            return VllmLlm(config.vllm)
        case "openai":
            from voicepipe.engines.llm.openai import OpenAiLlm

            return OpenAiLlm(config.openai, secret_of(config, "openai.api_key"), config.tls.ca)
        case "auto":
            from voicepipe.engines.llm.auto import AutoLlm

            return AutoLlm(config.openai, secret_of(config, "openai.api_key"), ca=config.tls.ca)
        case "frontdesk":
            from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm

            return FrontdeskLlm()


def _tts(config: Config) -> Tts:
    match config.engines.tts:
        case "scripted":
            from voicepipe.engines.scripted import ScriptedTts

            return ScriptedTts()
        case "kokoro":
            from voicepipe.engines.tts.kokoro import KokoroTts

            return KokoroTts(config.kokoro)
        case "neutts":
            from voicepipe.engines.tts.neutts.neutts import NeuTts

            return NeuTts(config.neutts)
        case "coqui":
            from voicepipe.engines.tts.coqui import CoquiTts

            return CoquiTts(config.coqui)
        case "espeak":
            from voicepipe.engines.tts.espeak import EspeakTts

            return EspeakTts(config.espeak.voice, config.espeak.words_per_minute)
        case "hibari":
            from voicepipe.engines.tts.hibari import HibariTts

            return HibariTts()
        case "auto":
            from voicepipe.engines.tts.auto_voice import AutoTts

            return AutoTts(config.espeak)


def _turn(config: Config) -> TurnModel | None:
    name = needed_models.turn_model(config)
    if not name:
        return None
    from voicepipe.engines.vad.smart_turn import SmartTurn

    return SmartTurn(name)
