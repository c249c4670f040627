"""The making half of ONE reply: text (`reply_writer.py`) -> phrases -> speech, and what is said while that is late."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace

import numpy as np

from voicepipe.base.error_texts import shown
from voicepipe.base.errors import EngineBusy, EngineError, OverQueued, RequestRefused
from voicepipe.call.reply_context import ReplyContext
from voicepipe.call.reply_writer import ReplyWriter
from voicepipe.call.speech import AnswerDraft, Phrase, joined
from voicepipe.conversation.phrases import sentences

EMPTY = np.empty(0, np.int16)
MUTE = "The language model called tools in words that its server did not read as calls: nothing was said or run."
AT_ONCE_S = 0.001
"""A piece of sound that comes sooner was there already: made ahead, or while the reply was held up."""


class ReplySpeech:
    """The making half of one reply: turns the texts of `reply_writer` into pieces of speech, and says what is due while
    they are late."""

    def __init__(self, reply_context: ReplyContext, reply_writer: ReplyWriter) -> None:
        self.failure = ""
        """Why an engine failed, in words that a client may read; the fallback is said instead. "": none failed."""
        self.phrase_tokens = 0
        """Tokens that were there when the first phrase was cut."""
        self.sound = 0
        """Samples, at the line's rate, of the speech that had to be waited for."""
        self.waited_s = 0.0
        """How long the speech in `sound` was waited for."""
        self._reply_context = reply_context
        self._context, self._order, self._record = reply_context.context, reply_context.order, reply_context.record
        self._late_reply, self._pieces = reply_context.late_reply, reply_context.pieces
        self._reply_writer = reply_writer

    async def make(self) -> None:
        """Make all pieces of the reply; what fails is replaced by the fallback."""
        try:
            source = self._reply_writer.texts() if self._order.text is None else self._fixed(self._order.text)
            async with aclosing(source) as texts:
                async for text in texts:
                    await self._say(text)
            if self._reply_writer.mute:
                self.failure = shown(EngineError(MUTE), f"reply to {self._record.turn_id}")
        except Exception as error:  # Also one that no engine should raise: it ends this reply, and not the call.
            self.failure = shown(error, f"reply to {self._record.turn_id}")
            self._record.refused = isinstance(error, RequestRefused | OverQueued)
            self._record.broken = not isinstance(error, RequestRefused | EngineBusy)
            if not self._reply_writer.whole:
                with suppress(Exception):  # The voice itself may be what failed.
                    await self._say(self._order.settings.agent.fallback, at_once=True)
        await self._pieces.put(None)

    async def _fixed(self, text: str) -> AsyncGenerator[str, None]:
        """A fixed text, sentence by sentence, so that the first is heard while others are made; as a whole if it was
        made before."""
        settings, speaker = self._order.settings, self._reply_context.speaker
        if self._reply_context.spoken and speaker.has(text, voice=settings.voice, speed=settings.speed):
            yield text
            return
        for sentence in sentences(text):
            yield sentence

    async def _say(self, text: str, *, at_once: bool = False) -> None:
        self._reply_context.stamp("phrase")
        self.phrase_tokens = self.phrase_tokens or self._reply_writer.tokens
        first, self._reply_writer.awaited = self._reply_writer.awaited, False
        draft = None if at_once else self._reply_context.draft
        async with aclosing(self._voiced(text, first, at_once=at_once)) as phrases:
            asked, silent = self._context.clock(), True
            while (phrase := await self._late_reply.next(phrases)) is not None:
                silent = False
                if self._reply_context.spoken:
                    self._reply_context.stamp("speech")
                if (waited_s := self._context.clock() - asked) > AT_ONCE_S:
                    self.sound, self.waited_s = self.sound + phrase.pcm.size, self.waited_s + waited_s
                if draft and draft.withdrawn:
                    return
                self._late_reply.answering = True
                await self._put(phrase, draft, stand_in=at_once)
                asked = self._context.clock()
        if silent and self._late_reply.answering:  # A mark, or a picture, behind what was said: it belongs to the text.
            await self._put(Phrase(text, EMPTY, ((text, 0),)), draft, stand_in=at_once)

    async def _put(self, phrase: Phrase, draft: AnswerDraft | None, *, stand_in: bool) -> None:
        await self._pieces.put(
            replace(phrase, stand_in=stand_in, answer=self._reply_context.delivery.answer, draft=draft)
        )

    async def _voiced(self, text: str, first: bool, *, at_once: bool) -> AsyncGenerator[Phrase, None]:
        """The phrases of `text`, as speech. `at_once`: something is amiss, and the agent's own voice and speed, if they
        are made ahead, are better than to wait."""
        settings, agent = self._order.settings, self._order.settings.agent
        if not self._reply_context.spoken:
            yield Phrase(text, EMPTY)
            return
        speaker, voice, speed = self._reply_context.speaker, settings.voice, settings.speed
        if at_once and not speaker.has(text, voice=voice, speed=speed):
            if speaker.has(text, voice=agent.voice, speed=agent.speed):
                voice, speed = agent.voice, agent.speed
        async with aclosing(speaker.say(text, voice=voice, speed=speed, first=first)) as phrases:
            async for phrase in phrases:
                yield phrase

    async def fill_silence(self, making: "asyncio.Task[None]") -> None:
        """Say what fills the silence, or replaces the answer, if the answer is late after the commit. `making` runs
        `make`."""
        order = self._order  # Its agent may be another one once the reply has handed the caller over.

        async def acknowledge() -> None:
            said, writer = order.settings.agent.acknowledgement, self._reply_writer
            if self._reply_context.spoken and said and not (writer.talks or writer.may_be_silent):
                await self._stand_in(f"{said} ", instead=False)

        async def fall_back() -> None:
            making.cancel()
            await self._stand_in(self._reply_writer.sentence() or order.settings.agent.fallback)
            await self._pieces.put(None)

        await self._late_reply.take_steps(self._reply_writer.cutter.hurry, acknowledge, fall_back)

    async def _stand_in(self, text: str, *, instead: bool = True) -> None:
        """Say `text` instead of the answer, or before it, unless the answer has come meanwhile. Before it, it is one
        piece, or the answer's pieces would fall between its own."""
        with suppress(Exception):
            said: list[Phrase] = []
            async with aclosing(self._voiced(text, first=True, at_once=True)) as phrases:
                while (phrase := await self._late_reply.next(phrases, stand_in=True)) is not None:
                    if instead:
                        await self._pieces.put(replace(phrase, stand_in=True))
                    else:
                        said.append(phrase)
            if said and not self._late_reply.answering:
                await self._pieces.put(replace(joined(text, said), stand_in=True))
