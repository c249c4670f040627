"""How callers of other languages say numbers, and a reading of such words of its own: a table of all that they say, by
num2words, which knows nothing of the redaction's words."""

import random
import re
import unicodedata
from functools import cache

from num2words import num2words

LANGUAGES = ("de", "fr", "es", "it")
UP_TO = 10_000
DIALECTS = {"fr": ("fr_BE", "fr_CH")}
"""septante, huitante, nonante."""
OTHER_WORDS = {
    "de": {"zwo": "2"},
    "fr": {"octante": "80", **{f"octante-{num2words(unit, lang='fr')}": f"8{unit}" for unit in range(2, 10)}},
    "es": {"ciento": "100"},
    "it": {},
}
TIMES = {
    "de": {2: ("doppel", "zweimal", "zweimal die", "zwei mal"), 3: ("dreimal", "dreimal die", "drei mal")},
    "fr": {2: ("double", "deux fois", "deux fois le"), 3: ("triple", "trois fois")},
    "es": {2: ("doble", "dos veces"), 3: ("triple", "tres veces", "tres veces el")},
    "it": {2: ("doppio", "due volte", "due volte il"), 3: ("triplo", "tre volte")},
}


@cache
def say(language: str, number: int) -> str:
    said: str = num2words(number, lang=language)
    return said.replace("dicotto", "diciotto")  # num2words 0.5.14: "trecentodicotto"


def unit(language: str, digit: str) -> str:
    return say(language, int(digit))


def one_by_one(chance: random.Random, digits: str, language: str) -> str:
    two = "zwo" if language == "de" and chance.random() < 0.3 else unit(language, "2")
    return " ".join(two if digit == "2" else unit(language, digit) for digit in digits)


def with_doubles(chance: random.Random, digits: str, language: str) -> str:
    """ "doppel fünf", "trois fois cinq"."""
    said = []
    for found in re.finditer(r"(\d)\1{0,2}", digits):
        many = chance.choice(TIMES[language].get(len(found[0]), ("",)))
        said.append(f"{many} {unit(language, found[1])}".strip())
    return " ".join(said)


def as_one(chance: random.Random, digits: str, language: str) -> str:
    """The digits as one number, with the noughts before it: "null dreihundertdreiundvierzig"."""
    rest = digits.lstrip("0")
    dialect = chance.choice((language, *DIALECTS.get(language, ()))) if len(rest) < 3 else language
    noughts = [unit(language, "0")] * (len(digits) - len(rest))
    return " ".join([*noughts, *([as_heard(chance, say(dialect, int(rest)), language)] if rest else [])])


def as_heard(chance: random.Random, said: str, language: str) -> str:
    """As recognisers write it: also in pieces, without hyphens, without accents."""
    way = chance.random()
    if way < 0.7:
        return said
    if language == "de" and way < 0.8:
        return re.sub(r"(?<=\w)und(?=\w*zig|dreißig)", " und ", in_pieces(said, language))
    if way < 0.85:
        return in_pieces(said, language).replace("-", " ")
    return unaccented(said) if language != "de" else said.replace("ß", "ss")


def in_pieces(said: str, language: str) -> str:
    """Hundreds and thousands as words of their own; in French, "soixante onze"."""
    if language == "fr":
        return said.replace(" et ", " ")
    return re.sub(r"(?<=tausend)(?=.)|(?<=hundert)(?=.)|(?<=mila)(?=.)|(?<=mille)(?=.)", " ", said)


def in_groups(size: int, language: str, chance: random.Random, digits: str) -> str:
    between = chance.choice([" ", ", "] if size < 3 else [", ", ", ", " "])
    return between.join(as_one(chance, digits[at : at + size], language) for at in range(0, len(digits), size))


def unaccented(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign))


# --- reading them


@cache
def table(language: str) -> dict[tuple[str, ...], str]:
    """The digits of each number, by its words."""
    known: dict[tuple[str, ...], str] = {}
    for tag in (language, *DIALECTS.get(language, ())):
        for number in range(UP_TO if tag == language else 100):
            known[tuple(words_of(say(tag, number)))] = str(number)
    known |= {tuple(words_of(in_pieces(" ".join(words), language))): digits for words, digits in known.items()}
    known |= {tuple(words_of(word)): digits for word, digits in OTHER_WORDS[language].items()}
    return known | {tuple(map(unaccented, words)): digits for words, digits in known.items()}


def words_of(text: str) -> list[str]:
    return re.findall(r"\d+|[^\W\d_]+", text.lower())


def readable(text: str, language: str) -> str:
    """All digits that a person finds in the text, in order: the longest numbers that its words make."""
    known, words, digits, at, times = table(language), words_of(text), [], 0, 1
    phrases = {tuple(words_of(said)): many for many, every in TIMES[language].items() for said in every}
    while at < len(words):
        size = next((size for size in range(9, 0, -1) if tuple(words[at : at + size]) in known), 0)
        many = next((size for size in (3, 2, 1) if tuple(words[at : at + size]) in phrases), 0)
        if many >= size and many:
            times = phrases[tuple(words[at : at + many])]
        elif size or words[at].isdecimal():
            digits.append((known[tuple(words[at : at + size])] if size else words[at]) * times)
            times = 1
        at += max(size, many, 1)
    return "".join(digits)
