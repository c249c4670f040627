"""Describes a model by the files of its directory, before anything is loaded. Imports no library of the model."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron.front_end import FACTOR, FFT, HOP, PRE_EMPHASIS, WINDOW, frames_of
from voicepipe.engines.weights import hub
from voicepipe.languages.tags import named_in
from voicepipe.languages.written_language import LikelyLanguage

KINDS = ("nemotron_asr_streaming", "nemotron3_5_asr")
"""transformers' names of the models: the English one, and the one for many languages."""
LOOKAHEADS = (13, 6, 1, 0)
"""Frames behind the present one with which a model was trained, where its files do not say."""
FRONT_END = {"n_fft": FFT, "hop_length": HOP, "win_length": WINDOW, "preemphasis": PRE_EMPHASIS}
WIDE = {"float32": 4, "bfloat16": 2, "float16": 2}
"""Bytes of a number."""
TAG = re.compile(r"\s*<[a-z]{2,3}-[A-Z]{2}>")
"""The language that the model heard, as it writes it behind a sentence."""
HEARD = 0.9
"""Probability that the language is the one that it writes: it says nothing of how sure it is."""
AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A Nemotron model in a directory of this machine, as its files describe it."""

    directory: Path
    described: dict[str, Any]
    """The contents of config.json."""
    prepared: dict[str, Any]
    """The contents of processor_config.json: lookaheads, languages."""

    @property
    def many_languages(self) -> bool:
        return bool(self.described["model_type"] == KINDS[1])

    def bytes_of_weights(self, dtype: str) -> int:
        """Size of the weights in memory, as numbers of type `dtype`."""
        stored = self.described.get("dtype") or self.described.get("torch_dtype") or "float32"
        size = sum(file.stat().st_size for file in self.directory.glob("*.safetensors"))
        return size * WIDE[dtype] // WIDE.get(stored, 4)

    def bytes_of_slot(self, dtype: str) -> int:
        """Memory that an utterance takes while it is heard: almost all of it is keys and values."""
        encoder = {"hidden_size": 1024, "num_hidden_layers": 24, "sliding_window": 71, "conv_kernel_size": 9}
        encoder |= self.described.get("encoder_config", {})
        window = 2 * (encoder["sliding_window"] - 1) + encoder["conv_kernel_size"] - 1
        return int(encoder["num_hidden_layers"] * encoder["hidden_size"] * window * WIDE[dtype])


def read(config: NemotronConfig) -> Checkpoint:
    """The model that `config` names. Raises EngineMissing, EngineError: the model is not here, is another, or was not
    trained for `chunk_ms`."""
    directory = hub.local(config.model)
    described = hub.json_object(directory / "config.json")
    kind = described.get("model_type", "")
    if kind not in KINDS:
        raise EngineMissing(
            f"{directory} is not a Nemotron streaming model as transformers stores it: its config.json "
            f"{f'names the model {kind!r}' if kind else 'is missing or names no model'}."
        )
    if not (directory / "tokenizer.json").is_file():
        raise EngineMissing(f"{directory} has no tokenizer.json, in which the model's words are.")
    if not any(directory.glob("*.safetensors")):
        raise EngineMissing(f"{directory} has no *.safetensors, in which the model's weights are.")
    prepared = hub.json_object(directory / "processor_config.json")
    front_end = prepared.get("feature_extractor") or hub.json_object(directory / "preprocessor_config.json")
    if other := sorted(key for key, own in FRONT_END.items() if front_end.get(key, own) != own):
        raise EngineError(f"{directory} wants another front end than Nemotron's: its {', '.join(other)} differ.")
    if described.get("encoder_config", {}).get("subsampling_factor", FACTOR) != FACTOR:
        raise EngineError(f"{directory} has another subsampling_factor than {FACTOR}: it is no Nemotron of this kind.")
    lookaheads = prepared.get("supported_num_lookahead_tokens") or LOOKAHEADS
    if frames_of(config.chunk_ms) - 1 not in lookaheads:
        known = ", ".join(str(FACTOR * 10 * (ahead + 1)) for ahead in sorted(lookaheads))
        raise EngineError(f"nemotron.chunk_ms = {config.chunk_ms}: {config.model} was trained for {known}.")
    return Checkpoint(directory, described, prepared)


class Texts:
    """Turns a Nemotron model's tokens into text, and languages into its prompts. Raises EngineError: tokenizer.json
    cannot be read."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(checkpoint.directory / "tokenizer.json"))
        except Exception as error:  # tokenizers raises nothing narrower
            raise EngineError(f"{checkpoint.directory / 'tokenizer.json'} cannot be read: {error}") from None
        numbers = prompts(checkpoint) if checkpoint.many_languages else {}
        self._prompts = {name.lower(): number for name, number in numbers.items()}

    def text(self, tokens: list[int]) -> str:
        written: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return TAG.sub("", written).strip()

    def heard(self, tokens: list[int], languages: Sequence[str]) -> LikelyLanguage:
        """The one of `languages` that the model says it heard, by the last mark behind a sentence."""
        tags = TAG.findall(self._tokenizer.decode(tokens, skip_special_tokens=True))
        found = named_in(languages, tags[-1].strip(" <>")) if tags else ""
        return LikelyLanguage(found, HEARD) if found else LikelyLanguage()

    def prompt(self, language: str | None) -> int:
        """The model's number of a language (BCP 47). For None, or one that it does not know, that of detecting the
        language."""
        named, wanted = self._prompts, (language or AUTO).lower()
        return named.get(wanted, named.get(wanted.split("-")[0], named.get(AUTO, 0)))


def prompts(checkpoint: Checkpoint) -> dict[str, int]:
    """The model's numbers of languages (BCP 47, and AUTO), by its files, or else by transformers."""
    if said := checkpoint.prepared.get("prompt_dictionary"):
        return dict(said)
    from transformers.models.nemotron3_5_asr.processing_nemotron3_5_asr import DEFAULT_PROMPT_DICTIONARY

    return dict(DEFAULT_PROMPT_DICTIONARY)
