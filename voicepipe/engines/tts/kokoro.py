"""Speech synthesis: Kokoro by kokoro-onnx, on a CPU or a GPU.

One onnxruntime session serves all threads, so that the weights are in memory once. On a CPU several threads run it at a
time, and a run releases the GIL; on a GPU one after the other do. A phrase is one run: its first sound comes with its
last.
"""

import contextlib
import json
import threading
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnxruntime
import regex
from numpy.typing import NDArray

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.base.worker import Worker
from voicepipe.config.engine_config import KokoroConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import HELLO
from voicepipe.engines.hosting.supervised import IN_PROCESS, SupervisedEngine
from voicepipe.engines.hosting.threaded import ThreadedVoice, loaded
from voicepipe.engines.packages import INSTALLS
from voicepipe.engines.tts.espeak import Phonemizer
from voicepipe.engines.tts.shaping import letters, pieces, shape, word_starts
from voicepipe.engines.weights import hub, needed_models
from voicepipe.languages.pronunciation import MARKED

RATE = 24_000
LANGUAGES = {
    "a": "en-us", "b": "en-gb", "e": "es", "f": "fr-fr", "h": "hi", "i": "it", "j": "ja", "p": "pt-br", "z": "zh",
}  # fmt: skip
"""A voice's first letter -> its language ("af_heart": American, female)."""
NOT_IN_LATIN = frozenset({"hi", "ja", "zh"})
"""Languages of other scripts. There espeak-ng would spell a phrase in Latin letters, one letter after the other."""
LATIN = "en-us"
"""The language as which such a phrase is read, in the same voice."""
OTHER_LETTER = regex.compile(r"(?V1)[\p{L}--\p{Latin}]")
ESPEAK = {"zh": "cmn"}
"""Where espeak-ng, which writes the phonemes, calls a language otherwise."""
WARMING = ("Hello.", "A table for two, on Friday at seven.", "We are open from Tuesday to Sunday, from noon to ten.")
"""Short and long: a GPU chooses its kernels by length."""
SLOWEST = 0.2
"""Seconds that a letter may take, three times what it takes to say it: a phrase that takes longer by kokoro.stall_s
hangs."""
CUDA = "CUDAExecutionProvider"
"""onnxruntime's name of its part that computes on NVIDIA's GPUs."""


