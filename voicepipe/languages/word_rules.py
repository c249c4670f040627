"""The words of a language by its file: when a sentence is over, and what answers a question. Pure.

English has rules of its own (`en/`), which know more of its grammar; these do for languages of which a file is written.
"""

import functools
import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile

from voicepipe.base import odds
from voicepipe.base.words import plain
from voicepipe.languages.language import CompletenessRule, Language, TurnWords
from voicepipe.languages.language_file import LanguageFile, WordRule, any_of, lines_of, read_file, whole_words
from voicepipe.languages.learned_ends import LearnedEnds
from voicepipe.languages.questions import QuestionPatterns, last_question
from voicepipe.languages.spelling import Spelling, SpellingFile, spelling_file
from voicepipe.languages.spoken_pieces import pieces_by, together
from voicepipe.languages.written_form import Forms

OPEN, CLOSED, COMPLETE = -0.75, -0.25, 2.0
"""Log-odds that a turn ends, to which those learned from callers' sentences are added: after words of which no rule
knows anything; where one may end ("tomorrow", "at seven", a telephone number); and where one does ("thank you", a name
that is spelled to its end)."""
GRAMMAR = 1.5
"""Factor of the log-odds of a file's rules: what is learned from sentences must not outvote grammar."""
LONGEST = 2000
"""Characters. Nobody says more in a turn; a longer text stays as it is written."""
DICTATED, SPOKEN = 3, 2
"""So many digits in a row are dictated: fewer words may be a number of people."""
MOST_WORDS = 8
"""Words of an answer at most: what is longer is judged as a sentence."""
NAME_WORDS = 4
LONG_NUMBER = 3
"""Words of a number that is mostly whole."""
NEVER = "(?!)"
"""A pattern that is nowhere."""
SENTENCE_WORDS = 60
"""Words at the end of a turn that rules look at. More take time, and are other sentences."""
NUMERALS = re.compile(r"(?<![\w.,:/+-])0(?: ?\d){5,}(?![\w%€$]|[.,:/-]\d)")
"""A telephone number: each of its digits counts, also where people say two at once."""
DIGITS_ALONE = re.compile(r"(?<![\w.,:/])(?:\d{2}(?! ?[^\W\d])|\d{3,})(?![\w°%€$]|[.,:/]\d)")
"""Digits that are no time, no date and count nothing."""


def language_by_file(tag: str, forms: Forms) -> Language:
    """The language with the folder `tag`. Raises msgspec.ValidationError, re.error: its file is not right."""
    file = read_file(tag)
    words = SentenceWords(file, forms, lines_of(tag), spelling_file(tag))
    answers = AnswersByFile(file, words.spelling)
    turn = TurnWords(
        as_said=words.as_said,
        rules=words.rules,
        ends=words.ends,
        wants_digits=answers.wants_digits,
        answers=lambda text, asked: answers.answers(words.as_said(text, False), asked),
        is_lone=lambda text: answers.is_lone(words.as_said(text, False)),
        is_stray=lambda text, asked: answers.is_stray(words.as_said(text, False), asked),
        asks_to_wait=lambda text: answers.asks_to_wait(words.as_said(text, False)),
        is_digit=words.digits.__contains__,
        warm=words.warm,
    )
    return Language(tag, file.name, forms, turn, file.texts)


