"""Details in what a caller says: how many people, which day, what time, a name, a telephone number. English.

Each kind has *strict* patterns, which find the detail anywhere in a sentence ("for two", "at half past seven"), and a
*loose* reading for the answer to the very question, where "to" is 2 and "heaven" is 7.
"""

import re
from collections.abc import Callable, Sequence

from voicepipe.engines.llm.frontdesk.sounds_alike import alike, likeness, sound, words
from voicepipe.languages.en.as_said import as_said
from voicepipe.languages.en.completeness import DIGITS
from voicepipe.languages.en.words import COMPANIONS, MONTHS, NO_NAME, NUMBERS, ORDINALS, TENS, WEEKDAYS

HOMOPHONES = {
    "to": 2, "too": 2, "do": 2, "tube": 2, "dude": 2, "for": 4, "fore": 4, "won": 1, "tree": 3, "free": 3, "sex": 6,
    "sick": 6, "ate": 8, "fife": 5, "heaven": 7, "tan": 10, "tin": 10,
}  # fmt: skip

COMPANION = rf"(?:{'|'.join(COMPANIONS)})"
GUESTS = r"(?:people|persons?|guests?|adults?|of us|seats?|friends|heads|diners|places)"
MINUTES = r"(?:0|oh) ?5|00|10|15|20|30|40|45|50"
"""Minutes of a time that is said by its numbers alone."""
NOT_A_COUNT = rf"(?! ?(?:oclock|am|pm|(?:{MINUTES})\b|in the|at night|minutes|hours))"

COUNTS: tuple[tuple[str, int | None], ...] = (
    (rf"\b(\d+) {GUESTS}\b", None),
    (rf"\b(?:party|group|table|reservation|booking|seats?|place|us) (?:of|for|4) (\d+)\b{NOT_A_COUNT}", None),
    (r"\b(?:we are|we will be|we would be|there are|there will be|it is|make it) (\d+)$", None),
    (rf"\bfor (\d+)\b{NOT_A_COUNT}", None),
    (rf"\bmy {COMPANION} and (?:i|me|myself)\b|\bme and my {COMPANION}\b|\bthe both of us\b|\ba couple\b", 2),
    (r"\b(?:just|only) (?:for )?(?:me|myself)\b|\bmyself\b|\balone\b|\bon my own\b", 1),
)
"""Pattern on the digits form of the text, and the number it means (None: its group)."""

ABOUT = "(?:at|around|about|by|maybe)"
"""Before a time."""
PAST = {"quarter": 15, "half": 30, "5": 5, "10": 10, "20": 20, "25": 25}
HALF_OF_DAY = (
    (r"\bpm\b|\bin the (?:evening|afternoon)\b|\bat night\b|\btonight\b|\bthis evening\b", "pm"),
    (r"\bam\b|\bin the morning\b", "am"),
)
RELATIVE_DAYS = (
    (r"\byesterday\b|\blast night\b", "yesterday"),
    (r"\bday after tomorrow\b", "the day after tomorrow"),
    (r"\btomorrow\b", "tomorrow"),
    (r"\btonight\b|\bthis evening\b|\bthis night\b", "tonight"),
    (r"\btoday\b|\bthis afternoon\b", "today"),
)

SOUNDS_LIKE = 0.75
"""A short answer to "how many?" is taken for a number that sounds so much like it."""

Reader = Callable[[str, bool], str]
"""(text, whether it answers the question for this very detail) -> the detail as it is written, "" for none."""


def digits(text: str) -> str:
    """The words of `text` with number words as digits: "half past seven for twenty five" -> "half past 7 for 25"."""
    joined = re.sub(r"\b([ap]) m\b", r"\1m", counted(words(text)))
    # "for to", "for for": what recognisers make of "for two" and "for four".
    joined = re.sub(r"\bfor (?:to|too|do)(?= |$)", "for 2", joined)
    return re.sub(r"\bfor for(?= |$)", "for 4", joined)


