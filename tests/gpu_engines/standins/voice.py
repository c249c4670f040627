"""The voice beside the recogniser: the first phrase of each reply, and the later ones after it.

In production Kokoro speaks in the PoP's process, as the recogniser hears there, and vLLM has a process of its own. So a
turn goes there and back: the words that a settle found ask the language model, whose phrases come back to be spoken.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol

from voicepipe.sizing.prediction import latency_ms

TAIL_S = 0.6
"""Turns that end so shortly before the window does are not counted: most of their replies would be cut off."""
WARM_UPS, ALONE = 4, 20
"""Phrases of each kind, spoken with nothing beside them."""
HOW = (
    "end of speech to first sound: of each turn by itself, 80 ms of endpointing + settle + the language model's first "
    "phrase + the voice, with the ways between the processes; 160 ms at least"
)


class SpokenTo(Protocol):
    """The voice."""

    async def speak(self, *, first: bool) -> None:
        """A first phrase or a later one, as speech in the host's memory."""


class AskedLanguage(Protocol):
    """The language model that replies when it is asked to."""

    phrases: Connection
    """When phrases were whole, and for each the turn's number and its place in the reply."""

    def ask(self, turn: int, now: float) -> None: ...


@dataclass(slots=True)
class SpokenTurn:
    """Monotonic seconds; 0: not yet."""

    ended: float
    """The caller's speech: the settle was asked for."""
    phrase: float = 0.0
    """The first one was whole."""
    sound: float = 0.0
    """The first phrase's was in the host's memory."""


@dataclass(slots=True)
class VoiceFigures:
    """Of one window, in ms."""

    voice_first: list[float]
    """From the first phrase's text to its sound in the host's memory."""
    voice_later: list[float]
    turn: list[float]
    """As HOW says."""
    unanswered: int
    """Turns without a sound, of those that are counted."""


@dataclass(slots=True)
class SpokenReplies:
    """Of one window. But for what `turn` returns, all of it is the event loop's."""

    tts: SpokenTo
    language: AskedLanguage
    error: str = ""
    """The last one."""
    _turns: list[SpokenTurn] = field(default_factory=list)
    _later: list[tuple[float, float]] = field(default_factory=list)
    """When the phrase was whole, and when its sound was there."""
    _tasks: "set[asyncio.Task[None]]" = field(default_factory=set)

    def turn(self, ended: float) -> Callable[[float], None]:
        """A caller's speech has ended. Any thread may call what is returned with the time at which the words are on
        the host: that asks for the reply."""
        self._turns.append(SpokenTurn(ended))
        return partial(self.language.ask, len(self._turns) - 1)

    def listen(self) -> None:
        """Phrases that come are spoken from now on, until `deafen`."""
        asyncio.get_running_loop().add_reader(self.language.phrases.fileno(), self._came)

    def deafen(self) -> None:
        asyncio.get_running_loop().remove_reader(self.language.phrases.fileno())

    def figures(self, start: float, end: float) -> VoiceFigures:
        turns = [turn for turn in self._turns if start <= turn.ended < end - TAIL_S]
        heard = [turn for turn in turns if turn.sound]
        return VoiceFigures(
            voice_first=[1000 * (turn.sound - turn.phrase) for turn in heard],
            voice_later=[1000 * (sound - whole) for whole, sound in self._later if whole >= start],
            turn=[latency_ms(1000 * (turn.sound - turn.ended)) for turn in heard],
            unanswered=len(turns) - len(heard),
        )

    def _came(self) -> None:
        try:
            whole, phrases = self.language.phrases.recv()
        except (EOFError, OSError) as error:
            self.error = f"the language model's process tells no phrases: {type(error).__name__}"
            return self.deafen()
        for number, place in phrases:
            task = asyncio.get_running_loop().create_task(self._speak(number, place, whole))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _speak(self, number: int, place: int, whole: float) -> None:
        try:
            await self.tts.speak(first=place == 0)
        except Exception as error:
            self.error = " ".join(f"the voice: {type(error).__name__}: {error}".split())[:300]
            return
        now = time.monotonic()
        if place:
            self._later.append((whole, now))
        else:
            self._turns[number].phrase, self._turns[number].sound = whole, now


async def alone(tts: SpokenTo) -> tuple[list[float], list[float]]:
    """ms of first phrases and of later ones, one after the other."""
    took: dict[bool, list[float]] = {True: [], False: []}
    for first, each in took.items():
        for number in range(WARM_UPS + ALONE):
            began = time.monotonic()
            await tts.speak(first=first)
            if number >= WARM_UPS:
                each.append(1000 * (time.monotonic() - began))
    return took[True], took[False]
