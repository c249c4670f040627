"""The input and the output of a step. Imports no library of the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from voicepipe.audio import Pcm


@dataclass(frozen=True, slots=True)
class Row:
    """The input of one utterance to a step of the model."""

    slot: int
    begins: bool
    """Nothing of the utterance was heard before."""
    sounds: Sequence[Pcm]
    """Chunks of sound, heard one after the other."""
    prompt: int = 0
    """The model's number of the language."""
    copies: bool = False
    """The step works on a copy, and the slot stays as it was."""


class Heard(NamedTuple):
    """The output of a step for one utterance."""

    tokens: list[int]
    sane: bool
    """False: the model computed no numbers, and the utterance's state is worth nothing."""