def counted(said: Sequence[str]) -> str:
    """Number words as digits, wherever they stand: "two hundred fifty" -> "250"."""
    result: list[str] = []
    tens = hundred = False
    for at, word in enumerate(said):
        number = NUMBERS.get(word)
        if word == "hundred" and at and said[at - 1] in NUMBERS:
            result[-1] += "00"
        # "eight hundred five five five" is a telephone number.
        elif number and ((tens and number < 10) or (hundred and not _is_digit(said[at + 1 : at + 2]))):
            result[-1] = str(int(result[-1]) + number)
        else:
            result.append(word if number is None else str(number))
        tens, hundred = word in TENS, word == "hundred" and result[-1] != word
    return " ".join(result)


def _is_digit(following: Sequence[str]) -> bool:
    return any(NUMBERS.get(word, 10) < 10 for word in following)


def count(text: str, asked: bool) -> str:
    """A number of people: "2"."""
    plain = digits(text)
    together = re.search(r"\b(\d+) adults? and (\d+|a) (?:child|children|kids?|baby|babies)\b", plain)
    if together:
        return str(int(together[1]) + (1 if together[2] == "a" else int(together[2])))
    for pattern, number in COUNTS:
        if found := re.search(pattern, plain):
            return found[1] if number is None else str(number)
    return str(_bare_number(text) or "") if asked else ""


def _bare_number(text: str) -> int | None:
    """The number that a short answer means, by homophones and at last by sound."""
    if found := re.findall(r"\b\d+\b(?!:)", digits(text)):
        return int(found[-1])
    tokens = [word for word in words(text) if not re.fullmatch(GUESTS, word)]
    # "for two" may come out as "for" or "to" alone; of "for to" and "for tube" the last word is the number.
    if len(tokens) <= 3 and (known := [HOMOPHONES[token] for token in tokens if token in HOMOPHONES]):
        return known[-1]
    if len(tokens) > 3:
        return None
    best = max(((alike(token, word), -number) for token in tokens for word, number in NUMBERS.items()), default=(0, 0))
    return -best[1] if best[0] >= SOUNDS_LIKE else None


def day(text: str, asked: bool) -> str:
    """A day as the caller named it: "Friday", "next Friday", "tomorrow", "the 5th of May"."""
    tokens = words(text)
    plain = " ".join(tokens)
    if date := _date(digits(text), tokens):
        return date
    for pattern, name in RELATIVE_DAYS:
        if re.search(pattern, plain):
            return name
    for token, before in zip(tokens, ["", *tokens], strict=False):
        singular = token.removesuffix("s")
        if singular in WEEKDAYS:
            return f"{before} {singular.title()}" if before in ("next", "last") else singular.title()
    return _day_by_sound(tokens, asked)


def _day_by_sound(tokens: Sequence[str], asked: bool) -> str:
    """ "fry day", "thirsty", "choose day"; outside the question only where there is a "day" in it."""
    pairs = [(sound(a) + sound(b), b) for a, b in zip(tokens, tokens[1:], strict=False) if b in ("day", "die", "they")]
    single = [(sound(token), token) for token in tokens if len(token) > 4 and token not in NUMBERS]
    heard = [key for key, token in [*pairs, *single] if asked or token.endswith("day")]
    names = [*WEEKDAYS, "tomorrow", "tonight"]
    best, name = max(((likeness(key, sound(name)), name) for key in heard for name in names), default=(0.0, ""))
    return (name.title() if name in WEEKDAYS else name) if best >= 0.75 else ""


def _date(plain: str, tokens: Sequence[str]) -> str:
    """A day of a month: "the 5th of May"."""
    month = next((name for name in MONTHS if name in tokens and (name != "may" or len(tokens) > 1)), "")
    pairs = zip(["", *tokens], tokens, strict=False)
    ordinals = (ORDINALS[token] + TENS.get(before, 0) for before, token in pairs if token in ORDINALS)
    number = next(ordinals, 0)
    if (
        month
        and not number
        and (found := re.search(rf"\b(\d+) ?(?:st|nd|rd|th)? (?:of )?{month}\b|\b{month} (?:the )?(\d+)\b", plain))
    ):
        number = int(found[1] or found[2])
    if not 1 <= number <= 31 or (not month and "the" not in tokens):
        return ""
    written = f"the {number}{_ending(number)}"
    return f"{written} of {month.title()}" if month else written


