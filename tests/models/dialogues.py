"""Calls to the front desk of configs/agents/front-desk.toml, made up: what the nano LLM learns from.

A caller who knows what it wants, so that the right reply is known by construction, speaks to a desk that answers as
the agent's file says, books tables slot by slot and puts callers through. Pure: all chance comes from `random.Random`.
"""

import json
import random
import tomllib
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.models.callers import NOISE, framed, reworded, split, spoken, unclear
from tests.models.slots import DAYS, PEOPLE, TIMES, Slot, answered, asked_for
from voicepipe.agent import ToolSpec
from voicepipe.turn.prompt import Message, ToolCall

AGENT = tomllib.loads((Path(__file__).parents[2] / "configs" / "agents" / "front-desk.toml").read_text())
INTENTS = {intent["name"]: intent for intent in AGENT["intents"]}
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
NOT_BOOKED = "I am sorry, that did not work. For which other time may I try it?"
NO_TRANSFER = "I am sorry, nobody can take your call right now. Can I help you myself?"
SMALL_TALK = {
    "hello", "how_are_you", "thanks", "nothing_else", "goodbye", "repeat", "sorry", "compliment", "robot", "joke",
    "help", "off_topic",
}  # fmt: skip
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
        plain = self.chance.choice(split(INTENTS[intent]["examples"], held_out=self.held_out))
        if intent in SMALL_TALK and self.chance.random() < 0.7:
            return self.heard(plain)
        return self.heard(framed(reworded(plain, self.chance), self.chance))


def call(seed: int, *, turns: int = 6, held_out: bool = False, noise: Sequence[float] = NOISE) -> Call:
    """A call of about so many turns of the caller. `held_out`: in sentences that no other call has."""
    chance = random.Random(seed)
    tools = chance.choice(((BOOK,), (BOOK, TRANSFER), (BOOK, TRANSFER), (BOOK, TRANSFER, ADD), (ADD,), ()))
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
    if kind < 0.16:
        _book(call)
    elif kind < 0.21:
        _unclear(call)
    elif kind < 0.25:
        _add(call)
    elif kind < 0.28:
        _repeat(call)
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
        call.say(INTENTS["off_topic"]["reply"])


# --- booking a table --------------------------------------------------------------------------------------------------


def _book(call: Call) -> None:
    chance = call.chance
    wanted = {"people": chance.choice(PEOPLE), "day": chance.choice(DAYS), "time": chance.choice(TIMES)}
    told = [name for name in wanted if chance.random() < 0.4]
    said, kept = asked_for(told, wanted, chance)
    if not told and chance.random() < 0.5:
        said, kept = _plain_request(call), []
    call.hear(call.heard(framed(said, chance), kept), "booking")
    call.misses = 0
    if BOOK not in call.tools:
        call.say(NO_BOOKING)
        return
    while missing := [name for name in wanted if name not in told]:
        call.say(INTENTS["booking"]["slots"][missing[0]])
        if not _detour(call, INTENTS["booking"]["slots"][missing[0]]):
            return
        more = missing[:2] if len(missing) > 1 and chance.random() < 0.15 else missing[:1]
        said, kept = answered(more, wanted, chance)
        call.hear(call.heard(said, kept), "booking")
        told += more
    _booked(call, wanted)
    if chance.random() < 0.25:
        _correct(call, wanted)


def _plain_request(call: Call) -> str:
    """A sentence of the agent's file that names no detail."""
    details = set(NUMBERS) | {word for slot in (*DAYS, *TIMES) for form in slot.said for word in form.split()}
    details |= {"evening", "tomorrow", "wife", "family"}
    examples = split(INTENTS["booking"]["examples"], held_out=call.held_out)
    return call.chance.choice([example for example in examples if not details & set(example.split())])


def _detour(call: Call, question: str) -> bool:
    """Now and then something else before the answer. False: the caller does not want a table any more."""
    kind = call.chance.random()
    if kind < 0.08:
        _unclear(call, question)
    elif kind < 0.2:
        plain = [name for name in INTENTS if name not in SMALL_TALK | {"booking"} and "transfer" not in INTENTS[name]]
        _ask(call, call.chance.choice(plain), question)
    elif kind < 0.24:
        _ask(call, call.chance.choice(("sorry", "person", "goodbye")))
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
    call.say(f"A table for {wanted['people'].value}, {wanted['day'].value} at {wanted['time'].value}. {result}")


def _correct(call: Call, wanted: dict[str, Slot]) -> None:
    """The caller takes one detail back."""
    name = call.chance.choice(list(wanted))
    wanted[name] = call.chance.choice({"people": PEOPLE, "day": DAYS, "time": TIMES}[name])
    said, kept = answered([name], wanted, call.chance)
    before = call.chance.choice(
        ("no", "sorry", "actually", "no sorry", "i meant", "no i said", "make that", "can we make it", "rather")
    )
    call.hear(call.heard(f"{before} {said}", kept), "booking")
    _booked(call, wanted)


def fingerprint(calls: Sequence[Call]) -> int:
    """Equal for equal calls."""
    return zlib.crc32(repr([made.messages for made in calls]).encode())
