"""Text -> phonemes of the IPA, by espeak-ng through ctypes: no phonemizer.

A call takes less than a millisecond; ctypes releases the GIL meanwhile.
"""

import ctypes
import difflib
import re

from voicepipe.base.errors import EngineError
from voicepipe.base.punctuation import in_latin
from voicepipe.engines.tts import espeak

_CHARS_UTF8 = 1
_IPA = 2
PUNCTUATION = re.compile(r"([;:,.!?¡¿—…\"«»“”]+(?=\s|$)|(?<=\s)[¡¿—…\"«»“”]+|^[¡¿—…\"«»“”]+)")
"""Punctuation that stays between the phonemes: signs beside a space, so that "3.5" and "10:30" stay whole."""
FLAG = re.compile(r"\([a-z-]{2,8}\)")
""" "(en)": espeak goes on by another language's rules."""


class Phonemizer:
    """Turns text into phonemes (IPA), by espeak-ng. For one thread at a time."""

    def __init__(self) -> None:
        """Raises EngineMissing, EngineError."""
        self._lib = espeak.library()
        espeak.initialised(self._lib)
        self._identifiers = espeak.identifiers(self._lib)
        self._lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._language = ""

    def phonemes(self, text: str, language: str) -> str:
        """`text` in the IPA, with its stresses and its punctuation. Raises EngineError: espeak-ng has no such
        language."""
        if language != self._language:
            name = self._identifiers.get(language.lower(), language)  # "en", "fr" are in no list, and espeak knows them
            if self._lib.espeak_SetVoiceByName(name.encode()) != 0:
                near = difflib.get_close_matches(language.lower(), self._identifiers, 3) or ["en-us"]
                raise EngineError(f"espeak-ng has no voice {language!r}: write a language such as {', '.join(near)}.")
            self._language = language
        parts = PUNCTUATION.split(in_latin(text))
        spoken = "".join(sign if index % 2 else self._spoken(sign) for index, sign in enumerate(parts))
        return " ".join(spoken.split())

    def _spoken(self, text: str) -> str:
        """Words without punctuation around them, with the spaces around them."""
        if not any(sign.isalnum() for sign in text):
            return " " if text else ""
        buffer = ctypes.create_string_buffer(text.encode())  # kept: espeak reads it clause by clause
        rest = ctypes.c_void_p(ctypes.addressof(buffer))
        clauses: list[str] = []
        while rest.value:
            said = self._lib.espeak_TextToPhonemes(ctypes.byref(rest), _CHARS_UTF8, _IPA)
            clauses.append(FLAG.sub("", (said or b"").decode(errors="ignore")).strip())
        before, after = (" " if end.isspace() else "" for end in (text[0], text[-1]))
        return before + " ".join(filter(None, clauses)) + after
