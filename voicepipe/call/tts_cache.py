"""Fixed phrases of the agents, made once for all calls: they can be heard at once, even while the voice is dead.

A call that comes while the voice hangs has nothing of its own to say. What an agent says in trouble (acknowledgement,
fallback) is kept for every agent that is configured; what else it says word by word is kept while there is room: its
greeting and the like, and how each answer of its intents begins, which callers wait for.
"""

import asyncio
import logging
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from voicepipe.agent import Agent
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, EngineStalled
from voicepipe.call.call_tasks import CallTasks
from voicepipe.call.speech import PhraseSpeaker, said_so, voice_in
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.phrases import Phraser, sentences
from voicepipe.conversation.variables import has_variables
from voicepipe.engines.base import Speech, Tts
from voicepipe.engines.tts.conversion import Conversion
from voicepipe.languages.agent_texts import in_language
from voicepipe.languages.pronunciation import Pronunciations
from voicepipe.languages.speakable import pieces
from voicepipe.languages.spoken_pieces import together

log = logging.getLogger(__name__)
AGAIN_S, LATEST_S = 5.0, 600.0
"""After a phrase could not be made the first time; then twice as long each time, up to the second. The voice may be
well and yet unable to say the phrase, and an engine that fails three times in a row is loaded again."""
ROOM_BYTES = 64 << 20
"""Room for greetings and the like: twenty minutes at 24 kHz. What is said in trouble is kept beyond it, and as much
once more of what was converted to other rates."""
STANDS_S = 0.3
"""Seconds that settings must stand, as long as a greeting waits for a client's: first words come later."""

Sound = tuple[str, str, float]
"""What decides how a phrase sounds: the words as they are spoken, the voice, the speed. The rate is the engine's."""


class TtsCache:
    """The fixed phrases of a PoP's agents, made ahead for all its calls. Implements `base.MadeAhead`.

    `learn` sets the agents; `run` makes what is missing.
    """

    def __init__(self, tts: Tts, *, short: bool = False, room: int = ROOM_BYTES) -> None:
        """`short`: first phrases are cut after 2 to 5 words (`ladder.first_phrase`)."""
        self._tts = tts
        self._short = short
        self._room = room
        self._made: dict[Sound, tuple[Speech, ...]] = {}
        self._converted: OrderedDict[tuple[Sound, int], tuple[Speech, ...]] = OrderedDict()
        """Phrases converted to other rates, as calls asked for them; the one asked for last stands last."""
        self._vital: dict[Sound, None] = {}
        self._others: list[Sound] = []
        self._bytes = 0
        """Bytes of `_others` that are made."""
        self._changed = asyncio.Event()

    def get(self, spoken: str, voice: str, speed: float, rate: int) -> tuple[Speech, ...]:
        """The phrase at `rate` Hz. Empty: it was not made, or there is nothing to be heard."""
        sound = spoken, voice, speed
        if rate == self._tts.rate or sound not in self._made:
            return self._made.get(sound, ())
        if (sound, rate) not in self._converted:
            while self._converted and sum(map(_bytes, self._converted.values())) > self._room:
                self._converted.popitem(last=False)
            convert = Conversion(self._tts.rate, rate)
            self._converted[sound, rate] = tuple(map(convert, self._made[sound]))
        self._converted.move_to_end((sound, rate))
        return self._converted[sound, rate]

    def learn(self, agents: Iterable[Agent]) -> None:
        """Use these agents from now on: what none of them says is forgotten."""
        agents = [in_language(agent, tag) for agent in agents for tag in agent.spoken]
        self._vital = self._distinct(agents, _vital)
        others = self._distinct(agents, _others) | self._distinct(agents, self._beginnings)
        self._others = [sound for sound in others if sound not in self._vital]
        self._made = {sound: self._made[sound] for sound in (*self._vital, *self._others) if sound in self._made}
        self._converted.clear()
        self._bytes = sum(_bytes(self._made.get(sound, ())) for sound in self._others)
        self._changed.set()

    async def run(self) -> None:
        """Make what is missing, one phrase after the other, behind what callers wait for. Runs until cancelled."""
        pause_s = AGAIN_S
        while True:
            self._changed.clear()
            whole = await self._make()
            try:
                async with asyncio.timeout(None if whole else pause_s):
                    await self._changed.wait()
                    pause_s = AGAIN_S
            except TimeoutError:
                pause_s = min(LATEST_S, 2 * pause_s)

    async def _make(self) -> bool:
        """Make what is missing. Returns whether all is there."""
        whole = True
        for sound in (*self._vital, *self._others):
            vital = sound in self._vital
            if sound in self._made or not (vital or self._bytes < self._room):
                continue
            spoken, voice, speed = sound
            try:
                made = tuple([speech async for speech in self._tts.speak(spoken, voice=voice, speed=speed)])
            except EngineError as error:
                log.warning("cannot say %r ahead of time yet: %s", spoken, error)
                whole = False
                if isinstance(error, EngineDead | EngineBusy | EngineStalled):
                    break  # It could say nothing else either.
                continue
            if self._changed.is_set():
                return False  # There are other agents now.
            self._made[sound] = made
            self._bytes += 0 if vital else _bytes(made)
        return whole

    def _distinct(self, agents: Iterable[Agent], texts: Callable[[Agent], Iterator[str]]) -> dict[Sound, None]:
        sounds = dict[Sound, None]()
        for agent in agents:
            voice = voice_in(self._tts, agent, agent.voice)
            own = said_so(self._tts, voice, agent.pronounce)
            for text in texts(agent):
                if has_variables(text):  # Each call has a sound of its own for it.
                    continue
                if spoken := _spoken(text, agent.language, own):
                    sounds[spoken, voice, agent.speed] = None
        return sounds

    def _beginnings(self, agent: Agent) -> Iterator[str]:
        """The first phrase of each answer that the agent's intents give, unless a caller's details are part of it."""
        for intent in agent.intents:
            for text in (intent.reply, intent.denied, *intent.slots.values(), intent.confirm):
                if (phrase := _first_phrase(text, short=self._short)) and "{" not in phrase:
                    yield phrase


