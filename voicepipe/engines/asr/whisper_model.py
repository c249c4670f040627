"""Whisper as faster-whisper loads it and CTranslate2 runs it: a few utterances in one pass. Blocking.

faster-whisper's own `transcribe` pads everything to 30 s and takes one recording at a time; its parts do neither.
Whisper writes timestamps among the words: without them it says a sentence again in what is left of a short window.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from voicepipe.audio import RATE, Pcm, ms_to_samples, samples_to_ms
from voicepipe.base.environment import cores
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.cublas import CUBLAS_PACKAGE, find_cublas
from voicepipe.engines.asr.whisper_language import PassageLanguage, language_heard, whisper_name
from voicepipe.engines.asr.whisper_vocabulary import said_before
from voicepipe.engines.asr.whisper_words import (
    Segment,
    WhisperWord,
    begins_as,
    ends_sentence,
    said,
    spelled,
    without_marks,
)
from voicepipe.engines.weights import hub

WINDOW_MS = 30_000
"""Whisper hears no more."""
LONGEST = ms_to_samples(28_000)
"""Sound that is read in one pass at most."""
STEP_MS = 500
"""Windows are a multiple of this."""
QUIET_MS = 2000
"""Silence that is read behind the sound. With 500 ms the words were wrong twice as often."""
WIDE_MS = 20_000
"""Window of digits that are dictated. Of 36 telephone numbers without a pause tiny.en read 5 right with 2 s of silence
behind them, 19 with 10 s, 28 with 18 s, and 29 with 26 s, which takes twice the time."""
TOKENS_A_SECOND, ENGLISH_TOKENS_A_SECOND, TOKENS_MORE = 15, 8, 8
"""Nobody says more in a second than so many tokens, not in languages either that are spelled letter by letter."""
FIRST_LIMIT_SHARE, FIRST_LIMIT_MORE = 5 / 8, 7
"""This share of these tokens, and so many more, are mostly enough. Where Whisper does not find the end, it repeats the
words until it is stopped, and callers wait for it: so it did with 161 of 580 sentences and answers that were read 40 ms
behind their end. So this is the first limit, and it reads on only where it has not begun to repeat."""
REPETITION_PENALTY = 1.1
"""Tokens that were written are made less likely by this factor (Keskar et al., CTRL, 2019). With it Whisper finds the
end of half of those 161, and half as many words of dictated numbers are wrong. From 1.15 on other words become
wrong."""
TIME_STEP_MS = 20
"""From one timestamp to the next."""
CONTEXT = 448
"""Tokens of the decoder, of which CTranslate2 spends at most half on new ones, and those that the prompt leaves."""
NO_SPEECH, NO_SPEECH_LOGPROB = 0.6, -1.0
"""Whisper's own: it heard no speech, and it is not sure of the words that it wrote."""


@dataclass(frozen=True, slots=True)
class Passage:
    """The input of one utterance to a pass of Whisper."""

    pcm: Pcm
    """int16[n <= LONGEST] at 16 kHz."""
    voiced: int | None = None
    """Number of samples in which there is voice; None: all."""
    end: int | None = None
    """Sample of `pcm` at which its last voice ends; None: the end of `pcm`."""
    language: str | None = "en"
    """Language by BCP 47; None: the model detects it."""
    languages: tuple[str, ...] = ()
    """Those in which it may be, by BCP 47, where there are several: the model detects which. `language` is the
    likeliest before the sound is heard."""
    wide: bool = False
    """It holds digits, which take a wide window: in a short one Whisper loses count of them."""
    timed: bool = False
    """The ends of the words are wanted, which take as long as reading them."""
    vocabulary: tuple[str, ...] = ()
    """Words that are expected in it."""
    wanted: Callable[[], bool] | None = None
    """Whether its words are still wanted, asked on the pass's thread; None: they are."""
    start: int = 0
    upto: int = 0
    fed: int = 0
    """These three positions are for the client alone (`WhisperStream`)."""

    @property
    def seconds(self) -> float:
        """How long its sound lasts."""
        return self.pcm.size / RATE


@dataclass(frozen=True, slots=True)
class WhisperReading:
    """The words that a pass of Whisper read in one passage."""

    words: tuple[WhisperWord, ...]
    ends: tuple[int, ...] = ()
    """Sample of the passage at which each word ends, if that was wanted."""
    language: PassageLanguage = PassageLanguage("", sure=True)
    full_stop: float | None = None
    """Probability, in 0..1, that the last word ends a sentence; None: no words, or no end of them."""


