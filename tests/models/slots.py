"""Details of a booking, as callers say them and as the tool wants them."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.models.callers import WORDS

NUMBERS = "zero one two three four five six seven eight nine ten eleven".split()


@dataclass(frozen=True)
class Slot:
    value: int | str
    """As the tool gets it and the desk repeats it."""
    said: tuple[str, ...]
    """As callers say it."""


def _time(hour: int, minute: int) -> Slot:
    name, later = NUMBERS[hour], NUMBERS[hour % 11 + 1]
    if minute == 0:
        return Slot(
            f"{hour} o'clock",
            (name, f"{name} o'clock", f"{name} pm", f"{name} p m", f"{name} in the evening", f"{hour}", f"{hour} pm"),
        )
    digits = f"{hour}:{minute}"
    names = {
        15: (f"quarter past {name}", f"{name} fifteen"),
        30: (f"half past {name}", f"{name} thirty", f"half {name}"),
    }
    return Slot(digits, (digits, f"{digits} pm", *(names.get(minute) or (f"quarter to {later}", f"{name} forty five"))))


PEOPLE = tuple(Slot(number, (NUMBERS[number], NUMBERS[number], NUMBERS[number], str(number))) for number in range(1, 9))
DAYS = (
    *(
        Slot(day, (day.lower(), day.lower(), f"this {day.lower()}"))
        for day in "Tuesday Wednesday Thursday Friday Saturday Sunday".split()
    ),
    Slot("today", ("today",)),
    Slot("tonight", ("tonight", "this evening")),
    Slot("tomorrow", ("tomorrow", "tomorrow evening", "tomorrow night")),
)
TIMES = (
    *(_time(hour, 0) for hour in (1, 2, 5, 6, 7, 8, 9)),
    *(_time(hour, 30) for hour in (1, 2, 5, 6, 7, 8)),
    Slot("12 o'clock", ("noon", "twelve", "twelve o'clock", "12", "12 o'clock")),
    Slot("12:30", ("half past twelve", "twelve thirty", "12:30")),
)

HOMOPHONES = {
    "for two": ("for to", "for too"),
    "for four": ("for for",),
    "table for two": ("table for to", "tables for two"),
}


def asked_for(names: Sequence[str], wanted: dict[str, Slot], chance: random.Random) -> str:
    """A request that tells the details `names`."""
    parts = [_form(WORDS["forms"][name], name, wanted, chance) for name in chance.sample(names, len(names))]
    return _heard(" ".join([chance.choice(WORDS["requests"]), *parts]), chance)


def answered(names: Sequence[str], wanted: dict[str, Slot], chance: random.Random) -> str:
    """The answer that tells the details `names`."""
    first, *rest = names
    parts = [
        _form(WORDS["answers"][first], first, wanted, chance),
        *(_form(WORDS["forms"][name], name, wanted, chance) for name in rest),
    ]
    return _heard(" ".join(parts), chance)


def _form(forms: Sequence[str], name: str, wanted: dict[str, Slot], chance: random.Random) -> str:
    said, form = chance.choice(wanted[name].said), chance.choice(forms)
    if said.split()[0] in ("today", "tonight", "tomorrow", "this", "next"):
        form = form.replace("on {}", "{}")
    return form.format(said)


def _heard(said: str, chance: random.Random) -> str:
    for phrase, heard in HOMOPHONES.items():
        if said.endswith(phrase) and chance.random() < 0.15:
            said = said.removesuffix(phrase) + chance.choice(heard)
    return said


def kept(names: Sequence[str], wanted: dict[str, Slot]) -> list[str]:
    """The words that must not be misheard where these details are told."""
    return [word for name in names for form in wanted[name].said for word in form.split()] + ["for", "at", "on"]
