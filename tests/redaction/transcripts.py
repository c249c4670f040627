"""Calls in which card numbers are told and keys are pressed, and calls in which other numbers are; made by chance, the
same for the same seed.

What is left to read of a number is judged by a reading of its own, which knows nothing of the redaction's.
"""

import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

Who = Literal["heard", "said", "tool"]
SHOWN = 7
"""Digits of a number in a row that must not be readable; of a shorter one, all of them."""

UNITS = {
    "en": "zero one two three four five six seven eight nine",
    "de": "null eins zwei drei vier fünf sechs sieben acht neun",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf",
    "es": "cero uno dos tres cuatro cinco seis siete ocho nueve",
    "it": "zero uno due tre quattro cinque sei sette otto nove",
    "nl": "nul een twee drie vier vijf zes zeven acht negen",
    "pt": "zero um dois três quatro cinco seis sete oito nove",
}
TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()


@dataclass(frozen=True)
class Line:
    who: Who
    text: str


@dataclass(frozen=True)
class Transcript:
    lines: tuple[Line, ...]
    secrets: tuple[str, ...] = ()
    """Digits that nothing may keep."""
    fragments: tuple[str, ...] = ()
    """What tells a good part of them, as it stands in the lines."""


# --- how numbers are said


def card(chance: random.Random, *, right: bool = True) -> str:
    """A card number; not `right`: with a digit that was misheard."""
    begin, size = chance.choice([("4", 16), ("4", 16), ("51", 16), ("2345", 16), ("37", 15), ("6011", 16), ("4", 19)])
    digits = begin + "".join(chance.choices("0123456789", k=size - len(begin) - 1))
    total = sum(sum(divmod(int(digit) * (2 if at % 2 == 0 else 1), 10)) for at, digit in enumerate(digits[::-1]))
    digits += str(-total % 10)
    if right:
        return digits
    at = chance.randrange(4, size)
    return digits[:at] + str((int(digits[at]) + 1) % 10) + digits[at + 1 :]


def one_by_one(chance: random.Random, digits: str, language: str = "en") -> str:
    words = UNITS[language].split()
    zero = chance.choice(["zero", "oh", "o", "nought"]) if language == "en" else words[0]
    return " ".join(zero if digit == "0" else words[int(digit)] for digit in digits)


def with_doubles(chance: random.Random, digits: str) -> str:
    said = []
    for found in re.finditer(r"(\d)\1{0,2}", digits):
        many = {1: "", 2: "double ", 3: "triple "}[len(found[0])]
        said.append(many + one_by_one(chance, found[1]))
    return " ".join(said)