class SentenceWords:
    """Where sentences end, by a language's file. `lines`: of its `sentences.txt`; `spelling`: how its callers spell."""

    def __init__(self, file: LanguageFile, forms: Forms, lines: Sequence[str], spelling: SpellingFile) -> None:
        lists, self.spelling = file.words, Spelling(spelling, self._is_number)
        self.digits, self._fillers = frozenset(lists.digits.split()), frozenset(lists.fillers.split())
        self._file, self._forms = file, forms
        self._leads_on, self._last = frozenset(lists.leads_on.split()), frozenset(lists.last.split())
        self._before_numbers = frozenset(lists.before_numbers.split())
        self._number, self._number_of = re.compile(lists.numbers), whole_words(file.number_of)
        self._pairs, self._short_number_of = (
            whole_words(lists.pairs or NEVER),
            whole_words(file.short_number_of or NEVER),
        )
        self.rules = (
            CompletenessRule("in the middle of a number", self._inside_a_number, -6.0),
            CompletenessRule("the last word leads on", self._leads, -6.0),
            self.spelling.rule,
            *map(_rule, file.rules),
        )
        self.as_said = lru_cache(256)(self._as_said)
        self.learned = functools.cache(lambda: LearnedEnds(lines))

    def ends(self, said: str) -> float:
        """The probability (0..1) that a turn ends after these words."""
        words = said.split()
        if not words:
            return 0.0
        against = sum(rule.log_odds for rule in self.rules if rule.holds(words))
        # In what other sentences end says nothing of letters.
        learned = 0.0 if self.spelling.ends_in_letters(words) else self.learned().log_odds(words)
        return odds.probability((against or self._ends(words)) + learned)

    def warm(self) -> None:
        """Makes what takes long the first time, a second or so: what callers' sentences teach, the patterns, and the
        forms with the libraries behind them."""
        self.learned()
        for rule in self.rules:
            rule.holds([""])
        self._as_said("1 km", False)

    def _as_said(self, text: str, dictated: bool) -> str:
        if len(text) > LONGEST:
            return plain(text)
        spaced = NUMERALS.sub(lambda found: " ".join(re.findall(r"\d", found[0])), text)
        if dictated:
            spaced = DIGITS_ALONE.sub(lambda found: " ".join(found[0]), spaced)
        return plain(together(pieces_by(self._forms, spaced))) or plain(text)

    def _ends(self, words: Sequence[str]) -> float:
        """The log-odds that a turn ends with these words, against which nothing speaks."""
        if self._is_complete(words) or self.spelling.is_whole(words):
            return COMPLETE
        number = sum(1 for _ in takewhile(self._is_number, reversed(words)))
        at_seven = 0 < number < len(words) and words[-1 - number] in self._before_numbers
        return CLOSED if words[-1] in self._last or at_seven or number >= LONG_NUMBER else OPEN

    def _is_complete(self, words: Sequence[str]) -> bool:
        return bool(self._file.complete) and bool(self._complete.search(" ".join(words[-SENTENCE_WORDS:])))

    @functools.cached_property
    def _complete(self) -> "re.Pattern[str]":
        return re.compile(rf"(?<![\w']){any_of(self._file.complete)}$")

    def _is_number(self, word: str) -> bool:
        return word in self.digits or bool(self._number.fullmatch(word))

    def _inside_a_number(self, words: list[str]) -> bool:
        """Too few digits for a telephone number, or for another that was named."""
        words = [word for word in words if word not in self._fillers]
        said = sum(1 for _ in takewhile(self._is_number, reversed(words)))
        number, before = " ".join(words[len(words) - said :]), " ".join(words[: len(words) - said])
        digits = len(self._pairs.sub("two digits", number).split())
        lists = self._file.words
        if self._short_number_of.search(before):
            return 0 < digits < lists.short_digits
        if not 0 < digits < lists.phone_digits:
            return False
        one_by_one = all(word in self.digits for word in words[-said:][: SPOKEN if lists.pairs else said])
        dictated = (one_by_one and said >= DICTATED) or self._number_of.search(before)
        return bool(dictated) and not self._is_complete(words)

    def _leads(self, words: list[str]) -> bool:
        """The last word wants another: "for ...", "my ...", "um ..."."""
        leads_on = words[-1] in self._leads_on and not self._is_complete(words)
        return leads_on and not self.spelling.ends_in_letters(words)


