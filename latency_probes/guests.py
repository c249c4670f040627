"""Guests who telephone the front desk: each wants something, answers what it is asked, and hears what it is told.

What a guest says next depends on the agent's last words, as in any conversation. What it wanted is compared with what
the server's tools were called with, which a voicepipe server tells in the metadata of its responses.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec

from latency_probes import clips
from latency_probes.clips import Utterance
from latency_probes.guest_file import BETTER_YES, Act, Aside, Guest
from latency_probes.plan import Over, Turn
from latency_probes.timeline import Timeline

MOST_TURNS = 24
MOST_CORRECTIONS = 2
"""Of one detail; then the guest gives in."""
TOOL = "voicepipe.tool."
QUESTIONS = {
    "right": r"is that right|shall i \w+ it",
    "change": r"should be different",
    "people": r"how many",
    "day": r"(?:which|what) (?:other )?day",
    "time": r"(?:what|which) time",
    "name": r"\bname\b",
    "phone": r"\bphone\b|\btelephone\b|\bnumber\b",
}
"""What the agent asks for: the last of these in its words."""


class Visit(msgspec.Struct):
    """What became of one guest's call."""

    guest: str
    voice: str
    reached: bool = False
    """Each act ended with its tool having been called with what the guest wanted."""
    why_not: str = ""
    impossible: list[str] = []
    """What was done and never could be."""
    wrong_asides: list[str] = []
    """What the agent said to a guest who had said something else, or wanted silence."""


@lru_cache(1)
def _spoken() -> dict[tuple[str, str], Utterance]:
    """The clips by text and voice."""
    return {(clip.text, clip.voice): clip for clip in clips.load(clips.GUEST_KINDS)}