def pair(digits: str) -> str:
    value = int(digits)
    if value < 10:
        return f"oh {UNITS['en'].split()[value]}" if value else "double zero"
    if value < 20:
        return TEENS[value - 10]
    unit = f"-{UNITS['en'].split()[value % 10]}" if value % 10 else ""
    return TENS[value // 10 - 2] + unit


def in_pairs(chance: random.Random, digits: str) -> str:
    if len(digits) % 2 and digits[-2:-1] in ("", "0"):  # "fifty two" would be 52.
        return one_by_one(chance, digits)
    even = digits[: len(digits) // 2 * 2]
    said = [pair(even[at : at + 2]) for at in range(0, len(even), 2)]
    return " ".join([*said, *([one_by_one(chance, digits[-1])] if len(digits) % 2 else [])])


def in_thousands(chance: random.Random, digits: str) -> str:
    if len(digits) != 4 or digits[0] == "0" or digits[1] == "0":
        return one_by_one(chance, digits)
    said = f"{UNITS['en'].split()[int(digits[0])]} thousand {UNITS['en'].split()[int(digits[1])]} hundred"
    return f"{said} {pair(digits[2:])}" if int(digits[2:]) else said


def other_digits(chance: random.Random, digits: str) -> str:
    first = chance.choice([0xFF10, 0x0660, 0x0966])
    return "".join(chr(first + int(digit)) for digit in digits)


def abroad(language: str) -> Callable[[random.Random, str], str]:
    return lambda chance, digits: one_by_one(chance, digits, language)


def written(chance: random.Random, digits: str) -> str:
    return digits


SPOKEN = (one_by_one, with_doubles, in_pairs, in_thousands)
WRITTEN = (written, written, other_digits)
WAYS = (*WRITTEN, *SPOKEN)
ABROAD = tuple(abroad(language) for language in UNITS if language != "en")


def groups(chance: random.Random, digits: str) -> list[str]:
    sizes = chance.choice([(4, 4, 4, 4, 4), (4, 6, 5, 4), (2,) * 10, (8, 8, 8), (3,) * 7, (5, 5, 5, 5), (len(digits),)])
    parts, at = [], 0
    for size in sizes:
        parts.append(digits[at : at + size])
        at += size
    return [part for part in parts if part]


BETWEEN_WRITTEN = (" ", "-", ".", ", ", " - ", " / ", " – ")
FILLERS = (" uh ", " um, ", " then ", " and ", ", ", ". ", " dash ", " let me see ", " hold on ", "... ", " okay so ")
GO_ON = (
    "go on",
    "Yes?",
    "mm-hm",
    "Okay, and then?",
    "Please continue.",
    "got it, go ahead",
    "And the rest?",
    "I'm listening.",
)
BEGINS = ("my card is ", "it's ", "sure, the card number is ", "", "Okay: ", "yes it's ", "my visa card number is ")


def utterance(chance: random.Random, parts: Iterable[str], fragments: list[str]) -> str:
    ways = chance.choice([WRITTEN, SPOKEN, WAYS, (chance.choice(ABROAD),)])
    way = chance.choice(ways)
    between = chance.choice(BETWEEN_WRITTEN if way in WRITTEN else (" ", ", "))
    said = ""
    for part in parts:
        way = chance.choice(ways) if chance.random() < 0.2 else way
        text = way(chance, part)
        if len(part) >= 4:
            fragments.append(text)
        gap = chance.choice(FILLERS) if chance.random() < 0.25 else between
        said += (gap if said else "") + text
    return said


# --- calls with secrets


def _told_in_turns(chance: random.Random, digits: str, fragments: list[str]) -> Iterator[Line]:
    parts = groups(chance, digits)
    turns = min(chance.choice([1, 1, 2, 2, 3, 4]), len(parts))
    cuts = sorted(chance.sample(range(1, len(parts)), turns - 1))
    for number, (begin, end) in enumerate(zip([0, *cuts], [*cuts, len(parts)], strict=True)):
        said = utterance(chance, parts[begin:end], fragments)
        heard = (chance.choice(BEGINS) if number == 0 else "") + said
        yield Line("heard", heard if chance.random() < 0.5 else heard.capitalize() + chance.choice(["", ".", ","]))
        if end == len(parts):
            continue
        answer = chance.choice(GO_ON)
        if chance.random() < 0.3:
            answer = f"{utterance(chance, parts[begin:end], fragments)}, {answer}"
        yield Line("said", answer)
        if chance.random() < 0.2:
            yield Line("heard", chance.choice(["uh", "one moment", "let me see", "hold on please", "okay"]))
            yield Line("said", "Sure.")


def _arguments(chance: random.Random, digits: str, code: str) -> str:
    fours = [digits[at : at + 4] for at in range(0, len(digits), 4)]
    shape: list[object] = [
        {"card": digits, "cvc": code, "guests": 4},
        {"number": int(digits), "amount": 120.5},
        {"number": " ".join(fours), "security_code": int(code)},
        {"parts": fours},
        {"parts": list(map(int, fours)) if all(four[0] != "0" for four in fours) else fours},
        [{"type": "card", "number": "-".join(fours)}],
        {"note": f"paid with {digits}"},
        json.dumps({"pan": digits}),
        {digits: "the caller's"},
    ]
    return json.dumps(chance.choice(shape), ensure_ascii=chance.random() < 0.5)


def with_card(chance: random.Random) -> Transcript:
    digits, code = card(chance, right=chance.random() < 0.7), "".join(chance.choices("123456789", k=3))
    fragments: list[str] = []
    lines = [Line("said", chance.choice(["How would you like to pay?", "Your card number, please?", "Yes?"]))]
    lines += _told_in_turns(chance, digits, fragments)
    if chance.random() < 0.5:
        lines.append(Line("tool", _arguments(chance, digits, code)))
    if chance.random() < 0.5:
        lines.append(Line("said", f"So that is {utterance(chance, groups(chance, digits), fragments)}?"))
    if chance.random() < 0.6:
        lines.append(Line("said", chance.choice(["And the expiry date?", "When does the card expire?"])))
        lines.append(Line("heard", chance.choice(["12/27", "twelve twenty-seven", "it's one two two seven", "12 27"])))
        lines.append(Line("said", chance.choice(["And the code on the back?", "And the three digits?", "The CVC?"])))
        way = chance.choice(WAYS)
        fragments.append(way(chance, code))
        lines.append(Line("heard", chance.choice(["", "it's ", "the code is "]) + fragments[-1]))
    lines.append(Line("said", "Thank you. See you on Friday at 7:30."))
    return Transcript(tuple(lines), (digits,), tuple(fragments))


def with_keys(chance: random.Random) -> Transcript:
    keys = (
        card(chance) if chance.random() < 0.3 else "".join(chance.choices("0123456789", k=chance.choice([4, 6, 8, 12])))
    )
    told = f"The caller pressed the keys {' '.join(keys)} on their telephone."
    words = chance.choice(["", "here it comes ", "my pin is "])
    lines = [Line("said", "Please type your number."), Line("heard", words + told)]
    fragments: list[str] = [" ".join(keys)]
    if chance.random() < 0.6:
        lines.append(
            Line("tool", json.dumps(chance.choice([{"pin": keys}, {"account": int(keys)}, {"note": f"it is {keys}"}])))
        )
    if chance.random() < 0.6:
        lines.append(Line("said", f"You typed {utterance(chance, [keys], fragments)}."))
    return Transcript(tuple(lines), (keys,), tuple(fragments))


WRONG = "wine sick heaven tent fire hive mine line eighth the tree night an full door him near they're".split()
PATIENT = (
    "take your time",
    "I see, what comes next?",
    "right, and after that?",
    "the system is slow today, one moment",
)
HESITANT = ("hold on I need my glasses", "it is a bit hard to read", "sorry the kids are loud", "where was I")


def misheard(chance: random.Random) -> Transcript:
    """By a recogniser that writes words alone, and some of them wrong."""
    digits = card(chance, right=False)
    words = one_by_one(chance, digits).split()
    for at in chance.sample(range(len(words)), chance.choice([0, 1, 2])):
        words[at] = chance.choice(WRONG)
    lines = [Line("said", "Can I have your card number, please?")]
    cuts = [0, *sorted(chance.sample(range(1, len(words)), chance.choice([0, 1, 2, 3]))), len(words)]
    for begin, end in pairwise(cuts):
        if begin and chance.random() < 0.3:
            lines += [Line("heard", chance.choice(HESITANT)), Line("said", chance.choice(PATIENT))]
        said = [word + chance.choice(["", "", "", "", " uh", " and", " sorry"]) for word in words[begin:end]]
        lines += [Line("heard", " ".join(said)), Line("said", chance.choice(PATIENT + GO_ON))]
    return Transcript(tuple(lines), (digits,))


def with_secrets(seed: int = 1, count: int = 200) -> list[Transcript]:
    chance = random.Random(seed)
    return [chance.choices((with_card, misheard, with_keys), (6, 2, 2))[0](chance) for _ in range(count)]


# --- calls without


def _phone(chance: random.Random) -> str:
    digits = chance.choice(["030", "0171", "212", "555"])
    digits += "".join(chance.choices("0123456789", k=chance.choice([10, 11]) - len(digits)))
    way = chance.choice([0, 1, 2, 3, 4])
    if way == 0:
        return f"{digits[:3]} {digits[3:6]} {digits[6:]}"
    if way == 1:
        return f"{digits[:3]}-{digits[3:6]}-{digits[6:]}"
    if way == 2:
        return f"+49 {digits[1:4]} {digits[4:10]}"
    return one_by_one(chance, digits) if way == 3 else digits


def innocent(chance: random.Random) -> Transcript:
    hour, minute = chance.randrange(1, 12), chance.choice([0, 15, 30, 45])
    time = chance.choice([f"{hour}:{minute:02d}", f"{hour} {minute or ''} pm", f"{pair(f'{hour:02d}')} thirty"])
    people = chance.choice(["4", "four", "two", "12", "twenty-five"])
    booking = "".join(chance.choices("0123456789", k=chance.choice([6, 8])))
    price = f"{chance.randrange(10, 400)}.{chance.choice(['00', '50'])}"
    day = chance.choice(["Friday", "the 21st", "2026-11-27", "27.11.2026", "November 27", "tomorrow"])
    phone = _phone(chance)
    visits = [
        [
            Line("heard", f"a table for {people} at {time} on {day} please"),
            Line("said", "And your phone number?"),
            Line("heard", f"{chance.choice(['', 'it is ', 'my number is '])}{phone}"),
            Line("tool", json.dumps({"people": people, "phone": phone, "time": time, "date": "2026-11-27"})),
            Line("tool", json.dumps({"booking": int(booking), "created": 1764265907000, "total": float(price)})),
            Line("said", f"That is a table for {people} at {time}. Your booking number is {booking}."),
        ],
        [
            Line("heard", f"my number is {phone}"),
            Line("said", "Sorry, could you say that again?"),
            Line("heard", phone),
            Line("said", "For how many people?"),
            Line("heard", people),
            Line("said", "What time?"),
            Line("heard", time),
            Line("said", f"Done, {time} on {day}."),
        ],
        [
            Line("heard", f"I have a booking, {booking}"),
            Line("said", f"Is it {booking}, for {people} people?"),
            Line("heard", "yes"),
            Line("said", f"It costs {price} euros, in room {chance.randrange(100, 500)}."),
            Line("heard", f"and how do I reach you, is it {phone}"),
            Line("said", f"Yes, {phone}, until {time}."),
        ],
        [
            Line("heard", "The caller would like to hear the opening hours."),
            Line("said", f"From 9 to 5, on {day} from 10 to 6."),
            Line("heard", f"there will be {people} of us, no one is late"),
            Line("said", f"Fine, {people} people."),
        ],
        [
            Line("heard", f"flight LH {chance.randrange(100, 3000)} at {time}"),
            Line("said", f"Gate {people}, seat 14C."),
            Line("heard", f"one moment. For one or two people? Call me back at {phone}"),
            Line("said", "Of course."),
        ],
    ]
    return Transcript(tuple(chance.choice(visits)))


def without_secrets(seed: int = 1, count: int = 200) -> list[Transcript]:
    chance = random.Random(seed)
    return [innocent(chance) for _ in range(count)]


# --- what is left to read

_VALUES = {word: str(value) for words in UNITS.values() for value, word in enumerate(words.split())}
_VALUES |= {"oh": "0", "o": "0", "nought": "0"}
_VALUES |= {word: str(value) for value, word in enumerate(TEENS, 10)} | {
    word: str(value) for value, word in enumerate(TENS, 2)
}


def readable(text: str) -> str:
    """All digits that a person finds in the text, in order."""
    digits, times = [], 1
    for word in re.findall(r"\d|[^\W\d_]+", text.lower()):
        times = {"double": 2, "triple": 3}.get(word, times)
        value = str(unicodedata.digit(word)) if word.isdecimal() else _VALUES.get(word, "")
        if value:
            digits.append(value * times)
            times = 1
    return "".join(digits)


def leaks(transcript: Transcript, kept: Iterable[str]) -> list[str]:
    """What can still be read of the secrets in these texts, one after the other."""
    together = "\n".join(kept)
    digits = readable(together)
    found = [fragment for fragment in transcript.fragments if len(fragment) >= 4 and fragment in together]
    for secret in transcript.secrets:
        size = min(SHOWN, len(secret))
        found += [part for at in range(len(secret) - size + 1) if (part := secret[at : at + size]) in digits]
    return found
