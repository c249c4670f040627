"""What is measured, the most telling first: where the time does not suffice, the end of the list is missing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

ALONE, PROCESSES, ONE = "alone", "two processes", "one process"
"""Where the language model is: nowhere, in a process of its own as in production, behind the recogniser's stream."""
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Case:
    where: str
    calls: int
    voice: bool = False
    """The replies are spoken, in the recogniser's process."""

    @property
    def lead_s(self) -> float:
        """Not measured: a reply of the language model takes most of a second."""
        return 0.4 if self.where == ALONE else 1.0

    @property
    def name(self) -> str:
        return f"{self.where}, {self.calls} calls{', voice' if self.voice else ''}"


CASES = (
    Case(ALONE, 64),
    Case(ALONE, 16),
    Case(PROCESSES, 64),
    Case(ONE, 64),
    Case(PROCESSES, 16),
    Case(ONE, 16),
    Case(ALONE, 1),
    Case(ALONE, 0),  # the clock by itself
    Case(ALONE, 32),
    Case(ALONE, 8),
    Case(PROCESSES, 48),
    Case(PROCESSES, 32),
)
MOST_CALLS = max(case.calls for case in CASES)


def chosen(only: str, calls: Sequence[int], voice: bool) -> list[Case]:
    """Cases with `only` in their names; with `voice` those of two processes alone, and it speaks. `calls`: numbers in
    place of the cases' own."""
    found = [case for case in CASES if re.search(rf"\b{re.escape(only)}", case.name)]
    if voice:
        found = [replace(case, voice=True) for case in found if case.where == PROCESSES]
    if calls:
        found = [replace(case, calls=number) for case in found for number in calls]
    return list(dict.fromkeys(found))