def _ending(number: int) -> str:
    return "th" if 10 < number < 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def time(text: str, asked: bool) -> str:
    """A time of day: "7:30", "7:30 pm", "7 o'clock", "noon"."""
    plain = re.sub(r"\bo clock\b", "oclock", digits(text))
    if re.search(r"\bnoon\b|\bmidday\b", plain):
        return "noon"
    half = next((name for pattern, name in HALF_OF_DAY if re.search(pattern, plain)), "")
    for reader in (_clock, _past, _hour):
        if (found := reader(plain)) is not None:
            return _written(*found, half)
    if asked and (keyed := re.fullmatch(r"(\d{1,2})(\d\d)", plain.replace(" ", ""))):  # 0735: keys have no colon
        return _written(int(keyed[1]), int(keyed[2]), half)
    number = _bare_number(text) if asked else None
    return _written(number, 0, half) if number is not None else ""


def _clock(plain: str) -> tuple[int, int] | None:
    """7 30, 7 oh 5, 18 hundred hours."""
    found = re.search(rf"(?<!\b\d )\b(\d{{1,2}}) ({MINUTES})\b(?! \d)", plain) or re.search(
        rf"\b{ABOUT} (\d{{1,2}}) (\d\d)\b", plain
    )
    found = found or re.search(rf"\b(\d{{1,2}})(00) hours\b|\b{ABOUT} (\d{{1,2}})(00)\b", plain)
    hour, minute = [group for group in found.groups() if group] if found else ("", "")
    return (int(hour), int(minute.replace("oh", "0").replace(" ", ""))) if found else None


def _past(plain: str) -> tuple[int, int] | None:
    """half past 7, quarter to 8, 10 minutes past 7."""
    # "to" is what is heard, and what a homophone of 2 would be: here it is the word.
    found = re.search(r"\b(quarter|half|5|10|20|25) (?:minutes )?(past|after|to|before) (\d{1,2})\b", plain)
    if not found:
        return None
    minutes, hour = PAST[found[1]], int(found[3])
    return (hour, minutes) if found[2] in ("past", "after") else ((hour - 2) % 12 + 1, 60 - minutes)


def _hour(plain: str) -> tuple[int, int] | None:
    """7 o'clock, 7 pm, at 7."""
    found = re.search(r"\b(\d{1,2}) (?:oclock|am|pm|in the (?:evening|morning|afternoon)|at night)\b", plain)
    found = found or re.search(rf"\b{ABOUT} (\d{{1,2}})\b(?! {GUESTS})", plain)
    return (int(found[1]), 0) if found else None


def _written(hour: int, minute: int, half: str) -> str:
    if not (0 <= hour <= 24 and 0 <= minute < 60):
        return ""
    half = half if 1 <= hour <= 12 else ""
    if minute or hour > 12:
        return f"{hour}:{minute:02} {half}".strip()
    return f"{hour} {half}" if half else f"{hour} o'clock"


LEAD = re.compile(
    r"\b(?:my name is|the name is|under the name(?: of)?|name is|under|this is|it is|i am|on the name|for)\s+(.+)"
)
SPELLS = frozenset("spelled spell spelling under for so and well um uh okay".split())
"""None of these stands for a name before a name that is spelled."""
NAME_WORDS = 4
_LETTER = r"(?:double )?[a-z](?: (?:as in|for|like) [a-z]{2,})?"
LETTERS = re.compile(rf"\b{_LETTER}(?:(?: and)? {_LETTER}){{2,}}\b")
"""A word that is spelled: "b r o w n", "b as in bravo, r, o, double n"."""


def name(text: str, asked: bool) -> str:
    """A person's name: "Ann Brown"; spelled in letters, too."""
    said = " ".join(words(text))
    if (asked or re.search(r"\b(?:name|spelled|spell)\b", said)) and (letters := LETTERS.search(said)):
        before = [word for word in said[: letters.start()].split() if word not in NO_NAME | SPELLS]
        return " ".join([*before[:-1], _joined(letters[0])]).title()
    found = LEAD.search(said)
    if not (asked or (found and re.search(r"\bname\b", said))):
        return ""
    rest = re.sub(r"^(?:(?:oh|well|um|uh|yes|sure|okay|no|sorry|and|for|under) )+", "", found[1] if found else said)
    tokens = re.sub(r" (?:please|thanks|thank you)$", "", rest).split()
    if not 0 < len(tokens) <= NAME_WORDS or {*tokens} & (NO_NAME | NUMBERS.keys()):
        return ""
    return " ".join(tokens).title()


