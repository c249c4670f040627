"""A phrase from text to samples: speakable words, the voice, the line's rate, and where each word ends."""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass

import numpy as np

from voicepipe.agent import Agent, Pronunciation
from voicepipe.audio import Pcm
from voicepipe.base.words import written
from voicepipe.engines.base import MadeAhead, ReadsIpa, Speech, Tts
from voicepipe.engines.tts.conversion import Conversion, converter
from voicepipe.languages.pronunciation import NONE, Pronunciations
from voicepipe.languages.speakable import pieces
from voicepipe.languages.spoken_pieces import Piece, ends_in_word, together
from voicepipe.languages.tags import named_in, primary

KEPT, KEPT_BYTES = 6, 4 << 20
"""Texts, and bytes of sound, that a call keeps made ahead: three settings' worth, a minute and a half at 24 kHz."""


NOBODY = Agent("nobody")
"""An agent as every file begins."""
Entries = Mapping[str, str | Pronunciation]
"""As `Agent.pronounce`."""


def said_so(tts: Tts, voice: str, entries: Entries) -> Pronunciations:
    """The entries as this voice of `tts` takes them."""
    return Pronunciations.of(entries, ipa=isinstance(tts, ReadsIpa) and tts.reads_ipa(voice)) if entries else NONE


@dataclass(eq=False, slots=True)
class AnswerDraft:
    """A draft of an answer, as a language model writes it; it stands until it is withdrawn."""

    withdrawn: bool = False
    """The draft was no answer: none of it begins to be heard any more."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A piece of a reply, ready to be played: int16[n] at the line's rate."""

    text: str
    """The text as written; empty for the later pieces of a phrase that the engine delivers in parts."""
    pcm: Pcm
    words: tuple[tuple[str, int], ...] = ()
    """The written words, each with the space behind it, and the sample of this piece at which each has been heard."""
    stand_in: bool = False
    """It is not of the answer, but said instead of it or while it is waited for."""
    more: bool = False
    """The next piece goes on with its sound."""
    answer: int = 0
    """Number of the model's answer that it is part of: the model answers again after each of its calls of tools."""
    draft: AnswerDraft | None = None
    """The draft that it is part of; None: it is a fixed text."""

    @property
    def withdrawn(self) -> bool:
        return self.draft is not None and self.draft.withdrawn


def voice_in(tts: Tts, agent: Agent, asked: str) -> str:
    """The name of the voice that speaks for `agent` where `asked` is asked for. Where callers may speak several
    languages it is one that speaks the agent's present one."""
    language = agent.language
    if len(agent.languages) > 1:
        own = named_in(agent.voices, language)
        if own and asked in ("", agent.voice):
            asked = agent.voices[own]
        elif asked and primary(tts.voices().get(asked, language)) != primary(language):
            asked = ""
    return tts.voice_for(asked, language)


