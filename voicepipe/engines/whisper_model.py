"""Whisper as faster-whisper loads it and CTranslate2 runs it: a few utterances in one pass. Blocking.

faster-whisper's own `transcribe` pads everything to 30 s and takes one recording at a time; its parts do neither.
"""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicepipe.audio import RATE, Pcm, ms_to_samples
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines import hub
from voicepipe.engines.whisper_words import WhisperWord, spelled, without_loops
from voicepipe.errors import EngineError, EngineMissing

LONGEST = ms_to_samples(28_000)
"""Whisper hears 30 s."""
STEP_MS = 1000
"""Windows are a multiple of this."""
TOKENS_A_SECOND, TOKENS_MORE = 15, 15
"""Nobody says more in a second than so many tokens, not in languages either that are spelled letter by letter."""
CONTEXT = 448
"""Tokens of the decoder, of which CTranslate2 spends at most half on new ones."""
NO_SPEECH, NO_SPEECH_LOGPROB = 0.6, -1.0
"""Whisper's own: it heard no speech, and it is not sure of the words that it wrote."""
NAMED_OTHERWISE = {"nb": "no", "fil": "tl", "jv": "jw", "iw": "he", "in": "id"}
"""Languages that Whisper calls something else than BCP 47 does."""

CUBLAS, CUBLAS_PACKAGE = "libcublas.so.12", "nvidia-cublas-cu12"
"""What CTranslate2 computes with on a GPU, and who brings it."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What one utterance gives to a pass."""

    pcm: Pcm
    """int16[n <= LONGEST] at 16 kHz."""
    prefix: tuple[int, ...] = ()
    """Tokens of the words that stand."""
    language: str | None = "en"
    """BCP 47; None: as the model finds."""
    timed: bool = False
    """Wanted are the ends of the words, which take as long as reading them."""
    upto: int = 0
    """For the one who asks."""
    fed: int = 0
    """Likewise."""

    @property
    def seconds(self) -> float:
        """How long its sound lasts."""
        return self.pcm.size / RATE


@dataclass(frozen=True, slots=True)
class WhisperReading:
    """What was read of it."""

    words: tuple[WhisperWord, ...]
    """The prefix among them."""
    ends: tuple[int, ...] = ()
    """Sample of the passage at which each word ends, if that was wanted."""
    language: str = ""
    sure: bool = True
    """Of the language."""


