"""A text in the characters that voices know: the same words, in the spelling that most of them were made with."""

import unicodedata

import regex

_INVISIBLE = regex.compile(r"(?V1)[\p{Cf}--[\u200C\u200D]]+")
_CONTROL = regex.compile(r"(?V1)[\p{C}--\p{Cf}]")
_DIGIT = regex.compile(r"(?V1)[\p{Nd}--[0-9]]")
SEPARATORS = {"．": ".", "，": ",", "：": ":", "٫": ".", "٬": ","}
_SEPARATOR = regex.compile(rf"(?<=[0-9])[{''.join(SEPARATORS)}](?=[0-9])")
_APOSTROPHE = regex.compile(r"(?<=[\p{L}\p{M}])[ʼ＇](?=\p{L})")


def in_known_characters(text: str) -> str:
    """`text` with single spaces, and:

    - Letters composed (Unicode's NFC): espeak-ng reads no bare accents, and the parts of a Korean syllable one by one.
    - Digits of other scripts, and what parts them, as ASCII's: espeak-ng reads these in every language, and "２５" or
      "٢٥" in few.
    - The apostrophe that is a letter (U+02BC) as an apostrophe: espeak-ng reads its name.
    - Nothing that is invisible but the joiners. Controls are spaces: espeak-ng obeys Ctrl-A as a command.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
        text = _DIGIT.sub(lambda found: str(unicodedata.decimal(found[0], found[0])), text)
        text = _SEPARATOR.sub(lambda found: SEPARATORS[found[0]], text)
        text = _APOSTROPHE.sub("'", text)
    return " ".join(_CONTROL.sub(" ", text).split())
