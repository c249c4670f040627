"""Calls to the front desk of desk/front-desk.toml, made up: what the nano LLM learns from.

A caller who knows what it wants, so that the right reply is known by construction, speaks to a desk that answers as
the agent's file says, books tables slot by slot and puts callers through. Pure: all chance comes from `random.Random`.
"""

import json
import random
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.models.callers import NOISE, WORDS, framed, heldout, sentence, spoken, unclear
from tests.models.slots import DAYS, PEOPLE, TIMES, Slot, answered, asked_for, kept
from voicepipe.agent import ToolSpec
from voicepipe.conversation.prompt import Message, ToolCall

AGENT = tomllib.loads((Path(__file__).parent / "desk" / "front-desk.toml").read_text())
INTENTS = {intent["name"]: intent for intent in AGENT["intents"] if intent["name"] in {*WORDS["says"], "booking"}}
"""A part of what the agent knows, so that so small a model knows it well."""
FROM_FILE = 0.2
"""So many of the sentences are the agent's own examples."""
BOOK = ToolSpec("book_table", AGENT["tools"][0]["description"], AGENT["tools"][0]["parameters"])
TRANSFER = ToolSpec(
    "transfer_call",
    "Put the caller through to a person: colleague. Tell the caller first that you will.",
    {"type": "object", "required": ["to"], "properties": {"to": {"type": "string", "enum": ["colleague"]}}},
)
_NUMBER = {"type": "integer"}
ADD = ToolSpec(
    "add",
    "Adds two numbers.",
    {"type": "object", "properties": {"a": _NUMBER, "b": _NUMBER}, "required": ["a", "b"]},
)
"""Of the engines' contract suite: a tool that has nothing to do with restaurants."""
NO_BOOKING = "I am sorry, I cannot book a table right now. If you like, say: a person, please."
OFF_TOPIC = "That I cannot help you with, I am afraid. I know about the restaurant, and I can book a table."
NOT_BOOKED = "I am sorry, that did not work. For which other time may I try it?"
NO_TRANSFER = "I am sorry, nobody can take your call right now. Can I help you myself?"
SMALL_TALK = {"hello", "how_are_you", "thanks", "nothing_else", "goodbye", "repeat"}
"""What is said as it is: with an opener or a closer it would mean something else."""
SYSTEMS = (
    "You are helpful.",
    "You answer the telephone of a restaurant.",
    "Be brief.",
    "You are a friendly voice assistant.",
)
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()


@dataclass
class Call:
    """One call. `messages` is the whole conversation; `asked` says of each of the caller's turns what it was."""

    chance: random.Random
    tools: tuple[ToolSpec, ...]
    held_out: bool = False
    noise: Sequence[float] = NOISE
    messages: list[Message] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    misses: int = 0

    def hear(self, said: str, what: str) -> None:
        self.messages.append(Message("user", said))
        self.asked.append(what)

    def say(self, text: str) -> None:
        self.messages.append(Message("assistant", text))

    def use(self, tool: ToolSpec, arguments: Mapping[str, object], result: str, text: str = "") -> None:
        """`text`, said before it, is of the same reply."""
        call = ToolCall(f"call_{len(self.messages)}", tool.name, json.dumps(arguments))
        self.messages += [Message("assistant", text, call=call), Message("tool", result, call_id=call.call_id)]

    def last_reply(self) -> str:
        said = [message.text for message in self.messages if message.role == "assistant" and message.text]
        return said[-1] if said else AGENT["greeting"]

    def heard(self, said: str, keep: Sequence[str] = ()) -> str:
        return spoken(said, self.chance, keep, self.noise)

    def question(self, intent: str) -> str:
        """A caller's words for `intent`, as they reach the model."""
        said = self.worded(lambda: self.sentence(intent))
        return self.heard(said if intent in SMALL_TALK else framed(said, self.chance))

    def sentence(self, intent: str) -> str:
        if self.chance.random() < FROM_FILE and not self.held_out:
            return str(self.chance.choice(INTENTS[intent]["examples"]))
        return sentence(self.chance.choice(WORDS["says"][intent]), self.chance)

    def worded(self, say: Callable[[], str]) -> str:
        """What `say` comes up with, first time that it is a sentence for this call."""
        while heldout(said := say()) != self.held_out:
            pass
        return said


def call(seed: int, *, turns: int = 6, held_out: bool = False, noise: Sequence[float] = NOISE) -> Call:
    """A call of about so many turns of the caller. `held_out`: in sentences that no other call has."""
    chance = random.Random(seed)
    tools = chance.choice([(BOOK,), *[(BOOK, TRANSFER)] * 3, *[(BOOK, TRANSFER, ADD)] * 2, (ADD,), ()])
    made = Call(chance, tools, held_out, noise)
    if system := chance.choice(
        (AGENT["instructions"], AGENT["instructions"], *SYSTEMS[: chance.randint(1, 4)], "", "")
    ):
        made.messages.append(Message("system", system))
    if chance.random() < 0.8:
        made.say(AGENT["greeting"])
    while len(made.asked) < turns:
        _topic(made)
    return made


