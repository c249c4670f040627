"""Speech synthesis by NeuTTS-Air: its language model in vLLM's process, its codec and its phonemes on threads of ours.

It streams: sound comes while the rest of a phrase is still being made.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from voicepipe.base.errors import EngineDead, EngineError, EngineMissing, VoicepipeError
from voicepipe.base.worker import Worker
from voicepipe.config.engine_config import NeuttsConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.gpu_placement import device_index
from voicepipe.engines.hosting.failures import HELLO
from voicepipe.engines.hosting.supervised import IN_PROCESS, SupervisedEngine
from voicepipe.engines.llm.vllm import process
from voicepipe.engines.llm.vllm.arguments import voice_arguments
from voicepipe.engines.llm.vllm.process import VllmProcess
from voicepipe.engines.llm.vllm.reading import check
from voicepipe.engines.llm.vllm.start import EngineStart, hung
from voicepipe.engines.tts.espeak import Phonemizer
from voicepipe.engines.tts.neutts import prompt
from voicepipe.engines.tts.neutts.decoding import CodecBatches
from voicepipe.engines.tts.neutts.phrase_sound import PhraseSound, gain
from voicepipe.engines.tts.neutts.prompt import PromptWriter, Recording
from voicepipe.engines.tts.neutts.windows import EVERY, MOST, CodeWindows, Sound
from voicepipe.engines.tts.shaping import pause_after, pieces
from voicepipe.engines.weights import needed_models

if TYPE_CHECKING:
    from vllm.v1.engine.async_llm import AsyncLLM

    from voicepipe.engines.tts.neutts.codec import NeuCodec

log = logging.getLogger(__name__)
RATE = 24_000
TOP_K = 50
"""The likeliest codes, among which one is drawn: NeuTTS's own."""
FIRST, LATER = 0, 1
"""vLLM's scheduler serves the lower first."""
WARMING = (HELLO, "A table for two, on Friday at seven.")
ENDED = "NeuTTS's codec failed, and the voice is being loaded again: see the log."


@dataclass(frozen=True, slots=True)
class ReferenceVoice:
    """A voice that NeuTTS speaks with: a person's, by a recording of theirs."""

    recording: Recording
    language: str
    """The language, as espeak-ng names it."""
    gain: float
    """Factor that brings the codec's sound to the level of all phrases."""
    letters: int
    """A text that lasts longer than so many letters is spoken in pieces."""


@dataclass(frozen=True, slots=True)
class VoiceParts:
    """The parts of the NeuTTS engine beside vLLM: codec, phonemes, prompts and voices. They are loaded on a thread."""

    codec: "NeuCodec"
    phonemizer: Phonemizer
    writer: PromptWriter
    voices: Mapping[str, ReferenceVoice]