class KokoroTts(SupervisedEngine[ThreadedVoice["_KokoroModel"]]):
    """The voice engine `kokoro`. Implements `base.Tts` and `base.ReadsIpa`. Voices are the model's: "af_heart",
    "bm_george"."""

    rate = RATE

    def __init__(self, config: KokoroConfig) -> None:
        self._config = config
        super().__init__("speech synthesis", self._load, IN_PROCESS)

    def voices(self) -> Mapping[str, str]:
        return self.last.model.languages if self.last else {}

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked if asked in self.voices() else self._config.voice

    def reads_ipa(self, voice: str) -> bool:
        return True

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, one piece for each 300 letters; `speed` 0.5..2. Raises EngineError, EngineDead."""
        core = self.core
        for piece in pieces(text):
            speak = partial(core.model.speak, piece, voice, min(2.0, max(0.5, speed)))
            within_s = self._config.stall_s + SLOWEST * letters(piece)
            speech = await core.ask(speak, first=first, within_s=within_s)
            if speech.pcm.size:
                yield speech

    async def _load(self) -> "ThreadedVoice[_KokoroModel]":
        """Raises EngineMissing: the package or a file is not there; EngineError."""
        worker = Worker("kokoro", self._config.workers)
        model = await loaded(worker, partial(_KokoroModel, self._config))
        return ThreadedVoice("kokoro", worker, model, partial(model.speak, HELLO, "", 1.0), self._config.stall_s)


class _KokoroModel:
    """A loaded Kokoro model. Its methods block, and run in the worker's threads."""

    def __init__(self, config: KokoroConfig) -> None:
        try:
            # Not above: it takes a phonemizer along, half a second; nobody pays that who has other voices.
            from kokoro_onnx import Kokoro
        except ImportError as error:
            raise EngineMissing(f"kokoro is not installed ({error}): pip install {INSTALLS['kokoro_onnx']}") from None
        for model in needed_models.kokoro(config):
            if problem := model.problem():
                raise EngineMissing(problem)
        session = _session(config)
        _check(session, config.model)
        try:
            self._kokoro: Any = Kokoro.from_session(session, str(hub.local_file(config.voices, ".npz")))
            voices: Any = self._kokoro.voices  # an open file, of which each style would be unpacked for every phrase
            with voices:
                self._styles: dict[str, NDArray[np.float32]] = dict(voices)
        except Exception as error:
            raise EngineError(f"{config.voices} cannot be read as Kokoro's voices: {error}") from None
        self.languages = {name: LANGUAGES.get(name[:1], "en-us") for name in sorted(self._styles)}
        if config.voice not in self._styles:
            raise EngineError(
                f"kokoro.voice is {config.voice!r}, and {config.voices} has none of that name: "
                f"choose one of {', '.join(self.languages)}."
            )
        self._default = config.voice
        self._phonemizer = Phonemizer()
        self._phonemizing = threading.Lock()
        # onnxruntime promises that threads may share a session. Its part for CUDA has broken that more than once
        # (onnxruntime#3828, #15154), and two runs at a time gain little there.
        self._running = threading.Lock() if CUDA in session.get_providers() else contextlib.nullcontext()

    def warm(self) -> None:
        """Speak a little. Raises EngineError."""
        try:
            for text in WARMING:
                self.speak(text, "", 1.0)
        except EngineError:
            self.unload()
            raise

    def unload(self) -> None:
        """Give its memory back, at once: errors of phrases may hold the model for long. It speaks no more."""
        self._kokoro = None

    def speak(self, text: str, voice: str, speed: float) -> Speech:
        """Speak one piece, as a whole. Raises EngineError."""
        name = voice if voice in self._styles else self._default
        phonemes = self._phonemes(text, _read_as(text, self.languages[name]))
        if not phonemes:
            return Speech(np.empty(0, np.int16))
        try:
            with self._running:
                sound, _, timings = self._kokoro.create_timed(
                    phonemes, self._styles[name], speed, is_phonemes=True, trim=False, sentence_pause=0, clause_pause=0
                )
        except Exception as error:  # onnxruntime's own classes share no root but this
            raise EngineError(f"kokoro failed: {error}") from error
        pcm = (np.clip(sound, -1.0, 1.0) * 32767).astype(np.int16)
        said = "".join(timing.phoneme for timing in timings)
        return shape(pcm, word_starts(text, said, [round(t.start * RATE) for t in timings]), text, RATE)

    def _phonemes(self, text: str, language: str) -> str:
        """The phonemes of `text` that the model knows."""
        with self._phonemizing:
            written = self._phonemizer.phonemes(text, ESPEAK.get(language, language))
        return " ".join("".join(sign for sign in written if sign in self._kokoro.tokenizer.vocab).split())


def _read_as(text: str, language: str) -> str:
    """The language of whose phonemes a voice of `language` makes this text."""
    return LATIN if language in NOT_IN_LATIN and not OTHER_LETTER.search(MARKED.sub("", text)) else language


def has_cuda() -> bool:
    """Whether the onnxruntime that is imported can compute on a GPU. Which package is installed does not tell: two of
    them bring this module, and the one that pip wrote last is what there is."""
    return CUDA in onnxruntime.get_available_providers()


def _session(config: KokoroConfig) -> Any:
    providers = _providers(config.device)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = config.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # Threads that wait for work by spinning would take the event loop's time.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    try:
        session = onnxruntime.InferenceSession(hub.local_file(config.model, ".onnx"), options, providers=providers)
    except Exception as error:  # onnxruntime's own classes share no root but this
        raise EngineError(f"{config.model} cannot be loaded as an ONNX model: {error}") from None
    if len(providers) > 1 and CUDA not in session.get_providers():
        raise EngineError(
            "onnxruntime has CUDA and cannot use it: its version of CUDA and cuDNN must be on this machine; or set "
            'kokoro.device to "cpu".'
        )
    return session


def _providers(device: str) -> Sequence[str | tuple[str, dict[str, str]]]:
    if device == "cpu":
        return ["CPUExecutionProvider"]
    if not has_cuda():
        raise EngineMissing(
            f'kokoro.device is "{device}", and this onnxruntime has no CUDA: '
            'install onnxruntime-gpu in its place, or set it to "cpu".'
        )
    onnxruntime.preload_dlls()
    # By default cuDNN would try all its algorithms out on every new length, for hundreds of milliseconds.
    options = {"device_id": device.partition(":")[2] or "0", "cudnn_conv_algo_search": "HEURISTIC"}
    return [(CUDA, options), "CPUExecutionProvider"]


def _check(session: Any, path: str) -> None:
    names = {given.name for given in session.get_inputs()}
    if not {"style", "speed"} < names or not names & {"tokens", "input_ids"}:
        raise EngineError(f"{path} is not a Kokoro model: its inputs are {json.dumps(sorted(names))}.")
