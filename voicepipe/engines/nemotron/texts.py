"""Tokens -> text, and languages -> what the model calls them. With the model's own files, without its library."""

import re
from typing import Any

from voicepipe.engines.nemotron.checkpoint import Checkpoint
from voicepipe.errors import EngineError

TAG = re.compile(r"\s*<[a-z]{2,3}-[A-Z]{2}>")
"""The language that the model heard, as it writes it behind a sentence."""
AUTO = "auto"


class Texts:
    """Raises EngineError: tokenizer.json cannot be read."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        from tokenizers import Tokenizer

        try:
            self._tokenizer: Any = Tokenizer.from_file(str(checkpoint.directory / "tokenizer.json"))
        except Exception as error:  # tokenizers raises nothing narrower
            raise EngineError(f"{checkpoint.directory / 'tokenizer.json'} cannot be read: {error}") from None
        prompts = _prompts(checkpoint) if checkpoint.many_languages else {}
        self._prompts = {name.lower(): number for name, number in prompts.items()}

    def text(self, tokens: list[int]) -> str:
        written: str = self._tokenizer.decode(tokens, skip_special_tokens=True)
        return TAG.sub("", written).strip()

    def prompt(self, language: str | None) -> int:
        """The model's number of a language (BCP 47); None, or one that it does not know: it finds out by itself."""
        named, wanted = self._prompts, (language or AUTO).lower()
        return named.get(wanted, named.get(wanted.split("-")[0], named.get(AUTO, 0)))


def _prompts(checkpoint: Checkpoint) -> dict[str, int]:
    """By the model's files, or else by transformers."""
    if said := checkpoint.prepared.get("prompt_dictionary"):
        return dict(said)
    from transformers.models.nemotron3_5_asr.processing_nemotron3_5_asr import DEFAULT_PROMPT_DICTIONARY

    return dict(DEFAULT_PROMPT_DICTIONARY)