def _topic(call: Call) -> None:
    """What the caller does next."""
    kind = call.chance.random()
    if kind < 0.3:
        _book(call)
    elif kind < 0.36:
        _unclear(call)
    elif kind < 0.4:
        _repeat(call)
    elif kind < (0.5 if ADD in call.tools else 0.43):
        _add(call)
    else:
        _ask(call, call.chance.choice([name for name in INTENTS if name not in ("booking", "repeat")]))


def _ask(call: Call, intent: str, after: str = "") -> None:
    """A question with one answer, and `after` it what was asked before."""
    call.hear(call.question(intent), intent)
    call.misses = 0
    reply = INTENTS[intent]["reply"].strip()
    if "transfer" not in INTENTS[intent]:
        call.say(f"{reply} {after}".strip())
    elif TRANSFER not in call.tools:
        call.say(NO_TRANSFER)
    else:
        call.use(TRANSFER, {"to": INTENTS[intent]["transfer"]}, "Error: nobody answered within 30 s", reply)
        call.say(NO_TRANSFER)


def _unclear(call: Call, after: str = "") -> None:
    call.hear(unclear(call.chance), "unclear")
    replies = AGENT["not_understood"]
    call.say(f"Sorry, I did not catch that. {after}" if after else replies[min(call.misses, len(replies) - 1)])
    call.misses += 1


def _repeat(call: Call) -> None:
    reply = call.last_reply()
    call.hear(call.question("repeat"), "repeat")
    call.say(reply)


def _add(call: Call) -> None:
    one, other = call.chance.randint(0, 12), call.chance.randint(0, 12)
    names = NUMBERS if call.chance.random() < 0.5 else [str(number) for number in range(13)]
    form = call.chance.choice(
        ("add {} and {}", "what is {} plus {}", "please add {} and {}", "{} plus {}", "the sum of {} and {}")
    )
    call.hear(call.heard(form.format(names[one], names[other]), names), "add")
    call.misses = 0
    if ADD in call.tools:
        result = str(call.chance.choice((one + other, call.chance.randint(0, 99))))  # What the tool says counts.
        call.use(ADD, {"a": one, "b": other}, result)
        call.say(f"That makes {result}.")
    else:
        call.say(OFF_TOPIC)


# --- booking a table --------------------------------------------------------------------------------------------------


def _book(call: Call) -> None:
    chance = call.chance
    wanted = {"people": chance.choice(PEOPLE), "day": chance.choice(DAYS), "time": chance.choice(TIMES)}
    told = [name for name in wanted if chance.random() < 0.4]
    said = call.worded(lambda: asked_for(told, wanted, chance))
    call.hear(call.heard(framed(said, chance), kept(told, wanted)), "booking")
    call.misses = 0
    if BOOK not in call.tools:
        call.say(NO_BOOKING)
        return
    while missing := [name for name in wanted if name not in told]:
        question = INTENTS["booking"]["slots"][missing[0]]
        call.say(f"{_repeated(told, wanted)} {question.removeprefix('With pleasure. ')}" if told else question)
        if not _detour(call, question):
            return
        more = missing[:2] if len(missing) > 1 and chance.random() < 0.15 else missing[:1]
        call.hear(call.heard(answered(more, wanted, chance), kept(more, wanted)), "booking")
        told += more
    _booked(call, wanted)
    if chance.random() < 0.25:
        _correct(call, wanted)


def _repeated(told: Sequence[str], wanted: Mapping[str, Slot]) -> str:
    """What the desk has understood so far: "A table for 2, Friday at 7:30."."""
    said = {"people": " for {}", "day": ", {}", "time": " at {}"}
    return "A table" + "".join(form.format(wanted[name].value) for name, form in said.items() if name in told) + "."


def _detour(call: Call, question: str) -> bool:
    """Now and then something else before the answer. False: the caller does not want a table any more."""
    kind = call.chance.random()
    if kind < 0.08:
        _unclear(call, question)
    elif kind < 0.2:
        plain = [name for name in INTENTS if name not in SMALL_TALK | {"booking"} and "transfer" not in INTENTS[name]]
        _ask(call, call.chance.choice(plain), question)
    elif kind < 0.24:
        _ask(call, call.chance.choice(("person", "goodbye")))
        return False
    return True


def _booked(call: Call, wanted: dict[str, Slot]) -> None:
    arguments = {name: slot.value for name, slot in wanted.items()}
    if call.chance.random() < 0.05:
        call.use(
            BOOK,
            arguments,
            call.chance.choice(("Error: no table is free then", "Error: book_table took longer than 3000 ms")),
        )
        call.say(NOT_BOOKED)
        return
    result = f"It is booked, your reference is {' '.join(str(call.chance.randint(100, 999)))}."
    call.use(BOOK, arguments, result)
    call.say(f"{_repeated(list(wanted), wanted)} {result}")


def _correct(call: Call, wanted: dict[str, Slot]) -> None:
    """The caller takes one detail back."""
    name = call.chance.choice(list(wanted))
    wanted[name] = call.chance.choice({"people": PEOPLE, "day": DAYS, "time": TIMES}[name])
    before = call.chance.choice(
        ("no", "sorry", "actually", "no sorry", "i meant", "no i said", "make that", "can we make it", "rather")
    )
    call.hear(call.heard(f"{before} {answered([name], wanted, call.chance)}", kept([name], wanted)), "booking")
    _booked(call, wanted)
