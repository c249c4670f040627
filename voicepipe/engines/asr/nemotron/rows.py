"""What goes into a step and what comes out of it. Imports no library of the model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from voicepipe.audio import Pcm


@dataclass(frozen=True, slots=True)
class Row:
    """What one utterance gives to a step."""

    slot: int
    begins: bool
    """Nothing of it was heard yet."""
    sounds: Sequence[Pcm]
    """Chunks, heard one after the other."""
    prompt: int = 0
    """The model's number of the language."""
    copies: bool = False
    """Its slot stays as it was."""


class Heard(NamedTuple):
    """What was said in it."""

    tokens: list[int]
    sane: bool
    """False: what was computed are no numbers, and its state is worth nothing."""
