"""A language's file, `language.toml` in its folder: its words and texts, for who speaks the language and need not
program. Lists of words are texts with blanks between them; patterns are regular expressions over words as they were
said (`TurnWords.as_said`): small letters, numbers in words, no marks."""

import re
from collections.abc import Mapping
from importlib import resources
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from voicepipe.languages.language import AgentTexts

Pattern = Annotated[str, Meta(min_length=1)]
"""A regular expression."""
PART = re.compile(r"(?<!\?P)<([a-z_]+)>")
"""The name of a part in a pattern; not of a group."""


class WordLists(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Words by what they do in a sentence."""

    fillers: str
    """Said where a caller hesitates: "um"."""
    leads_on: str
    """Sentences seldom end with these: articles, prepositions, conjunctions, pronouns that want a verb, auxiliaries."""
    last: str
    """Sentences may well end with these: "please", "tomorrow", weekdays."""
    digits: str
    """Said for one digit of a telephone number."""
    numbers: Pattern
    """A word of a number; digits need not be in it."""
    before_numbers: str
    """"at", "for", "until": a number behind one of them is mostly whole."""
    pairs: str = ""
    """A pattern of one or more words that are said for two digits: "twelve", "thirty four"."""
    phone_digits: int = 8
    """A telephone number has at least so many digits: words, of which `pairs` count twice."""
    short_digits: int = 4
    """A number behind `short_number_of` has at least so many."""


class WordRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A sentence that has `pattern` in it, and not `unless`, is not over. Both are searched for in the whole text."""

    why: str
    """Why it is not over, in plain English: "the verb is missing"."""
    pattern: Pattern
    unless: str = ""
    log_odds: Annotated[float, Meta(le=0.0, ge=-12.0)] = -4.0
    """Added to the log-odds that the turn is over. -6: hardly ever; -3: seldom."""


class AnswerWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What callers answer with, in a few words. Patterns of one or more words."""

    yes: tuple[Pattern, ...]
    no: tuple[Pattern, ...]
    lone: str
    """One word that is a yes or a no, behind which "but ..." may follow."""
    courtesy: tuple[Pattern, ...]
    """"please", "thank you": beside every answer."""
    doubt: tuple[Pattern, ...] = ()
    """"perhaps": before or behind an answer."""
    before: tuple[Pattern, ...]
    """What may stand before a value: "for", "at", "we are"."""
    beside: tuple[Pattern, ...]
    """What may stand behind one: "people", "o'clock"."""
    value: tuple[Pattern, ...]
    """Numbers of people, days, dates and times."""
    name: Pattern
    """The whole of an answer to a question for a name, with the name as its group 1: "(?:my name is )?(.+)"."""
    name_particles: str = ""
    """Words inside names, although sentences do not end with them: "van", "de la"."""
    wait: tuple[Pattern, ...]
    """"wait", "one moment"."""


class QuestionWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the agent asks for, found in its question. Patterns over its plain words."""

    invites: Pattern
    """"How can I help you?": wants a sentence, of which "yes" is mostly the beginning."""
    digits: Pattern
    """Asks for a telephone number or the like."""
    spelled: Pattern
    """Asks for what people spell."""
    names: Pattern
    detail: Pattern
    """Asks for something that a yes is no answer to: "when", "how many"."""


class LanguageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All of the file."""

    name: str
    """The language's name in English."""
    parts: dict[str, str] = {}
    """Parts of patterns, by name: wherever "<name>" stands, in parts behind it too, it is the part. A pattern may go on
    in the next line behind a "|"."""
    number_of: Pattern
    """Found before the digits of a telephone number: "my number is"."""
    short_number_of: str = ""
    """Found before the digits of other numbers, which are often shorter: "my booking number", "ends in"."""
    words: WordLists
    complete: tuple[Pattern, ...] = ()
    """Patterns of ends of sentences, although their last word leads on, or they are few digits: "thank you"."""
    rules: tuple[WordRule, ...] = ()
    answers: AnswerWords
    questions: QuestionWords
    texts: AgentTexts


def read_file(tag: str) -> LanguageFile:
    """The file of a language that has a folder. Raises msgspec.ValidationError, re.error, KeyError (a part that
    is not there): it is not right."""
    text = resources.files(f"voicepipe.languages.{tag}").joinpath("language.toml").read_text("utf-8")
    read = msgspec.toml.decode(text)
    parts: dict[str, str] = {}
    for name, part in read.get("parts", {}).items():
        parts[name] = f"(?:{_filled(part, parts)})"
    return msgspec.convert(_filled({**read, "parts": parts}, parts), LanguageFile)


def _filled(value: Any, parts: Mapping[str, str]) -> Any:
    """`value`, as TOML has it, with the parts in place of their names."""
    if isinstance(value, str):
        return PART.sub(lambda found: parts[found[1]], value.replace("|\n", "|"))
    if isinstance(value, list):
        return [_filled(each, parts) for each in value]
    return {key: _filled(each, parts) for key, each in value.items()} if isinstance(value, dict) else value


def lines_of(tag: str) -> list[str]:
    """What its callers say, `sentences.txt` in the language's folder (`learned_ends.py`)."""
    return resources.files(f"voicepipe.languages.{tag}").joinpath("sentences.txt").read_text("utf-8").splitlines()


def any_of(patterns: tuple[str, ...]) -> str:
    """A pattern that is one of these."""
    return "(?:" + "|".join(patterns) + ")"


def whole_words(pattern: str) -> "re.Pattern[str]":
    """Finds the pattern where words begin and end."""
    return re.compile(rf"(?<![\w'])(?:{pattern})(?![\w'])")