class LoadedWhisper:
    """Raises EngineMissing, EngineError: the model or a library behind it is not there, or not what it should be."""

    def __init__(self, config: WhisperConfig) -> None:
        directory = hub.local(config.model)
        for name in ("model.bin", "config.json", "tokenizer.json"):
            if not (directory / name).is_file():
                raise EngineMissing(f"{directory} is not a Whisper model converted for CTranslate2: it has no {name}.")
        self._whisper = _loaded(directory, config)
        self._device = config.device
        self._least = config.window_ms
        self.batch = config.batch if self._whisper.model.device == "cuda" else 1
        """Utterances in a pass: a CPU takes as long for two as for one after the other, and the first would wait."""
        self._tokenizers: dict[str, Any] = {}
        features, heard = self._whisper.feature_extractor.mel_filters.shape[0], self._whisper.model.n_mels
        if features != heard:
            raise EngineError(
                f"{directory / 'preprocessor_config.json'} is missing or another model's: the model hears {heard} mel "
                f"bands, and the file says {features}."
            )

    def warm(self) -> None:
        """Run every kind of pass once; on a GPU also the largest. Raises EngineMissing, EngineError."""
        silence, word = np.zeros(RATE, np.int16), tuple(self._tokenizer("en").encode(" hello"))
        try:
            self.read([Passage(silence, word, language=None, timed=True)])
            self.read([Passage(silence)] * self.batch)
        except RuntimeError as error:
            with suppress(RuntimeError):
                self.unload()
            raise _explained(error, self._device) from None

    def unload(self) -> None:
        """Give its memory back; it reads no more."""
        self._whisper.model.unload_model()

    def read(self, passages: list[Passage]) -> list[WhisperReading]:
        """One pass."""
        from faster_whisper.transcribe import get_ctranslate2_storage, get_suppressed_tokens

        mel = self._features([passage.pcm for passage in passages])
        encoded = self._whisper.encode(mel)
        languages = self._languages(passages, encoded)
        prompts = [
            [*tokenizer.sot_sequence, tokenizer.no_timestamps, *passage.prefix]
            for passage, tokenizer in zip(passages, (self._tokenizer(name) for name, _ in languages), strict=True)
        ]
        most = [TOKENS_MORE + TOKENS_A_SECOND * passage.pcm.size // RATE for passage in passages]
        longest = max(len(passage.prefix) + 1 + new for passage, new in zip(passages, most, strict=True))
        results = self._whisper.model.generate(
            encoded,
            prompts,
            beam_size=1,
            max_length=min(CONTEXT, 2 * longest),
            suppress_tokens=get_suppressed_tokens(self._tokenizer(languages[0][0]), [-1]),
            return_scores=True,
            return_no_speech_prob=True,
        )
        readings = []
        for i, (passage, result, (language, sure)) in enumerate(zip(passages, results, languages, strict=True)):
            unheard = result.no_speech_prob > NO_SPEECH and result.scores[0] < NO_SPEECH_LOGPROB
            tokens = result.sequences_ids[0][: len(passage.prefix) + (0 if unheard else most[i])]
            tokenizer = self._tokenizer(language)
            words = self._words(tokens, tokenizer)
            frames = get_ctranslate2_storage(mel[i : i + 1])
            ends = self._ends(words, frames, tokenizer, passage) if passage.timed else ()
            readings.append(WhisperReading(words, ends, language, sure))
        return readings

    def _features(self, sounds: Sequence[Pcm]) -> NDArray[np.float32]:
        """Log-mel spectrograms as if each sound were followed by silence: float32[n, bands, frames].

        The silence is not computed but written: after Whisper's normalisation it is 2 below the loudest.
        """
        longest = max(sound.size for sound in sounds) * 1000 // RATE
        frames = max(self._least, -(-longest // STEP_MS) * STEP_MS) // 10
        extractor = self._whisper.feature_extractor
        mel = np.empty((len(sounds), extractor.mel_filters.shape[0], frames), np.float32)
        for row, sound in zip(mel, sounds, strict=True):
            heard = extractor(np.pad(sound, (0, max(0, RATE // 10 - sound.size))).astype(np.float32) / 32768)
            heard = heard[:, :frames]
            row[:] = max(heard.max() - 2.0, -1.5)
            row[:, : heard.shape[1]] = heard
        return mel

    def _languages(self, passages: Sequence[Passage], encoded: Any) -> list[tuple[str, bool]]:
        """Of each passage, and whether that is sure."""
        if not self._whisper.model.is_multilingual:
            return [("en", True)] * len(passages)
        named = [self._known(passage.language) for passage in passages]
        if all(named):
            return [(name, True) for name in named if name]
        found = self._whisper.model.detect_language(encoded)
        likeliest = [(token.strip("<|>"), probability > 0.5) for (token, probability), *_ in found]
        return [(name, True) if name else guess for name, guess in zip(named, likeliest, strict=True)]

    def _known(self, language: str | None) -> str | None:
        """Whisper's name of a language, None if it does not know it."""
        first = (language or "").split("-")[0].lower()
        name = NAMED_OTHERWISE.get(first, first)
        return name if self._whisper.hf_tokenizer.token_to_id(f"<|{name}|>") else None

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._tokenizers:
            multilingual = self._whisper.model.is_multilingual
            made = Tokenizer(self._whisper.hf_tokenizer, multilingual, task="transcribe", language=language)
            self._tokenizers[language] = made
        return self._tokenizers[language]

    def _words(self, tokens: list[int], tokenizer: Any) -> tuple[WhisperWord, ...]:
        pieces = tokenizer.split_to_word_tokens([token for token in tokens if token < tokenizer.eot])
        return without_loops(spelled(zip(*pieces, strict=True)))

    def _ends(self, words: Sequence[WhisperWord], frames: Any, tokenizer: Any, passage: Passage) -> tuple[int, ...]:
        """By the attention of the decoder to the sound: samples."""
        tokens = [token for word in words for token in word.tokens]
        if not tokens:
            return ()
        (aligned,) = self._whisper.find_alignment(tokenizer, [tokens], frames, passage.pcm.size // (RATE // 100))
        ends, at = {}, 0
        for piece in aligned:
            at += len(piece["tokens"])
            ends[at] = round(piece["end"] * RATE)
        found, at = [], 0
        for word in words:
            at += len(word.tokens)
            found.append(min(passage.pcm.size, ends.get(at, passage.pcm.size)))
        return tuple(found)


def _loaded(directory: Path, config: WhisperConfig) -> Any:
    """faster-whisper's model, on its device."""
    try:
        import ctranslate2
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise EngineMissing(f"faster-whisper cannot be imported ({error}); pip install faster-whisper") from None
    device, _, index = config.device.partition(":")
    if device == "auto":
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
    if device == "cuda":
        find_cublas()
    compute_type = config.compute_type
    if compute_type == "auto":
        compute_type = "float16" if device == "cuda" else "int8"
    try:
        return WhisperModel(
            str(directory),
            device=device,
            device_index=int(index or 0),
            compute_type=compute_type,
            cpu_threads=config.threads or os.cpu_count() or 1,
            local_files_only=True,
        )
    except Exception as error:  # tokenizers raises nothing narrower
        raise _explained(error, config.device) from None


def find_cublas() -> bool:
    """Whether cuBLAS can be opened; CTranslate2 does it by name alone, NVIDIA's wheel puts it where nobody looks."""
    nvidia = find_spec("nvidia")
    for folder in (nvidia.submodule_search_locations or ()) if nvidia else ():
        for library in sorted(Path(folder).glob("*/lib/libcublas*.so.12")):
            with suppress(OSError):  # said below
                ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    try:
        ctypes.CDLL(CUBLAS)
    except OSError:
        return False
    return True


def _explained(error: Exception, device: str) -> EngineError:
    said = str(error).strip()
    if "is not found or cannot be loaded" in said:
        return EngineMissing(f"{said}: pip install {CUBLAS_PACKAGE}")
    if "out of memory" in said:
        return EngineError(f"Whisper does not fit on the GPU ({said}): give it another `device`, or a smaller model.")
    where = f" (whisper.device = {device!r}; `voicepipe doctor` shows what GPUs there are)" if "CUDA" in said else ""
    return EngineError(f"Whisper cannot be loaded: {said}{where}")