@dataclass(frozen=True, slots=True)
class _DecodedText:
    """The text that the decoder wrote for one passage."""

    words: tuple[WhisperWord, ...]
    """The words that were said; hallucinated ones are left out."""
    result: Any
    """CTranslate2's result."""
    most: int
    """Number of tokens that the decoder was allowed."""
    stopped: bool
    """It was stopped in the middle: it had not begun to say all of it again."""


class LoadedWhisper:
    """A loaded Whisper model. Its methods block.

    Raises EngineMissing, EngineError: the model or a library behind it is not there, or not what it should be.
    """

    def __init__(self, config: WhisperConfig) -> None:
        directory = hub.local(config.model)
        for name in ("model.bin", "config.json", "tokenizer.json"):
            if not (directory / name).is_file():
                raise EngineMissing(f"{directory} is not a Whisper model converted for CTranslate2: it has no {name}.")
        threadpool_limits(
            1, "blas"
        )  # The spectrogram's matrices are small: threads that wait for each other cost more.
        self._whisper = _loaded(directory, config)
        self._device = config.device
        self._least = config.window_ms
        on_gpu = self._whisper.model.device == "cuda"
        self.batch = config.batch if on_gpu else 1
        """Utterances in a pass: a CPU takes as long for two as for one after the other, and the first would wait."""
        self.passes = 1 if on_gpu else passes_at_a_time(config)
        """Passes at a time."""
        self._tokenizers: dict[str, Any] = {}
        self._marks: NDArray[np.intp] | None = None
        features, heard = self._whisper.feature_extractor.mel_filters.shape[0], self._whisper.model.n_mels
        if features != heard:
            raise EngineError(
                f"{directory / 'preprocessor_config.json'} is missing or another model's: the model hears {heard} mel "
                f"bands, and the file says {features}."
            )

    def warm(self) -> None:
        """Run every kind of pass once; on a GPU also the largest. Raises EngineMissing, EngineError."""
        silence = np.zeros(RATE, np.int16)
        self._sentence_ends(self._tokenizer("en"))
        try:
            self.read([Passage(silence, language=None, timed=True)])
            self.read([Passage(silence)] * self.batch)
        except RuntimeError as error:
            with suppress(RuntimeError):
                self.unload()
            raise _explained(error, self._device) from None

    def unload(self) -> None:
        """Release its memory; it reads no more."""
        self._whisper.model.unload_model()

    def read(self, passages: list[Passage]) -> list[WhisperReading]:
        """Read some passages of one vocabulary in one pass; empty if nobody wants their words any more."""
        from faster_whisper.transcribe import get_ctranslate2_storage

        mel = self._features(passages)
        encoded = self._whisper.encode(mel)
        # A third of the work. The rest cannot be stopped either, but need not begin.
        if not any(passage.wanted is None or passage.wanted() for passage in passages):
            return []
        languages = self._languages(passages, encoded)
        tokenizers = [self._tokenizer(language.name) for language in languages]
        a_second = TOKENS_A_SECOND if self._whisper.model.is_multilingual else ENGLISH_TOKENS_A_SECOND
        most = [a_second * passage.pcm.size // RATE for passage in passages]
        decoded = self._decode(
            encoded, passages, tokenizers, [FIRST_LIMIT_MORE + int(FIRST_LIMIT_SHARE * many) for many in most]
        )
        if any(each.stopped for each in decoded):
            decoded = self._decode(encoded, passages, tokenizers, [TOKENS_MORE + many for many in most])
        readings = []
        for i, (passage, each, tokenizer) in enumerate(zip(passages, decoded, tokenizers, strict=True)):
            frames = get_ctranslate2_storage(mel[i : i + 1])
            ends = self._ends(each.words, frames, tokenizer, passage) if passage.timed else ()
            full_stop = self._full_stop(each.words, each.result, each.most, tokenizer)
            readings.append(WhisperReading(each.words, ends, languages[i], full_stop))
        return readings

    def _decode(
        self, encoded: Any, passages: Sequence[Passage], tokenizers: Sequence[Any], most: Sequence[int]
    ) -> list[_DecodedText]:
        """The decoder's text of each passage, in at most so many tokens."""
        from faster_whisper.transcribe import get_suppressed_tokens

        before = said_before(passages[0].vocabulary, tokenizers[0])
        new = len(tokenizers[0].sot_sequence) + max(most)
        results = self._whisper.model.generate(
            encoded,
            [[*before, *tokenizer.sot_sequence] for tokenizer in tokenizers],
            beam_size=1,
            max_length=min(CONTEXT, max(2 * new, len(before) + len(tokenizers[0].sot_sequence) + new)),
            suppress_tokens=get_suppressed_tokens(tokenizers[0], [-1]),
            repetition_penalty=REPETITION_PENALTY,
            return_scores=True,
            return_no_speech_prob=True,
            return_logits_vocab=True,
        )
        return list(map(_decoding, passages, results, most, tokenizers))

    def _features(self, passages: Sequence[Passage]) -> NDArray[np.float32]:
        """Log-mel spectrograms as if each sound were followed by silence: float32[n, bands, frames].

        The silence is not computed but written: after Whisper's normalisation it is 2 below the loudest.
        """
        longest = max(passage.pcm.size for passage in passages) * 1000 // RATE + QUIET_MS
        least = max(self._least, WIDE_MS) if any(passage.wide for passage in passages) else self._least
        frames = min(WINDOW_MS, max(least, -(-longest // STEP_MS) * STEP_MS)) // 10
        extractor = self._whisper.feature_extractor
        mel = np.empty((len(passages), extractor.mel_filters.shape[0], frames), np.float32)
        for row, passage in zip(mel, passages, strict=True):
            sound = passage.pcm
            heard = extractor(np.pad(sound, (0, max(0, RATE // 10 - sound.size))).astype(np.float32) / 32768)
            heard = heard[:, :frames]
            row[:] = max(heard.max() - 2.0, -1.5)
            row[:, : heard.shape[1]] = heard
        return mel

    def _languages(self, passages: Sequence[Passage], encoded: Any) -> list[PassageLanguage]:
        """The language of each passage."""
        if not self._whisper.model.is_multilingual:
            return [PassageLanguage("en", sure=True)] * len(passages)
        named = [None if passage.languages else whisper_name(passage.language or "", self._has) for passage in passages]
        if all(named):
            return [PassageLanguage(name, sure=True) for name in named if name]
        found = self._whisper.model.detect_language(encoded)
        return [
            PassageLanguage(name, sure=True)
            if name
            else language_heard(passage.languages, passage.language or "", odds, self._has)
            for name, passage, odds in zip(named, passages, found, strict=True)
        ]

    def _has(self, name: str) -> bool:
        """Whether the model knows the language that Whisper calls so."""
        return self._whisper.hf_tokenizer.token_to_id(f"<|{name}|>") is not None

    def _tokenizer(self, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        if language not in self._tokenizers:
            multilingual = self._whisper.model.is_multilingual
            made = Tokenizer(self._whisper.hf_tokenizer, multilingual, task="transcribe", language=language)
            self._tokenizers[language] = made
        return self._tokenizers[language]

    def _full_stop(self, words: Sequence[WhisperWord], result: Any, most: int, tokenizer: Any) -> float | None:
        """The probability of a sentence's end that the decoder gave to the token behind the last word's letters."""
        if not words:
            return None
        word = words[-1]
        letters = without_marks(word.text)
        counts = range(1, len(word.tokens))
        spelled_by = (n for n in counts if tokenizer.decode(word.tokens[:n]).startswith(letters))
        behind = word.at + next(spelled_by, len(word.tokens))
        if behind >= min(most, len(result.logits[0])):
            return None  # The decoder was stopped at its limit.
        logits = _unpenalised(_on_cpu(result.logits[0][behind]), result.sequences_ids[0][:behind])
        likely = np.exp(logits - logits.max())
        return float(likely[self._sentence_ends(tokenizer)].sum() / likely.sum())

    def _sentence_ends(self, tokenizer: Any) -> NDArray[np.intp]:
        """Tokens that are a mark at which a sentence ends."""
        if self._marks is None:
            texts = [tokenizer.decode([token]).strip() for token in range(tokenizer.eot)]
            self._marks = np.array([token for token, text in enumerate(texts) if ends_sentence(text)], np.intp)
        return self._marks

    def _ends(self, words: Sequence[WhisperWord], frames: Any, tokenizer: Any, passage: Passage) -> tuple[int, ...]:
        """The samples at which the words end, by the decoder's attention to the sound."""
        tokens = [token for word in words for token in word.tokens]
        if not tokens:
            return ()
        (aligned,) = self._whisper.find_alignment(tokenizer, [tokens], frames, passage.pcm.size // (RATE // 100))
        behind = accumulate(len(piece["tokens"]) for piece in aligned)
        ends = {at: round(piece["end"] * RATE) for at, piece in zip(behind, aligned, strict=True)}
        last = passage.pcm.size if passage.end is None else passage.end
        return tuple(min(last, ends.get(at, last)) for at in accumulate(len(word.tokens) for word in words))


def _decoding(passage: Passage, result: Any, most: int, tokenizer: Any) -> _DecodedText:
    if result.no_speech_prob > NO_SPEECH and result.scores[0] < NO_SPEECH_LOGPROB:
        return _DecodedText((), result, most, stopped=False)
    tokens = result.sequences_ids[0][:most]
    segments = list(_segments(tokens, tokenizer))
    end = passage.pcm.size if passage.end is None else passage.end
    voiced = passage.pcm.size if passage.voiced is None else passage.voiced
    words = said(segments, samples_to_ms(end), samples_to_ms(voiced))
    behind = [word for segment in segments for word in segment.words][len(words) :]
    # One word alone is no repetition: "I want a table. I ..."
    again = len(behind) > 1 and begins_as(words, behind)
    return _DecodedText(words, result, most, stopped=len(tokens) == most and not again)


def _segments(tokens: Sequence[int], tokenizer: Any) -> Iterator[Segment]:
    """Parted by the timestamps, which stand before and behind each: <|0.00|> Hello.<|0.80|><|1.20|> It's me.<|2.00|>"""
    begins_ms, text = 0.0, list[int]()
    for at, token in enumerate((*tokens, tokenizer.timestamp_begin)):
        if token < tokenizer.eot:
            text.append(token)
        elif token >= tokenizer.timestamp_begin:
            if text:
                pieces = tokenizer.split_to_word_tokens(text)
                yield Segment(begins_ms, _placed(spelled(zip(*pieces, strict=True)), at - len(text)))
            begins_ms, text = TIME_STEP_MS * float(token - tokenizer.timestamp_begin), []


def _placed(words: Iterable[WhisperWord], at: int) -> tuple[WhisperWord, ...]:
    """`words`, of which the first begins at the token `at`."""
    starts = accumulate((len(word.tokens) for word in words), initial=at)
    return tuple(replace(word, at=start) for word, start in zip(words, starts, strict=False))


def _unpenalised(logits: NDArray[np.float32], written: Sequence[int]) -> NDArray[np.float32]:
    """The logits as they were before `REPETITION_PENALTY`."""
    again = np.unique(written)
    logits = logits.copy()
    logits[again] *= np.where(logits[again] < 0, 1 / REPETITION_PENALTY, REPETITION_PENALTY)
    return logits


def _on_cpu(view: Any) -> NDArray[np.float32]:
    """CTranslate2's float[n], wherever it computed it."""
    from ctranslate2 import DataType, Device

    return np.asarray(view.to_device(Device.cpu).to(DataType.float32)).ravel()


def _loaded(directory: Path, config: WhisperConfig) -> Any:
    """faster-whisper's model, on its device."""
    try:
        from faster_whisper import WhisperModel
    except ImportError as error:
        raise EngineMissing(f"faster-whisper cannot be imported ({error}); pip install faster-whisper") from None
    device, _, index = config.device.partition(":")
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
            cpu_threads=1,
            num_workers=passes_at_a_time(config) if device == "cpu" else 1,
            local_files_only=True,
        )
    except Exception as error:  # tokenizers raises nothing narrower
        raise _explained(error, config.device) from None


def passes_at_a_time(config: WhisperConfig) -> int:
    """How many passes a CPU runs at a time. Each has one thread: two are slower than one with so small a model, and
    hold up two passes."""
    return config.threads or cores()


def _explained(error: Exception, device: str) -> EngineError:
    said = str(error).strip()
    if "is not found or cannot be loaded" in said:
        return EngineMissing(f"{said}: pip install {CUBLAS_PACKAGE}")
    if "out of memory" in said:
        return EngineError(f"Whisper does not fit on the GPU ({said}): give it another `device`, or a smaller model.")
    where = f" (whisper.device = {device!r}; `voicepipe doctor` shows what GPUs there are)" if "CUDA" in said else ""
    return EngineError(f"Whisper cannot be loaded: {said}{where}")
