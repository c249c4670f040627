"""What the transcripts say: word error rate, right answers, and replies that are not an answer."""

import re
import unicodedata
from collections.abc import Sequence

ACKNOWLEDGEMENT = re.compile(
    r"\W*(one (moment|second)|just a (moment|second|minute)|let me (see|check|look|think)|mm+-?h?m*|h+m+|uh-?huh)\b",
    re.I,
)
"""A reply that begins like this was audible before there was an answer."""

HOLLOW = re.compile(r"\W*(okay|ok|sure|right|all right|alright|certainly|of course|yes|well|so)\W*", re.I)
"""A whole reply of this kind acknowledges and answers nothing."""

FALLBACK = re.compile(
    r"(did not|didn'?t|could not|couldn'?t|cannot|can'?t) (quite )?(get|catch|hear|understand)"
    r"|(say|repeat) (that|it)( once)? (again|more)|repeat that|rephrase|not sure (i|what|how)|having trouble"
    r"|technical (problem|difficult)|line is (not good|bad)",
    re.I,
)
"""A reply that asks again, or says that the server is in trouble."""

SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
SPELLINGS = {"harbour": "harbor", "ok": "okay", "alright": "all right", "oh": "zero", "cannot": "can not"}
CONTRACTED = {"'m": " am", "'re": " are", "'s": " is", "'ll": " will", "'ve": " have", "'d": " would", "n't": " not"}
QUARTERS = ("15", "30", "45")
WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*|\d+(?:-\d+)*")


def words(text: str) -> list[str]:
    """The words of `text` as they are spoken: lower case, no punctuation or accents, English numbers spelled out."""
    spoken: list[str] = []
    for word in WORD.findall(without_accents(text.lower().replace("’", "'"))):
        spoken += number(word) if word[0].isdigit() else spelled_out(SPELLINGS.get(word, word)).split()
    return spoken


def spelled_out(word: str) -> str:
    """Without contraction: "i'm" is "i am"."""
    for short, long in CONTRACTED.items():
        if word.endswith(short):
            return word.removesuffix(short) + long
    return word


def without_accents(text: str) -> str:
    """People leave them out."""
    return "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))


def number(digits: str) -> list[str]:
    """Digits as words: whole numbers up to 99, times such as 730, and otherwise one digit after the other."""
    if len(digits) == 3 and digits[1:] in QUARTERS and digits[0] != "0":
        return [*number(digits[0]), *number(digits[1:])]
    if len(digits) > 2 or (len(digits) == 2 and digits[0] == "0"):
        return [SMALL[int(digit)] for digit in digits.replace("-", "")]
    value = int(digits)
    return [SMALL[value]] if value < 20 else [TENS[value // 10], *([SMALL[value % 10]] if value % 10 else [])]


def errors(reference: Sequence[str], heard: Sequence[str]) -> int:
    """Words to substitute, insert and delete to get from one to the other."""
    row = list(range(len(heard) + 1))
    for at, expected in enumerate(reference, 1):
        diagonal, row[0] = row[0], at
        for index, word in enumerate(heard, 1):
            best = min(row[index] + 1, row[index - 1] + 1, diagonal + (expected != word))
            diagonal, row[index] = row[index], best
    return row[-1]


def word_error_rate(reference: str, heard: str) -> float:
    """Errors for every word of `reference`; may be over 1."""
    expected = words(reference)
    return errors(expected, words(heard)) / max(1, len(expected))


def contains(heard: str, part: str) -> bool:
    """Whether at least half of the words of `part` were heard, in any order: recognition is never perfect."""
    expected, found = words(part), words(heard)
    return 2 * sum(word in found for word in expected) >= len(expected)


def matches(reply: str, expect: Sequence[str]) -> bool:
    """Whether one of the expressions is found in `reply`; any reply will do where there is none."""
    return not expect or any(re.search(pattern, reply, re.I) for pattern in expect)


def is_acknowledgement(reply: str) -> bool:
    """Whether `reply` only acknowledges, or acknowledges first and answers later."""
    return bool(ACKNOWLEDGEMENT.match(reply) or HOLLOW.fullmatch(reply))


def after_acknowledgement(reply: str) -> str:
    """What `reply` goes on to say, where it acknowledges first; empty: nothing, or it does not."""
    acknowledged, *rest = re.split(r"(?<=[.!?])\s+", reply, maxsplit=1)
    return rest[0] if rest and is_acknowledgement(acknowledged) else ""


def is_fallback(reply: str) -> bool:
    """Whether `reply` asks again or apologises instead of answering."""
    return bool(FALLBACK.search(reply))