def _first_phrase(text: str, *, short: bool) -> str:
    """The first phrase of `text`, cut as a reply is that comes word by word."""
    cutter = Phraser(hurry=short)
    for word in re.findall(r"\s*\S+", text):
        if phrases := list(cutter.push(word)):
            return phrases[0]
    return "".join(cutter.flush())


@lru_cache(4096)
def _spoken(text: str, language: str, own: Pronunciations) -> str:
    """The text as it is spoken. Cached: when one agent's file is edited, only its texts are read anew."""
    return together(pieces(text, language, own))


def _vital(agent: Agent) -> Iterator[str]:
    """What an agent says in trouble, whole, as late replies say it."""
    yield agent.acknowledgement
    yield agent.fallback


def _others(agent: Agent) -> Iterator[str]:
    """What else an agent says word by word, sentence by sentence, as it is said."""
    for text in (agent.greeting, *agent.not_understood, *agent.no_input, agent.goodbye):
        yield from sentences(text)
    for tool in agent.tools:
        yield from tool.while_running  # whole, as they are said over nothing else


def _bytes(made: Iterable[Speech]) -> int:
    return sum(speech.pcm.nbytes for speech in made)


class FixedPhraseWarmUp:
    """Makes the acknowledgement and the fallback of one call ahead, with the call's own voice."""

    def __init__(self, speaker: Callable[[Agent], PhraseSpeaker], tasks: CallTasks) -> None:
        self._speaker = speaker
        self._tasks = tasks
        self._task: asyncio.Future[None] | None = None

    def begin(self, settings: CallSettings) -> None:
        """Make them once these settings have stood for a moment: a client may replace them at once."""
        if self._task:
            self._task.cancel()
        self._task = self._tasks.spawn(self._make(settings))

    async def _make(self, settings: CallSettings) -> None:
        await asyncio.sleep(STANDS_S)
        for text in (f"{settings.agent.acknowledgement} ", settings.agent.fallback):
            try:
                await self._speaker(settings.agent).keep(text, voice=settings.voice, speed=settings.speed)
            except EngineError as error:
                log.warning("cannot say %r ahead of time: %s", text, str(error))
