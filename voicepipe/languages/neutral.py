"""What is known of a language without a folder of its own: what all languages share."""

from voicepipe.base.words import plain
from voicepipe.languages.language import Language, TurnWords
from voicepipe.languages.markup import LINK, MARKDOWN
from voicepipe.languages.written_form import Forms

UNKNOWN = TurnWords(
    as_said=lambda text, dictated: plain(text),
    rules=(),
    ends=lambda said: 0.5,
    wants_digits=lambda asked: False,
    answers=lambda text, asked: False,
    is_lone=lambda text: False,
    is_stray=lambda text, asked: False,
    asks_to_wait=lambda text: False,
    is_digit=lambda word: False,
    is_known=False,
)
NEUTRAL = Language("", "any other", Forms((*MARKDOWN, LINK)), UNKNOWN)
