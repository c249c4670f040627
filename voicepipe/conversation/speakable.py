"""Written text -> words as people say them: prices, dates, times, telephone numbers, markdown, addresses, emoji.

Each language is a table of (pattern, function); the first pattern that fits at a position is taken. Languages without a
table get the part that is the same in all of them: markdown, emoji and links are removed.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from voicepipe.conversation import characters
from voicepipe.conversation.verbaliser import ENGLISH, telephone
from voicepipe.conversation.verbaliser.addresses import IN_LINK
from voicepipe.conversation.verbaliser.form import Forms, constant


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of written text that begins and ends at a word, with the space after it, and what is said for it."""

    written: str
    spoken: str


def speakable(text: str, language: str = "en") -> str:
    """The text that a synthesiser should be given for `text`. Never raises; "" when there is nothing to say."""
    return together(pieces(text, language))


def together(parts: Iterable[Piece]) -> str:
    """All that is said for the pieces, as one text."""
    return " ".join(part.spoken for part in parts if part.spoken)


def pieces(text: str, language: str = "en") -> list[Piece]:
    """The pieces of `text`, in order; their written parts joined are `text` itself."""
    forms = LANGUAGES.get(language.lower().split("-")[0]) or LANGUAGES[""]
    result: list[Piece] = []
    said: list[_SpokenPart] = []
    start = at = 0
    while at < len(text):
        if text[at].isspace():
            gap, at = at, _next_word(text, at)
            result.append(Piece(text[start:at], _ended(_spaced(said), text[gap:at], at < len(text))))
            start = at
            said.clear()
            continue
        at, part = _spoken(forms, text, at)
        said.append(part)
    return [*result, Piece(text[start:], _spaced(said))] if start < len(text) else result


def _next_word(text: str, at: int) -> int:
    """The position at which the space at `at` ends; `at` itself where there is none."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


@dataclass(frozen=True, slots=True)
class _SpokenPart:
    """What is said for a part of a written word. `is_form`: a form of the language's table matched it."""

    words: str
    is_form: bool


def _spaced(said: list[_SpokenPart]) -> str:
    """What is said for a form stands apart from its neighbours: "5b" is "five b"; markup in a word parts nothing."""
    text, after_form = "", False
    for part in said:
        if part.words:
            apart = (part.is_form or after_form) and characters.ends_in_word(text) and part.words[0].isalnum()
            text += f" {part.words}" if apart else part.words
            after_form = part.is_form
    return " ".join(text.split())


def _spoken(forms: Forms, text: str, at: int) -> tuple[int, _SpokenPart]:
    """The end of the form at `at` and what is said for it; else of one plain run of letters, or of one sign."""
    if found := forms.find(text, at):
        end, said = found
        # A form that takes the space after its words ("- ") would hide a word's end.
        return at + len(text[at:end].rstrip()), _SpokenPart(said, is_form=True)
    # A run of letters goes as a whole: rules for numbers and marks begin at the edge of a word.
    end, words = characters.spoken(text, at)
    return end, _SpokenPart(words, is_form=False)


def _ended(said: str, gap: str, more: bool) -> str:
    """A line's end is heard as a pause: "one\\ntwo" is said "one, two"."""
    if more and "\n" in gap and characters.ends_in_word(said):
        return said + ("." if gap.count("\n") > 1 else ",")
    return said


# --- the tables --------------------------------------------------------------------------------------------------

MARKDOWN = (
    constant("fence", "`", r"(?m:^)`{3}\w*", ""),
    constant("heading", "#", r"(?m:^)#{1,6}(?=\s)", ""),
    constant("quotation", ">", r"(?m:^)>(?=\s)", ""),
    constant("list", "-*+•", r"(?m:^)[-*+•](?=\s)", ""),
    constant("rule", " :|*_-", r"(?m:^)(?=[ :|]*[-*_]{3})[ :|*_-]+(?m:$)", ""),
    constant("cell's end", "|", r"\|(?=\s|$)", ","),
    constant("cell", "|", r"\|", " "),
    constant("link", "![", r"!?\[(?=[^\[\]\n]*\]\()", ""),
    constant("link's end", "]", r"\]\([^)\s]{0,500}\)", ""),
    constant("emphasis", "*_~`", r"\*{1,3}|_{2,3}|(?<!\w)_(?=\w)|(?<=\w)_(?!\w)|~~|`+", ""),
)
NEUTRAL = Forms((*MARKDOWN, constant("URL", "h", rf"https?://[{IN_LINK}]*(?![.,;:!?)\]])[{IN_LINK}]", "")))

LANGUAGES = {"": NEUTRAL, "en": Forms((*telephone.KEYS, *MARKDOWN, *ENGLISH))}
"""The written forms of each language, by the tag's first part; "": all others."""