@dataclass(slots=True)
class Conversation:
    """One guest's side of a call: the turn to take next, by what the agent has said."""

    guest: Guest
    voice: str
    visit: Visit = field(init=False)
    _act: int = 0
    _asked: dict[str, int] = field(default_factory=dict)
    _corrected: dict[str, int] = field(default_factory=dict)
    _done: set[str] = field(default_factory=set)
    _aside: Aside | None = None
    _put_off: str = ""
    """What was asked for when the aside was said."""
    _turns: int = 0
    _last: str = ""
    _yes: int = 0

    def __post_init__(self) -> None:
        self.visit = Visit(self.guest.name, self.voice)

    @property
    def act(self) -> Act:
        return self.guest.acts[self._act]

    def next(self, replies: Sequence[str], line: Timeline) -> Turn | None:
        """What the guest says to `replies`, what the agent has said since; None: it has no more to say."""
        self._judge_aside(replies)
        if self._turns == 0:
            return self._say(self.act.opens)
        if called := [arguments for name, arguments, result in uses(line) if name == self.act.tool and done(result)]:
            return self._next_act(called[-1])
        if self._turns == MOST_TURNS:
            self.visit.why_not = f"still talking after {MOST_TURNS} turns: {' '.join(replies)!r}"
            return None
        return self._answer(" ".join(replies))

    def end(self, line: Timeline) -> Visit:
        """The call is over."""
        for name, arguments, result in uses(line):
            for act in self.guest.acts:
                if name == act.tool and done(result):
                    wrong = [f"{key} {value}" for key, value in act.never.items() if arguments.get(key) == value]
                    self.visit.impossible += wrong
        if not self.visit.reached and not self.visit.why_not:
            self.visit.why_not = "the call ended"
        return self.visit

    def _next_act(self, called: dict[str, Any]) -> Turn | None:
        """The act's tool has done something: right, the guest goes on; wrong, it gives up."""
        different = [
            f"{key} {called.get(key)!r}, not {value!r}"
            for key, value in self.act.wants.items()
            if str(called.get(key)) not in str(value).split("|")
        ]
        if different:
            self.visit.why_not = f"{self.act.tool}: {'; '.join(different)}"
            return None
        self._act += 1
        if self._act == len(self.guest.acts):
            self.visit.reached = True
            return None
        self._asked, self._corrected = {}, {}
        return self._say(self.act.opens)

    def _answer(self, reply: str) -> Turn:
        asked, self._put_off = question(reply) or self._put_off, ""
        if asked == "right":
            return self._confirm(reply)
        if not asked:
            return self._say(self._last)
        if asked in self.act.aside and f"aside {asked}" not in self._done:
            self._done.add(f"aside {asked}")
            self._aside, self._put_off = self.act.aside[asked], asked
            return self._say(self._aside.text)
        answers = self.act.says.get(asked, [self.act.opens])
        number = self._asked.get(asked, 0)
        self._asked[asked] = number + 1
        return self._say(answers[min(number, len(answers) - 1)])

    def _confirm(self, reply: str) -> Turn:
        for slot, value in self.act.wants.items():
            if slot in self.act.says and not heard_back(slot, value, reply):
                if self.act.goes_on and "goes on" not in self._done:
                    self._done.add("goes on")
                    return self._say(self.act.goes_on)
                if self._corrected.get(slot, 0) < MOST_CORRECTIONS:
                    self._corrected[slot] = self._corrected.get(slot, 0) + 1
                    return self._say(self.act.corrects.get(slot, self.act.says[slot][-1]))
        self._yes += 1
        return self._say(BETTER_YES[(self._yes - 1) % len(BETTER_YES)])

    def _say(self, text: str) -> Turn:
        self._turns += 1
        self._last = text
        clip = _spoken()[text, self.voice]
        if self.act.over and "over" not in self._done and all(slot in self._asked for slot in self.act.says):
            self._done.add("over")
            self._aside = Aside(self.act.over, r"^(?:of course.?)?$")
            over = _spoken()[self.act.over, self.voice]
            return Turn(clip.kind, clip, Over(f"{clip.id}-{self.guest.name}", over))
        return Turn(clip.kind, clip)

    def _judge_aside(self, replies: Sequence[str]) -> None:
        """The reply to the aside; of what was said over a reply the ones after that."""
        aside, self._aside = self._aside, None
        if aside is None:
            return
        said = " ".join(replies[1:] if aside.text == self.act.over else replies)
        if not re.search(aside.expect, said.strip(), re.IGNORECASE):
            self.visit.wrong_asides.append(f"{aside.text!r}: {said!r}")


def question(reply: str) -> str:
    """What the agent asks for at the end of its words; empty: nothing that is known."""
    found = [(match.end(), slot) for slot, pattern in QUESTIONS.items() for match in re.finditer(pattern, reply, re.I)]
    return max(found)[1] if found and "?" in reply else ""


def heard_back(slot: str, value: str | int, reply: str) -> bool:
    """A read-back has this detail in it."""
    if slot == "phone":  # Not every read-back has it: "That is a table for 2. Shall I cancel it?"
        return "phone" not in reply or str(value) in re.sub(r"\D", "", reply)
    if slot == "people":
        return bool(re.search(rf"\bfor {value}\b", reply))
    return any(each.lower() in reply.lower() for each in str(value).split("|"))


def uses(line: Timeline) -> list[tuple[str, dict[str, Any], str]]:
    """The tools that ran in the call so far: name, arguments, result."""
    found = []
    for event in line.of_type("response.done"):
        metadata = event.data["response"].get("metadata") or {}
        for key in sorted(key for key in metadata if key.startswith(TOOL)):
            use = json.loads(metadata[key])
            try:
                arguments = json.loads(use.get("arguments") or "{}")
            except ValueError:  # Cut short.
                arguments = {}
            found.append((use["name"], arguments, use.get("result", "")))
    return found


def done(result: str) -> bool:
    """The tool did what it was asked to: it names no problem."""
    return not result.startswith(("{", "Error"))