class NeuTts(SupervisedEngine["NeuttsProcess"]):
    """The voice engine `neutts`. Implements `base.Tts` and `base.ReadsIpa`. Voices are those of `[neutts.voices]`."""

    rate = RATE

    def __init__(self, config: NeuttsConfig) -> None:
        super().__init__("speech synthesis", partial(_load, config), IN_PROCESS, start_s=None)
        self._default = config.voice

    async def start(self) -> None:
        """Load both models, read the recordings and speak a little. Raises EngineMissing: vLLM, a model or a recording
        is not there; EngineError."""
        await super().start()
        self.rate = self.core.rate

    def voices(self) -> Mapping[str, str]:
        return self.last.languages if self.last else {}

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked if asked in self.voices() else self._default or next(iter(self.voices()), "")

    def reads_ipa(self, voice: str) -> bool:
        return True

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, as it is made: 0.16 s at first, then more at a time; `speed` 0.5..2. Raises EngineError,
        EngineDead while it is loaded again."""
        async with aclosing(self.core.speak(text, voice, min(2.0, max(0.5, speed)), first=first)) as said:
            async for speech in said:
                yield speech


class NeuttsProcess(VllmProcess):
    """NeuTTS's model in vLLM's process, with its codec and its phonemes on threads of ours. Implements
    `supervised.Core`."""

    def __init__(self, config: NeuttsConfig, built: "tuple[AsyncLLM, VoiceParts]", start: EngineStart[Any]) -> None:
        llm, parts = built
        super().__init__("speech synthesis", llm, start, config.stall_s)
        self._config = config
        self._parts: VoiceParts | None = parts
        self._reading = Worker("phonemes", nice=0)
        self._decoding = CodecBatches(Worker("codec"), parts.codec.decode, config.stall_s)
        self.languages = {name: voice.language for name, voice in parts.voices.items()}
        self.rate = parts.codec.rate

    @property
    def errored(self) -> bool:
        """Whether vLLM's process has ended or hangs, a thread of ours hangs, or requests failed repeatedly."""
        return super().errored or self.hung

    @property
    def hung(self) -> bool:
        return self._decoding.worker.overdue() or self._reading.overdue()

    @property
    def parts(self) -> VoiceParts:
        """The parts beside vLLM. Raises EngineDead."""
        if self._parts is None:
            raise EngineDead(ENDED)
        return self._parts

    async def small(self) -> None:
        await self.warm((HELLO,))

    async def warm(self, texts: Sequence[str] = WARMING) -> None:
        """Speak some texts to nobody. Raises EngineError."""
        for text in texts:
            async with aclosing(self.speak(text, "", 1.0, first=True)) as said:
                async for _ in said:
                    pass

    async def close(self) -> None:
        self._parts = None
        self._reading.close(EngineDead(ENDED))
        self._decoding.close(ENDED)
        await super().close()

    async def speak(self, text: str, voice: str, speed: float, *, first: bool) -> AsyncGenerator[Speech, None]:
        """Speech as it is made. Raises EngineDead, EngineBusy, EngineError. Closing it aborts what is made."""
        parts = self.parts
        default = self._config.voice or next(iter(parts.voices))
        its = parts.voices.get(voice, parts.voices[default])
        spoken, going_on = pieces(text, its.letters), False
        for number, piece in enumerate(spoken, 1):
            with self.explained():
                async with aclosing(
                    self._said(parts, piece, its, speed, first=first, more=number < len(spoken))
                ) as said:
                    async for speech in said:
                        if speech.pcm.size:
                            going_on = speech.more
                            yield speech
            first = False
        if going_on:  # Of its last piece nothing was heard.
            yield Speech(pause_after(text, self.rate))

    async def _said(
        self, parts: VoiceParts, text: str, voice: ReferenceVoice, speed: float, *, first: bool, more: bool
    ) -> AsyncGenerator[Speech, None]:
        """Speak one piece of a text; `more`: other pieces follow."""
        write = partial(_written, parts, text, voice)
        written = await self._reading.ask(write, urgent=first, within_s=self._config.stall_s)
        if written is None:
            return
        room = self._config.max_model_len - len(written)
        most = prompt.longest(text, voice.recording, room)
        codec, codes = parts.codec, list(voice.recording.codes)
        recorded = len(codes)
        letter_samples = voice.recording.letter_codes * codec.hop
        saying = PhraseSound(text, codec.rate, codec.hop, voice.gain, letter_samples, speed)
        windows = CodeWindows(recorded)
        request = self._request(written, most, parts.writer.ends)
        async with aclosing(self.outputs(*request, FIRST if first else LATER, len(text))) as outputs:
            async for output in outputs:
                codes += self._read(output, parts.writer)
                if output.finished and len(codes) == recorded:
                    raise self._failed("NeuTTS said nothing: neutts.model may be another kind of model.")
                for window in windows.due(len(codes), ended=output.finished):
                    part, use = codes[window.begin : window.end], partial(saying.push, window)
                    speech = await self._decoded(part, use, first=first)
                    first = first and not speech.pcm.size
                    yield speech
                if saying.over:
                    break
        if len(codes) - recorded >= most:
            log.info("a phrase of %d characters was ended after %d codes: the voice went on and on", len(text), most)
        yield saying.end(more=more)

    def _request(self, written: list[int], most: int, ends: int) -> tuple[Any, Any]:
        from vllm import SamplingParams
        from vllm.inputs import tokens_input
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=self._config.temperature, top_k=TOP_K, max_tokens=most, min_tokens=min(most, prompt.LEAST),
            stop_token_ids=[ends], detokenize=False, stream_interval=EVERY, output_kind=RequestOutputKind.DELTA,
        )  # fmt: skip
        return tokens_input(written), params

    def _read(self, output: Any, writer: PromptWriter) -> list[int]:
        try:
            check(output.outputs[0])
        except EngineError as error:
            raise self._failed(str(error)) from None
        return writer.codes(output.outputs[0].token_ids)

    async def _decoded(self, codes: list[int], use: Callable[[Sound], Speech], *, first: bool) -> Speech:
        try:
            return await self._decoding.ask(codes, use, first=first)
        except VoicepipeError:
            raise
        except Exception as error:
            raise self._failed(f"NeuTTS's codec failed: {error!r}") from error

    def _failed(self, said: str) -> EngineError:
        """It is the engine's failure; in a row they are its end."""
        self._liveness.failed()
        return EngineError(said)