def _rule(rule: WordRule) -> CompletenessRule:
    @functools.cache
    def patterns() -> tuple[re.Pattern[str], re.Pattern[str] | None]:
        return whole_words(rule.pattern), whole_words(rule.unless) if rule.unless else None

    def holds(words: list[str]) -> bool:
        pattern, unless = patterns()
        text = " ".join(words[-SENTENCE_WORDS:])
        return bool(pattern.search(text)) and not (unless and unless.search(text))

    return CompletenessRule(rule.why, holds, GRAMMAR * rule.log_odds)


class AnswersByFile:
    """Whether a few words answer what the agent has asked, by a language's file. `said`: as `as_said` returns it."""

    def __init__(self, file: LanguageFile, spelling: Spelling) -> None:
        words, asks, self._spelling = file.answers, file.questions, spelling
        value, beside = any_of(words.value), any_of((*words.before, *words.beside, *words.courtesy, *words.doubt))
        yes_no = any_of((*words.yes, *words.no))
        fillers, courtesy = any_of(tuple(file.words.fillers.split())), any_of((*words.courtesy, *words.doubt))
        self._value = re.compile(rf"(?<![\w'])(?:{value})(?![\w'])")
        self._values = re.compile(_several(rf"(?:{value}|{beside}|{fillers}|{yes_no})"))
        self._yes_or_no = re.compile(rf"(?:(?:{fillers}|{courtesy}) )*{yes_no}(?: (?:{yes_no}|{courtesy}|{fillers}))*")
        self._lone = frozenset(words.lone.split())
        wait = any_of(words.wait)
        self._wait = re.compile(rf"(?:(?:{fillers}|{courtesy}|{any_of(words.no)}) )*{wait}(?: (?:{wait}|{courtesy}))*")
        self._name, self._particles = re.compile(words.name), frozenset(words.name_particles.split())
        patterns = map(whole_words, (asks.invites, asks.digits, asks.spelled, asks.names, asks.detail))
        self._asks = QuestionPatterns(*patterns).asks
        self._leads_on, self._digits = frozenset(file.words.leads_on.split()), frozenset(file.words.digits.split())

    def wants_digits(self, asked: str) -> bool:
        """As `TurnWords.wants_digits`."""
        return self._asks(last_question(asked)) == "digits"

    def answers(self, said: str, asked: str) -> bool:
        """As `TurnWords.answers`."""
        asks, words = self._asks(last_question(asked)), said.split()
        if asks == "spelled":
            return self._spelling.answers(words, asked)
        if asks in ("", "digits") or not 0 < len(words) <= MOST_WORDS or self.asks_to_wait(said):
            return False
        if asks == "name":
            found = self._name.fullmatch(said)
            name = found[1].split() if found else []
            names = [word for word in name[:-1] if word not in self._particles] + name[-1:]
            return 0 < len(names) < NAME_WORDS and not self._leads_on.intersection(names)
        if asks == "yes" and self._yes_or_no.fullmatch(said):
            return True
        return bool(self._values.fullmatch(said) and self._value.search(said)) and not self._goes_on(words)

    def is_lone(self, said: str) -> bool:
        """As `TurnWords.is_lone`."""
        return said in self._lone

    def is_stray(self, said: str, asked: str) -> bool:
        """As `TurnWords.is_stray`."""
        wants_yes = self._asks(last_question(asked)) == "yes"
        return wants_yes and len(said.split()) == 1 and not self.answers(said, asked)

    def asks_to_wait(self, said: str) -> bool:
        """As `TurnWords.asks_to_wait`."""
        return len(said.split()) <= MOST_WORDS and bool(self._wait.fullmatch(said))

    def _goes_on(self, words: Sequence[str]) -> bool:
        """Its last word wants another, or it is three digits in a row: of a telephone number, not of guests."""
        digits = [word in self._digits for word in words]
        return words[-1] in self._leads_on or any(all(digits[at : at + 3]) for at in range(len(words) - 2))


def _several(pattern: str) -> str:
    return rf"{pattern}(?: {pattern})*"
