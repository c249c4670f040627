"""What is measured, the most telling first: where the time does not suffice, the end of the list is missing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

ALONE, PROCESSES, ONE, EQUAL = "alone", "two processes", "one process, priorities", "one process, no priorities"
"""Where the language model is: nowhere, in a process of its own, behind the recogniser's stream, beside it."""
USUAL_MS, OFTEN_MS = 5.0, 0.5
"""`sys.setswitchinterval`."""
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Case:
    where: str
    calls: int
    graph: bool = True
    switch_ms: float = USUAL_MS
    voice: bool = False
    """The replies are spoken, in the recogniser's process."""

    @property
    def mode(self) -> str:
        return "graph" if self.graph else "eager"

    @property
    def lead_s(self) -> float:
        """Not measured: a reply of the language model takes most of a second."""
        return 0.4 if self.where == ALONE else 1.0

    @property
    def name(self) -> str:
        voice = ", voice" if self.voice else ""
        return f"{self.where}, {self.calls} calls, {self.mode}, switch interval {self.switch_ms} ms{voice}"


CASES = (
    Case(ALONE, 64),
    Case(ALONE, 16),
    Case(PROCESSES, 64),
    Case(ONE, 64),
    Case(ALONE, 64, graph=False),
    Case(ONE, 64, switch_ms=OFTEN_MS),
    Case(ALONE, 64, graph=False, switch_ms=OFTEN_MS),
    Case(PROCESSES, 16),
    Case(ONE, 16),
    Case(ALONE, 1),
    Case(ALONE, 0),  # the clock by itself
    Case(EQUAL, 64),
    Case(ALONE, 16, graph=False),
    Case(ALONE, 32),
    Case(ALONE, 64, switch_ms=OFTEN_MS),
    Case(ALONE, 1, graph=False),
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