def _written(parts: VoiceParts, text: str, voice: ReferenceVoice) -> list[int] | None:
    """The prompt; None: there is nothing to say."""
    phonemes = parts.phonemizer.phonemes(text, voice.language)
    if not any(sign.isalpha() for sign in phonemes):
        return None
    return parts.writer.written(voice.recording, phonemes)


async def _load(config: NeuttsConfig) -> NeuttsProcess:
    """A voice that has said something. Raises EngineError; then, and when cancelled, its processes are gone."""
    if not config.voices:
        raise EngineError("NeuTTS has no voice: add a table [neutts.voices.NAME] with a recording.")
    args = await asyncio.to_thread(_arguments, config)
    late = partial(hung, "neutts", config.start_timeout_s)
    return await process.started(
        partial(_build, config, args), partial(NeuttsProcess, config), NeuttsProcess.warm, config.start_timeout_s, late
    )


def _arguments(config: NeuttsConfig) -> dict[str, Any]:
    """The arguments of AsyncEngineArgs; imports vLLM, which takes seconds. Raises EngineError."""
    for model in needed_models.neutts(config):
        if problem := model.problem():
            raise EngineMissing(problem)
    process.prepare(config.start_timeout_s)
    from dataclasses import fields

    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.platforms import current_platform

    if current_platform.is_cpu() != (config.device == "cpu"):
        computes = "the CPU" if current_platform.is_cpu() else "GPUs"
        raise EngineError(f"neutts.device is {config.device!r}, and the vLLM that is installed computes on {computes}.")
    known = {field.name for field in fields(AsyncEngineArgs)}
    return voice_arguments(config, str(_local(config, "neutts.model")), device_index(config.device), known)


def _local(config: NeuttsConfig, key: str) -> Path:
    return next(model.local() for model in needed_models.neutts(config) if model.key == key)


def _build(config: NeuttsConfig, args: dict[str, Any]) -> "tuple[AsyncLLM, VoiceParts]":
    """Blocks until both models are loaded and the recordings are read. Raises EngineError."""
    parts = _parts(config)
    return process.build(args, stats=False), parts


def _parts(config: NeuttsConfig) -> VoiceParts:
    from voicepipe.engines.tts.neutts.codec import NeuCodec, recorded

    codec = NeuCodec(_local(config, "neutts.codec"), config.device)
    phonemizer = Phonemizer()
    writer = PromptWriter(_local(config, "neutts.model"), codec.codes)
    codes = {
        name: codec.encode(recorded(f"neutts.voices.{name}.file", Path(voice.file)))
        for name, voice in config.voices.items()
    }
    codec.only_decode()
    voices = {}
    for name, voice in config.voices.items():
        try:
            phonemes = phonemizer.phonemes(voice.text, voice.language)
        except EngineError as error:
            raise EngineError(f"neutts.voices.{name}.language: {error}") from None
        recording = prompt.recording(voice.text, phonemes, codes[name])
        sound = np.concatenate(
            [codec.decode([codes[name][at : at + MOST]])[0] for at in range(0, len(codes[name]), MOST)]
        )
        most = writer.letters_at_a_time(f"neutts.voices.{name}", recording, config.max_model_len)
        voices[name] = ReferenceVoice(recording, voice.language, gain(sound), most)
    return VoiceParts(codec, phonemizer, writer, voices)
