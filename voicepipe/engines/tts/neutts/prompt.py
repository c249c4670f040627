"""What NeuTTS-Air reads: the phonemes of the voice's recording and of the text, and the recording's own codes, after
which it goes on with the text's. Pure, but for the tokenizer's file."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines.tts.shaping import letters

ASKED, ANSWERED = "user: Convert the text to speech:", "\nassistant:"
TEXT_BEGINS, TEXT_ENDS = "<|TEXT_PROMPT_START|>", "<|TEXT_PROMPT_END|>"
SPEECH_BEGINS, SPEECH_ENDS = "<|SPEECH_GENERATION_START|>", "<|SPEECH_GENERATION_END|>"
SHORTEST, LONGEST = 40, 150
"""Letters of a text that is spoken in one go, at least and at most: 10 s of speech, after which voices drift."""
LEAST = 10
"""Codes of the shortest phrase."""
SPARE, SPARE_CODES = 2.0, 75
"""A phrase runs away if it takes more than SPARE times the codes of its letters at the recording's pace, and
SPARE_CODES more."""
LETTER_CODES = (2.0, 8.0)
"""Codes of a letter at the fastest and the slowest pace that is believed of a recording; people mostly take 3.3."""


@dataclass(frozen=True, slots=True)
class Recording:
    """A voice's recording, as the model reads it."""

    phonemes: str
    codes: tuple[int, ...]
    letter_codes: float
    """Codes that a letter lasts: its pace."""
    letters: int
    """Number of letters in it."""


def recording(text: str, phonemes: str, codes: Sequence[int]) -> Recording:
    """The recording in which `text` is said."""
    (least, most), many = LETTER_CODES, max(1, letters(text))
    return Recording(phonemes, tuple(codes), min(most, max(least, len(codes) / many)), many)


class PromptWriter:
    """Writes the prompts of one NeuTTS model, and reads its codes. Raises EngineMissing: there is no tokenizer. Raises
    EngineError: it is no model of this kind."""

    def __init__(self, model: Path, codes: int) -> None:
        """`codes`: the number of codes that the codec knows."""
        from tokenizers import Tokenizer

        file = model / "tokenizer.json"
        if not file.exists():
            raise EngineMissing(f"neutts.model: {model} has no tokenizer.json")
        self._tokenizer = Tokenizer.from_file(str(file))
        self._speech = [self._token(f"<|speech_{code}|>") for code in range(codes)]
        self._codes = {token: code for code, token in enumerate(self._speech)}
        marks = (TEXT_BEGINS, TEXT_ENDS, SPEECH_BEGINS, SPEECH_ENDS)
        text_begins, text_ends, speech_begins, self.ends = map(self._token, marks)
        self._head = [*self._ids(ASKED), text_begins]
        self._middle = [text_ends, *self._ids(ANSWERED), speech_begins]

    def written(self, voice: Recording, phonemes: str) -> list[int]:
        """The tokens after which the model says the text that has these phonemes."""
        said = self._ids(f"{voice.phonemes} {phonemes}")
        return [*self._head, *said, *self._middle, *(self._speech[code] for code in voice.codes)]

    def letters_at_a_time(self, key: str, voice: Recording, context: int) -> int:
        """How long a text may be, so that it has room in a context of so many tokens, and a quarter to spare. `key`:
        where the configuration names the voice. Raises EngineError: the recording leaves none."""
        room = context - len(self.written(voice, ""))
        fits = int(room / (len(self._ids(voice.phonemes)) / voice.letters + 1.25 * voice.letter_codes))
        if fits < SHORTEST:
            raise EngineError(
                f"{key}: the recording leaves {max(0, room)} of neutts.max_model_len = {context} tokens for what is to "
                "be said; shorten it"
            )
        return min(LONGEST, fits)

    def codes(self, tokens: Iterable[int]) -> list[int]:
        """The codes of speech among the model's tokens."""
        return [self._codes[token] for token in tokens if token in self._codes]

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _token(self, name: str) -> int:
        token: int | None = self._tokenizer.token_to_id(name)
        if token is None:
            raise EngineError(f"neutts.model is no NeuTTS-Air that goes with neutts.codec: it has no token {name}")
        return token


def longest(text: str, voice: Recording, room: int) -> int:
    """Codes after which a phrase ends, whatever the model goes on with; `room`: what its context has left. Raises
    EngineError: nothing."""
    if room < LEAST:
        raise EngineError(f"A text of {len(text)} characters has so many phonemes that no room is left to say them.")
    return min(room, round(SPARE * letters(text) * voice.letter_codes) + SPARE_CODES)
