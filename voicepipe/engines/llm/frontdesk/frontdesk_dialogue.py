"""A conversation as the front desk sees it, folded anew from the prompt's messages each time: nothing is kept.

`hear` is the whole of it: (state, what the caller said) -> (state, what to answer).
"""

import re
from dataclasses import dataclass, field, replace
from typing import Any

from voicepipe.agent import Agent, Intent
from voicepipe.conversation.own_tools import TRANSFER_TOOL
from voicepipe.engines.base import Message
from voicepipe.engines.llm.frontdesk import slots
from voicepipe.engines.llm.frontdesk.matcher import KeptMatches, Match
from voicepipe.engines.llm.frontdesk.results import as_object, detail, readable, text_of
from voicepipe.engines.llm.frontdesk.sounds_alike import words
from voicepipe.languages.en.answers import agrees, answers, declines, to_be_done
from voicepipe.languages.en.as_said import as_said
from voicepipe.turn.keypad import as_digits

ACCEPT = 0.4
"""A match below this score is not understood, ..."""

MARGIN = 0.03
"""... nor one that is so close to the next."""

INTERJECTION = 0.5
"""In the middle of a task, a match for something else must be as good as this."""

SURE = 0.75
"""A match as good as this is something else even if a detail could be read from it ("parking for two cars"). What would
end the call must be as good, and in the middle of a task what would put the caller through: "somewhere I can talk" was
"somewhere I can park"."""

STOP_WORDS = 5
"""At the end of a turn, that may ask us to listen: "just wait a minute please"."""

MAX_CHARS = 2000
"""Nobody says more in a turn; a text message may be longer, and its beginning is read."""

CORRECTION = re.compile(
    r"^(?:no|nope|sorry|actually|wait|not)\b|\b(?:i meant|instead|rather|make (?:it|that)|change)\b"
    r"|^(?:(?:but|and) )?(?:for|at|on)(?: \S+){1,3}$"
)
"""The caller takes back a detail of a task that is done, or says one again and nothing else: "but for four"."""

LEAVING = re.compile(r"\b(?:never mind|forget (?:it|about)|cancel|leave it|goodbye|bye|that is all|not want|stop)\b")
"""The caller drops the task that is being filled."""


@dataclass(frozen=True, slots=True)
class FrontdeskState:
    """The state of one conversation with the embedded engine: its task, the slots, and what was asked."""

    task: str = ""
    """Name of the intent whose slots are being filled, or were last."""
    values: dict[str, str] = field(default_factory=dict)
    asked: str = ""
    """Slot that the caller has been asked for."""
    confirming: bool = False
    """The caller has been asked whether the values are right."""
    stopped: bool = False
    """They have stopped us before we asked for more."""
    done: bool = False
    """The task is complete; its values stay for corrections."""
    checked: dict[str, str] = field(default_factory=dict)
    """Values that the task's `check` was last called with."""
    calls: dict[str, str] = field(default_factory=dict)
    """Tools that were called, by the call's id."""
    last_reply: str = ""
    misses: int = 0
    """Turns in a row that were not understood."""

    @property
    def open(self) -> bool:
        """Whether a question of the agent's waits for its answer."""
        return bool(self.asked) or self.confirming

    def afresh(self, task: str = "") -> "FrontdeskState":
        """The state after the task is over, or when another one begins."""
        return FrontdeskState(task=task, last_reply=self.last_reply, calls=self.calls)


@dataclass(frozen=True, slots=True)
class FrontdeskAnswer:
    """An answer of the embedded engine: what to say, and what to do about it."""

    text: str = ""
    """May hold {result}, when a tool is called."""
    tool: str = ""
    values: dict[str, str] = field(default_factory=dict)
    transfer: str = ""
    otherwise: str = ""
    """In place of `text`, where the call cannot be transferred, or handed over."""
    end_call: bool = False
    hand_over: str = ""
    understood: bool = True


