"""Written text -> words as people say them: prices, dates, times, telephone numbers, markdown, addresses, emoji."""

from voicepipe.languages.known import language_of
from voicepipe.languages.pronunciation import NONE, Pronunciations
from voicepipe.languages.spoken_pieces import Piece, pieces_by, together


def speakable(text: str, language: str = "en") -> str:
    """The text that a synthesiser should be given for `text`. Never raises; "" when there is nothing to say."""
    return together(pieces(text, language))


def pieces(text: str, language: str = "en", said_so: Pronunciations = NONE) -> list[Piece]:
    """The pieces of `text`, in order; their written parts joined are `text` itself. `said_so`: the words of which the
    agent says how they are said, before any form of the language."""
    return pieces_by(language_of(language).forms, text, said_so)