class PhraseSpeaker:
    """Turns texts into phrases for one call: the voice `tts`, converted to the line's rate. Fixed sentences are made
    once and kept."""

    def __init__(self, tts: Tts, out_rate: int, agent: Agent = NOBODY, made_ahead: MadeAhead | None = None) -> None:
        """`agent`: who speaks; `made_ahead`: phrases that the PoP has made for all calls."""
        self.tts = tts
        self._made_ahead = made_ahead
        self.out_rate = out_rate
        self._agent = agent
        self._kept: OrderedDict[tuple[str, str, float], list[Phrase]] = OrderedDict()
        """The latest stand last."""

    async def say(self, text: str, *, voice: str, speed: float, first: bool = False) -> AsyncGenerator[Phrase, None]:
        """The phrases of `text`, in order; none if there is nothing to say. `first`: the caller hears nothing until
        they are there."""
        if kept := self._kept.get((text, voice, speed)):
            for phrase in kept:
                yield phrase
            return
        voice = voice_in(self.tts, self._agent, voice)
        parts = self._pieces(text, voice)
        spoken = together(parts)
        if not any(map(ends_in_word, spoken)):  # A mark alone, as the second of "！？", is no utterance.
            return
        writing = _WrittenTimes(parts)
        if made := self._made(spoken, voice, speed):
            for speech in made:
                yield Phrase(text, speech.pcm, writing.take(speech), more=speech.more)
                text = ""
            return
        convert = Conversion(self.tts.rate, self.out_rate)
        async with aclosing(self.tts.speak(spoken, voice=voice, speed=speed, first=first)) as said:
            async for speech in said:
                if self.tts.rate != self.out_rate:
                    speech = await converter.submit(convert, speech)
                yield Phrase(text, speech.pcm, writing.take(speech), more=speech.more)
                text = ""

    async def whole(self, text: str, *, voice: str, speed: float) -> Phrase | None:
        """All of `text` as one phrase; None if there is nothing to say."""
        phrases = [phrase async for phrase in self.say(text, voice=voice, speed=speed, first=True)]
        return joined(text, phrases) if phrases else None

    def has(self, text: str, *, voice: str, speed: float) -> bool:
        """Whether `text` was made ahead of time, by this call or for all."""
        speaks = voice_in(self.tts, self._agent, voice)
        spoken = together(self._pieces(text, speaks))
        return (text, voice, speed) in self._kept or bool(self._made(spoken, speaks, speed))

    def _pieces(self, text: str, voice: str) -> list[Piece]:
        return pieces(text, self._agent.language, said_so(self.tts, voice, self._agent.pronounce))

    async def keep(self, text: str, *, voice: str, speed: float) -> None:
        """Make `text` ahead of time, so that saying it later costs nothing."""
        if text:
            phrases = [phrase async for phrase in self.say(text, voice=voice, speed=speed)]
            self._kept[(text, voice, speed)] = phrases
            while len(self._kept) > KEPT or sum(map(_bytes, self._kept.values())) > KEPT_BYTES:
                self._kept.popitem(last=False)

    def _made(self, spoken: str, voice: str, speed: float) -> tuple[Speech, ...]:
        return self._made_ahead.get(spoken, voice, speed, self.out_rate) if self._made_ahead else ()


def joined(text: str, phrases: Sequence[Phrase]) -> Phrase:
    """The pieces of `text` as one phrase."""
    words, size = [], 0
    for phrase in phrases:
        words += [(word, size + end) for word, end in phrase.words]
        size += phrase.pcm.size
    return Phrase(text, np.concatenate([phrase.pcm for phrase in phrases]), tuple(words))


class _WrittenTimes:
    """Tells the sample at which each written word of a phrase has been heard, with the piece of sound in which it
    ends: "$18.50" is one word and is spoken as three."""

    def __init__(self, parts: Iterable[Piece]) -> None:
        self._written: list[str] = []
        self._due: list[int] = []
        """Number of spoken words up to the end of each written one."""
        self._spoken: list[str] = []
        for part in parts:
            words, spoken = list(written(part.written)), list(written(part.spoken))
            # As a rule each is spoken as it is written. Where it is not, by how far the text has come.
            self._due += [len(self._spoken) + len(spoken) * number // len(words) for number in range(1, len(words) + 1)]
            self._written += words
            self._spoken += spoken if words else ()
        self._timed = self._said = 0
        """Written words whose end is known; spoken words that have ended."""

    def take(self, speech: Speech) -> tuple[tuple[str, int], ...]:
        """The written words that end in the next piece, each with its sample. In a piece that goes on only the words
        end that it names; any other piece ends the rest. Where one piece is all, and its engine does not name each
        word, the ends are estimated."""
        ends = [word.end for word in speech.words]
        if not (speech.more or self._said or len(ends) == len(self._spoken)):
            ends = _spread(self._spoken, speech.pcm)
        heard: list[tuple[str, int]] = []
        while self._timed < len(self._written):
            at = self._due[self._timed] - self._said
            if speech.more and at > len(ends):
                break
            end = ends[at - 1] if 0 < at <= len(ends) else 0 if at <= 0 else speech.pcm.size
            heard.append((self._written[self._timed], end))
            self._timed += 1
        self._said += len(ends)
        return tuple(heard)


def _bytes(phrases: list[Phrase]) -> int:
    return sum(phrase.pcm.nbytes for phrase in phrases)


def _spread(words: list[str], pcm: Pcm) -> list[int]:
    """About where each word ends: letters take the same time, and the pause after the last word is none of theirs."""
    letters = np.cumsum([len(word.rstrip()) + 1 for word in words])
    sounding = np.flatnonzero(pcm)
    size = int(sounding[-1]) + 1 if sounding.size else 0
    return [size * int(count) // int(letters[-1]) for count in letters]