class FrontdeskDialogue:
    """The dialogue rules of one agent, made from its intents."""

    def __init__(self, agent: Agent, matches: KeptMatches | None = None) -> None:
        """`matches`: those of an agent with the same intents and examples, if they are known; making them takes
        long."""
        self.agent = agent
        self.intents = {intent.name: intent for intent in agent.intents}
        self.matches = matches or KeptMatches(agent.intents)
        self.match = self.matches.match

    def after(self, state: FrontdeskState, message: Message) -> FrontdeskState:
        """The state of the conversation after one more message."""
        if message.role == "user":
            return self.hear(state, as_digits(message.text))[0]
        if message.role == "tool":
            return self.answered(state, message)[0]
        if message.call:
            state = replace(state, calls=state.calls | {message.call.call_id: message.call.name})
            if message.call.name == TRANSFER_TOOL:
                state = state.afresh()
        return self._said(state, message.text) if message.role == "assistant" and message.text else state

    def hear(self, state: FrontdeskState, text: str) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """The caller says `text`: the new state, and the answer."""
        text = text[:MAX_CHARS]
        if not words(text):
            return self._missed(state)
        match = self.match(text)
        task = self.intents.get(state.task)
        if task and not state.done:
            return self._in_task(state, task, text, match)
        if task and CORRECTION.search(" ".join(words(text))):
            values = self._read(state, task, text)
            if values:
                return self._advance(replace(state, values=state.values | values), task)
        if match.score < ACCEPT or match.margin < MARGIN or slots.is_dictated(text):
            return self._missed(state)
        intent = self.intents[match.name]
        if intent.slots:
            return self._begun(state, intent, text)
        if intent.end_call and match.score < SURE:
            return self._missed(state)
        return replace(state, misses=0), self._plain(state, intent)

    def _begun(self, state: FrontdeskState, task: Intent, text: str) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """A task that needs details, some of which the caller may have said already."""
        fresh = state.afresh(task.name)
        return self._advance(replace(fresh, values=self._read(fresh, task, text)), task)

    def answered(self, state: FrontdeskState, result: Message) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """A tool has answered: the new state, and what to say of it."""
        name, task = state.calls.get(result.call_id, ""), self.intents.get(state.task)
        if result.text.startswith("Error:"):
            said = self.agent.transfer_failed if name == TRANSFER_TOOL else self.agent.fallback
            return state, FrontdeskAnswer(said)
        if not task or name not in (task.check, task.tool):
            return state, FrontdeskAnswer(self._of_result(name, result.text))
        found = as_object(result.text)
        values = state.values | {slot: value for slot in task.slots if (value := detail(found.get(slot)))}
        if problem := text_of(found.get("problem")):
            return self._refused(replace(state, values=values), task, text_of(found.get("about")), problem)
        if name == task.check:
            return self._advance(replace(state, values=values), task)
        return state, FrontdeskAnswer(fill(task.reply, spoken(state.values) | {"result": readable(result.text)}))

    def _of_result(self, name: str, result: str) -> str:
        """What is said about a tool of no task: an intent's reply with {result} in it, or the result alone."""
        intent = next((each for each in self.intents.values() if each.tool == name and not each.slots), None)
        said = readable(result)
        return fill(intent.reply, {"result": said}) if intent else said or self.agent.acknowledgement

    def _refused(
        self, state: FrontdeskState, task: Intent, about: str, problem: str
    ) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """A tool would not have it: that detail is asked for again; without one the task is over."""
        if about not in task.slots:
            return state.afresh(), FrontdeskAnswer(problem)
        values = {slot: value for slot, value in state.values.items() if slot != about}
        # Not checked: the same once more is to be refused once more.
        again = replace(
            state, values=values, checked={}, asked=about, confirming=False, stopped=False, done=False, misses=0
        )
        return again, FrontdeskAnswer(f"{problem} {self._question(again, task)}")

    def _in_task(
        self, state: FrontdeskState, task: Intent, text: str, match: Match
    ) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """An answer to the question, a detail that was not asked for, something else, or nothing."""
        said = " ".join(words(text))
        other = self.intents[match.name] if match.name != task.name else None
        values = self._details(state, task, text, match)
        changed = {slot: value for slot, value in values.items() if state.values.get(slot) != value}
        if changed and (stop := self._stop(text)):
            taken = replace(state, values=state.values | changed, asked="", confirming=False, stopped=True)
            return taken, self._plain(taken, stop)
        if changed:
            return self._advance(replace(state, values=state.values | changed, confirming=False), task)
        if other and other.listens and match.score >= SURE:
            return replace(state, misses=0), self._plain(state, other)
        if (state.confirming or state.stopped) and declines(said):
            return self._denied(state, task, said)
        if state.confirming and self._agreed(state, task, said, repeating=bool(values), other=bool(other)):
            return self._advance(state, task, agreed=True)
        if values:
            return self._advance(state, task)
        leaving = bool(LEAVING.search(said)) and bool(other or match.score < ACCEPT)
        if other and (other.end_call or ((other.transfer or other.hand_over) and not leaving)) and match.score < SURE:
            other = None
        if other and match.score >= (ACCEPT if leaving or other.listens else INTERJECTION):
            return self._aside(state, task, text, other, leaving=leaving)
        if leaving:
            return self._dropped(state)
        if state.stopped and (task.confirm or agrees(said) or any(slot not in state.values for slot in task.slots)):
            return self._advance(state, task)
        missed, answer = self._missed(state)
        excuse = re.split(r"(?<=[.!?])\s", self.agent.not_understood[0])[0] if self.agent.not_understood else ""
        return missed, replace(answer, text=f"{excuse} {self._question(state, task)}".strip())

    def _stop(self, text: str) -> Intent | None:
        """The intent of the last words, where they ask us to listen: "five five five one two one two wait stop". Who
        interrupts as soon as the reply begins goes on with the turn that it answers."""
        said = words(text)
        for number in range(1, min(STOP_WORDS, len(said) - 1) + 1):
            match = self.match(" ".join(said[-number:]))
            if match.score >= SURE and self.intents[match.name].listens:
                return self.intents[match.name]
        return None

    def _details(self, state: FrontdeskState, task: Intent, text: str, match: Match) -> dict[str, str]:
        """The details of `task` in `text`: none if it surely is a question ("Do you have parking for two cars?")."""
        question = match.name != task.name and match.score >= SURE and not self.intents[match.name].slots
        if question and not (slots.is_phone(state.asked) or answers(text, self._question(state, task))):
            return {}
        return self._read(state, task, text)

    def _aside(
        self, state: FrontdeskState, task: Intent, text: str, other: Intent, *, leaving: bool
    ) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """In the middle of `task` something else is wanted: in its place, or as well."""
        if other.slots:
            return self._dropped(state) if leaving else self._begun(state, other, text)
        answer = self._plain(state, other)
        if other.listens:
            return replace(state, misses=0), answer
        if answer.transfer or answer.hand_over:
            return self._to_a_person(state, task, answer)
        if leaving:
            return state.afresh(), answer
        again = "" if answer.text == state.last_reply else f" {self._question(state, task)}"
        return replace(state, misses=0), replace(answer, text=answer.text + again, end_call=False)

    def _to_a_person(
        self, state: FrontdeskState, task: Intent, answer: FrontdeskAnswer
    ) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """Who is put through answers no question any more, and the task is over once the tool is called. Where the call
        cannot be transferred the task goes on: `otherwise` asks again, and of a confirmation reads all again, since
        "Is that right?" alone would seem to be about that."""
        asking = _asking(state, task) if state.confirming else self._question(state, task)
        otherwise = fill(f"{answer.otherwise} {asking or task.denied}", spoken(state.values))
        return replace(state, asked="", confirming=False, misses=0), replace(answer, otherwise=otherwise)

    def _dropped(self, state: FrontdeskState) -> tuple[FrontdeskState, FrontdeskAnswer]:
        return state.afresh(), FrontdeskAnswer(self.agent.acknowledgement)

    def _denied(self, state: FrontdeskState, task: Intent, said: str) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """No: what is wrong is asked for again, if it is named."""
        if wrong := next((slot for slot in task.slots if slots.named(slot, said)), ""):
            kept = {slot: value for slot, value in state.values.items() if slot != wrong}
            return self._advance(replace(state, values=kept, confirming=False), task)
        if task.denied.rstrip().endswith("?"):
            return replace(state, confirming=False, stopped=False, misses=0), FrontdeskAnswer(task.denied)
        return state.afresh(), FrontdeskAnswer(task.denied)

    def _agreed(self, state: FrontdeskState, task: Intent, said: str, *, repeating: bool, other: bool) -> bool:
        """A yes and nothing else, or in the words of the task: "cancel it please"."""
        if agrees(said, repeating=repeating):
            return True
        verb, what = to_be_done(said)
        if not verb or other:
            return False
        if verb in words(self._question(state, task)):
            return True  # "Shall I cancel it?" "Cancel my booking."
        own = what in ("it", "that") and not CORRECTION.search(said)
        return own and any(verb in words(example) for example in task.examples)

    def _read(self, state: FrontdeskState, task: Intent, text: str) -> dict[str, str]:
        asked = state.asked
        if slots.is_phone(asked):
            text = as_said(text, dictated=True)
        found = {slot: slots.read(slot, text, slot == asked, state.values.get(slot, "")) for slot in task.slots}
        if phone := next((slot for slot, value in found.items() if value and slots.is_phone(slot)), ""):
            # Its digits are no time and no number of guests; a name may stand before it.
            rest = slots.before_number(text)
            names = {slot: slots.read(slot, rest, slot == asked) for slot in task.slots if slots.is_name(slot)}
            return {phone: found[phone]} | {slot: value for slot, value in names.items() if value}
        strict = {slot: value for slot, value in found.items() if value and slot != asked}
        if asked and strict and slots.of_others(asked):
            return strict | {asked: ", ".join(strict.values())}
        if asked and strict and not slots.read(asked, text, False):
            # "at seven", said when asked for the number of people, is a time and not seven people.
            return strict
        return {slot: value for slot, value in found.items() if value}

    def _advance(
        self, state: FrontdeskState, task: Intent, *, agreed: bool = False
    ) -> tuple[FrontdeskState, FrontdeskAnswer]:
        """Ask for the next detail, or whether all is right, or finish the task. What is due is checked before that is
        said: `FrontdeskAnswer.text` stands for a check that finds nothing wrong."""
        missing = next((slot for slot in task.slots if slot not in state.values), "")
        if missing or (task.confirm and not agreed):
            again = bool(missing) and missing == state.asked
            asked = replace(state, asked=missing, confirming=not missing, stopped=False, done=False, misses=0)
            text = self._question(asked, task) if again else fill(_asking(asked, task), spoken(state.values))
            due = self._due(task, state.values)
            if due and due != state.checked:
                return replace(asked, checked=due), FrontdeskAnswer(text, task.check, due)
            return asked, FrontdeskAnswer(text)
        done = replace(state, asked="", confirming=False, stopped=False, done=True, misses=0)
        text = fill(task.reply, spoken(state.values))
        values = self._taken(task.tool, task, state.values)
        return done, replace(self._deeds(task), text=text, values=values)

    def _due(self, task: Intent, values: dict[str, str]) -> dict[str, str]:
        """What `check` is to be called with; nothing while it needs more."""
        if not task.check:
            return {}
        needs = self._schema(task.check).get("required", task.slots)
        return self._taken(task.check, task, values) if all(slot in values for slot in needs) else {}

    def _taken(self, tool: str, task: Intent, values: dict[str, str]) -> dict[str, str]:
        """The values that the tool has parameters for, in the order of the slots."""
        takes = self._schema(tool).get("properties") or task.slots
        return {slot: values[slot] for slot in task.slots if slot in values and slot in takes}

    def _schema(self, name: str) -> dict[str, Any]:
        return next((tool.parameters for tool in self.agent.tools if tool.name == name), {})

    def _question(self, state: FrontdeskState, task: Intent) -> str:
        """The open question, again: of "With pleasure. For how many?" the last sentence."""
        return re.split(r"(?<=[.!?])\s", fill(_asking(state, task), spoken(state.values)))[-1]

    def _plain(self, state: FrontdeskState, intent: Intent) -> FrontdeskAnswer:
        text = fill(intent.reply, {"last_reply": state.last_reply or self.agent.greeting})
        return replace(self._deeds(intent), text=text)

    def _deeds(self, intent: Intent) -> FrontdeskAnswer:
        """What an intent does, without its words."""
        return FrontdeskAnswer(tool=intent.tool, transfer=intent.transfer, otherwise=self.agent.cannot_transfer,
                               end_call=intent.end_call, hand_over=intent.hand_over)  # fmt: skip

    def _missed(self, state: FrontdeskState) -> tuple[FrontdeskState, FrontdeskAnswer]:
        excuses = self.agent.not_understood or (self.agent.fallback,)
        answer = FrontdeskAnswer(excuses[state.misses % len(excuses)], understood=False)
        return replace(state, misses=state.misses + 1), answer

    def _said(self, state: FrontdeskState, text: str) -> FrontdeskState:
        """The assistant really said `text`: an open question in it is the one that the caller answers."""
        task = self.intents.get(state.task)
        if not task or state.done:
            return replace(state, last_reply=text)
        asked, confirming = state.asked, state.confirming
        for at in [replace(state, asked=slot) for slot in task.slots] + [replace(state, asked="", confirming=True)]:
            if (question := self._question(at, task)) and question in text:
                asked, confirming = at.asked, not at.asked
                break
        return replace(state, asked=asked, confirming=confirming, last_reply=text)


def _asking(state: FrontdeskState, task: Intent) -> str:
    """The text of the open question; empty: there is none."""
    return task.slots[state.asked] if state.asked else task.confirm if state.confirming else ""


def spoken(values: dict[str, str]) -> dict[str, str]:
    """The slots' values as they are read back."""
    return {slot: slots.spoken(slot, value) for slot, value in values.items()}


def fill(template: str, values: dict[str, str]) -> str:
    """`template` with {name} replaced by its value, spaces tidied; {result} is left for the tool's result."""
    text = re.sub(
        r"\{(\w+)\}", lambda found: values.get(found[1], "{result}" if found[1] == "result" else ""), template
    )
    return " ".join(text.split())
