"""A conversation as the front desk sees it, folded anew from the prompt's messages each time: nothing is kept.

`hear` is the whole of it: (state, what the caller said) -> (state, what to answer).
"""

import re
from dataclasses import dataclass, field, replace

from voicepipe.agent import Agent, Intent
from voicepipe.engines.base import Message
from voicepipe.engines.frontdesk import slots
from voicepipe.engines.frontdesk.matcher import Match, Matcher
from voicepipe.engines.frontdesk.sound import words
from voicepipe.turn.keypad import as_digits

ACCEPT = 0.4
"""A match below this score is not understood, ..."""

MARGIN = 0.03
"""... nor one that is so close to the next."""

INTERJECTION = 0.5
"""In the middle of a task, a match for something else must be as good as this."""

SURE = 0.75
"""A match as good as this is something else even if a detail could be read from it ("parking for two cars")."""

MAX_CHARS = 2000
"""Nobody says more in a turn; a text message may be longer, and its beginning is read."""

CORRECTION = re.compile(
    r"^(?:no|nope|sorry|actually|wait|not)\b|\b(?:i meant|instead|rather|make (?:it|that)|change)\b"
)
"""The caller takes back a detail of a task that is done."""

LEAVING = re.compile(r"\b(?:never mind|forget (?:it|about)|cancel|leave it|goodbye|bye|that is all|not want|stop)\b")
"""The caller drops the task that is being filled."""


@dataclass(frozen=True, slots=True)
class State:
    """Where a conversation stands."""

    task: str = ""
    """Intent whose slots are being filled, or were last."""
    values: dict[str, str] = field(default_factory=dict)
    asked: str = ""
    """Slot that the caller has been asked for."""
    done: bool = False
    """The task is complete; its values stay for corrections."""
    last_reply: str = ""
    misses: int = 0
    """Turns in a row that were not understood."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What to say, and what to do about it."""

    text: str = ""
    """May hold {result}, when a tool is called."""
    tool: str = ""
    values: dict[str, str] = field(default_factory=dict)
    transfer: str = ""
    end_call: bool = False
    understood: bool = True


class Dialogue:
    """The rules of one agent."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.intents = {intent.name: intent for intent in agent.intents}
        self._matcher = Matcher(agent.intents)
        self._matches: dict[str, Match] = {}

    def match(self, text: str) -> Match:
        """The best intent for `text`. Kept, because every turn is heard again in each later one's fold."""
        if text not in self._matches:
            if len(self._matches) >= 4096:
                self._matches.clear()
            self._matches[text] = self._matcher.match(text)
        return self._matches[text]

    def after(self, state: State, message: Message) -> State:
        """Where the conversation stands after one more message."""
        if message.role == "user":
            return self.hear(state, as_digits(message.text))[0]
        return self._said(state, message.text) if message.role == "assistant" and message.text else state

    def hear(self, state: State, text: str) -> tuple[State, Answer]:
        """The caller says `text`: the new state, and the answer."""
        text = text[:MAX_CHARS]
        if not words(text):
            return self._missed(state)
        match = self.match(text)
        task = self.intents.get(state.task)
        if task and state.asked and not state.done:
            return self._in_task(state, task, text, match)
        if task and CORRECTION.search(" ".join(words(text))):
            values = self._read(task, text, "")
            if values:
                return self._advance(replace(state, values=state.values | values), task)
        if match.score < ACCEPT or match.margin < MARGIN:
            return self._missed(state)
        intent = self.intents[match.name]
        if intent.slots:
            fresh = State(task=intent.name, values=self._read(intent, text, ""), last_reply=state.last_reply)
            return self._advance(fresh, intent)
        return replace(state, misses=0), self._plain(state, intent)

    def _in_task(self, state: State, task: Intent, text: str, match: Match) -> tuple[State, Answer]:
        """An answer to the question, a detail that was not asked for, something else, or nothing."""
        other = match.name != task.name
        values = {} if other and match.score >= SURE else self._read(task, text, state.asked)
        if values:
            return self._advance(replace(state, values=state.values | values), task)
        leaving = bool(LEAVING.search(" ".join(words(text))))
        if other and match.score >= (ACCEPT if leaving else INTERJECTION):
            answer = self._plain(state, self.intents[match.name])
            if leaving or answer.transfer:
                return State(last_reply=state.last_reply), answer
            again = "" if answer.text == state.last_reply else f" {_question(task, state.asked)}"
            return replace(state, misses=0), replace(answer, text=answer.text + again, end_call=False)
        if leaving:
            return State(last_reply=state.last_reply), Answer(self.agent.acknowledgement)
        missed, answer = self._missed(state)
        excuse = re.split(r"(?<=[.!?])\s", self.agent.not_understood[0])[0] if self.agent.not_understood else ""
        return missed, replace(answer, text=f"{excuse} {_question(task, state.asked)}".strip())

    def _read(self, task: Intent, text: str, asked: str) -> dict[str, str]:
        """The details of `task` in `text`."""
        found = {slot: slots.reader(slot)(text, slot == asked) for slot in task.slots}
        strict = {slot: value for slot, value in found.items() if value and slot != asked}
        if asked and strict and not slots.reader(asked)(text, False):
            # "at seven", said when asked for the number of people, is a time and not seven people.
            return strict
        return {slot: value for slot, value in found.items() if value}

    def _advance(self, state: State, task: Intent) -> tuple[State, Answer]:
        """Ask for the next detail, or finish the task."""
        missing = next((slot for slot in task.slots if slot not in state.values), "")
        if missing:
            question = task.slots[missing] if not state.asked or missing != state.asked else _question(task, missing)
            return replace(state, asked=missing, done=False, misses=0), Answer(question)
        done = replace(state, asked="", done=True, misses=0)
        values = {slot: state.values[slot] for slot in task.slots}
        return done, Answer(fill(task.reply, values), task.tool, values, task.transfer, task.end_call)

    def _plain(self, state: State, intent: Intent) -> Answer:
        text = fill(intent.reply, {"last_reply": state.last_reply or self.agent.greeting})
        return Answer(text, intent.tool, {}, intent.transfer, intent.end_call)

    def _missed(self, state: State) -> tuple[State, Answer]:
        excuses = self.agent.not_understood or (self.agent.fallback,)
        answer = Answer(excuses[state.misses % len(excuses)], understood=False)
        return replace(state, misses=state.misses + 1), answer

    def _said(self, state: State, text: str) -> State:
        """The assistant really said `text`: an open question in it is the one that the caller answers."""
        task = self.intents.get(state.task)
        asked = state.asked
        if task and not state.done:
            asked = next((slot for slot in task.slots if _question(task, slot) in text), asked)
        return replace(state, asked=asked, last_reply=text)


def _question(task: Intent, slot: str) -> str:
    """The last sentence of the slot's question: "With pleasure. For how many?" is asked again as "For how many?"."""
    return re.split(r"(?<=[.!?])\s", task.slots[slot].strip())[-1]


def fill(template: str, values: dict[str, str]) -> str:
    """`template` with {name} replaced by its value, spaces tidied; {result} is left for the tool's result."""
    text = re.sub(
        r"\{(\w+)\}", lambda found: values.get(found[1], "{result}" if found[1] == "result" else ""), template
    )
    return " ".join(text.split())