def _joined(letters: str) -> str:
    found = re.findall(r"(double )?\b([a-z])\b(?: (?:as in|for|like) [a-z]{2,})?", letters)
    return "".join(letter * (2 if double else 1) for double, letter in found)


def phone(text: str, asked: bool) -> str:
    """A telephone number of six digits or more: "555 0142" comes out as "5550142"."""
    plain = digits(re.sub(r"\b(?:oh|o)\b", "zero", as_said(text, dictated=asked)))
    for times, word in ((2, "double"), (3, "triple")):
        plain = re.sub(rf"\b{word} (\d)\b", lambda found, n=times: found[1] * n, plain)  # type: ignore[misc]
    found = "".join(re.findall(r"\d+", plain))
    return found if len(found) >= 6 else ""


def free(text: str, asked: bool) -> str:
    """Whatever is answered."""
    return text.strip() if asked else ""


def nothing(text: str, asked: bool) -> str:
    """For a slot that is answered by the details of other slots."""
    return ""


KINDS: tuple[tuple[str, Reader], ...] = (
    ("change different", nothing),
    ("name", name),
    ("people persons guests party seats count many", count),
    ("phone telephone mobile contact", phone),
    ("time hour when", time),
    ("day weekday date", day),
)
"""Parts of a slot's name -> how it is read; the first that has one of them."""


def read(slot: str, text: str, asked: bool, before: str = "") -> str:
    """The slot of this name in `text`, empty: it is not there. `before`: what it was; of a name that is spelled anew
    the first names stay."""
    reads = _kind(slot)
    value = reads(text, asked)
    if reads is name and value and " " not in value and " " in before and LETTERS.search(" ".join(words(text))):
        return f"{before.rpartition(' ')[0]} {value}"
    return value


def of_others(slot: str) -> bool:
    """Whether the slot is answered by the details of other slots: "What should be different?", "At eight."."""
    return _kind(slot) is nothing


def is_dictated(text: str) -> bool:
    """Whether the text is nothing but a few digits, of a telephone number or the like."""
    said = words(text)
    return len(said) > 2 and DIGITS.issuperset(said)


def is_phone(slot: str) -> bool:
    """Whether the slot holds a telephone number: its digits are no time and no number of people."""
    return _kind(slot) is phone


def is_name(slot: str) -> bool:
    """Whether the slot holds a person's name."""
    return _kind(slot) is name


def before_number(text: str) -> str:
    """What is said before a telephone number, without what leads to it: of "Ann Brown, it's 555 0142" the name."""
    before = re.split(r"\d", digits(re.sub(r"\b(?:oh|double|triple)\b", "zero", as_said(text))), maxsplit=1)[0]
    return re.sub(r"(?:\b(?:and|my|the|telephone|phone|number|is|it)\s*)*$", "", before).strip()


def named(slot: str, said: str) -> bool:
    """Whether `said` speaks of this slot: "the number is wrong"."""
    reads = _kind(slot)
    its = (
        r"(?:tele)?phone|number" if reads is phone else r"people|persons|guests" if reads is count else re.escape(slot)
    )
    return bool(re.search(rf"\b(?:{its})\b", said))


def spoken(slot: str, value: str) -> str:
    """A value as it is read back: a telephone number by its digits, three and then four at a time."""
    if not is_phone(slot) or not value.isdecimal():
        return value
    parts = [value[:3], *(value[at : at + 4] for at in range(3, len(value), 4))]
    return ", ".join(" ".join(part) for part in parts)


def _kind(slot: str) -> Reader:
    """How the slot of this name is read: "contact_name" is a name, "discount" no count."""
    parts = {*slot.lower().split("_")}
    return next((reader for known, reader in KINDS if parts & {*known.split()}), free)
