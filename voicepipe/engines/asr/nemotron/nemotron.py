"""`nemotron`: a recogniser that listens. One model for all calls, on a GPU, or slowly on a CPU.

Each chunk of sound is heard once, when it comes, with what the model remembers of the call. When a silence begins, the
rest and a little silence are heard in a copy of that memory: its words are the final ones, unless the voice comes back,
and then the call goes on with the memory that has no silence in it.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from voicepipe.audio import Pcm
from voicepipe.base.errors import EngineBusy, EngineError, EngineMissing
from voicepipe.base.round_robin import owner
from voicepipe.base.worker import Worker
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron.front_end import ChunkCutter
from voicepipe.engines.asr.nemotron.steps import Row, Steps
from voicepipe.engines.base import NO_HINTS, AsrHints, Hypothesis, OnPartial
from voicepipe.engines.hosting.supervised import IN_PROCESS, SupervisedEngine
from voicepipe.engines.hosting.threaded import RecogniserCore, loaded
from voicepipe.languages.written_language import LikelyLanguage

if TYPE_CHECKING:
    from voicepipe.engines.asr.nemotron.model import LoadedNemotron

WAIT_S = 5.0
"""Seconds that an utterance which ends without a slot waits for one."""


class NemotronAsr(SupervisedEngine[RecogniserCore[Steps, "LoadedNemotron"]]):
    """The engine `nemotron`: a streaming recogniser. Implements `base.Asr` and `base.CountsDecoders`. A model that
    fails repeatedly is loaded again."""

    def __init__(self, config: NemotronConfig) -> None:
        super().__init__("recogniser", self._load, IN_PROCESS)
        self._config = config

    @property
    def decoders_in_use(self) -> int:
        return self.last.queue.slots.in_use if self.last else 0

    def stream(self, on_partial: OnPartial, hints: AsrHints = NO_HINTS) -> "NemotronStream":
        """Begin an utterance. While the model is loaded again, calls that go on have streams that hear nothing and say
        why."""
        if self.last is None:
            raise EngineError("NemotronAsr was not started.")
        model, texts = self.last.model, self.last.model.texts
        several = hints.languages if len(hints.languages) > 1 else ()
        prompt = texts.prompt(None if self._config.detect_language or several else hints.language)
        heard = (lambda tokens: texts.heard(tokens, several)) if several else None
        return NemotronStream(self.last.queue, on_partial, texts.text, ChunkCutter(model.frames), prompt, heard)

    async def _load(self) -> "RecogniserCore[Steps, LoadedNemotron]":
        """A model that has run every kind of step once. Raises EngineMissing, EngineError."""
        worker = Worker("nemotron", told=False)  # It runs one step at a time; `Steps` has the queue.
        config = self._config
        model = await loaded(worker, partial(_loaded, config))
        steps = Steps(worker, model, config.streams, config.stall_s, time.monotonic, config.gather_ms / 1000)
        return RecogniserCore(worker, steps, model)


def _loaded(config: NemotronConfig) -> "LoadedNemotron":
    try:
        from voicepipe.engines.asr.nemotron.model import LoadedNemotron
    except ImportError as error:
        raise EngineMissing(
            f"nemotron needs torch and transformers, which vLLM brings along ({error}); pip install 'torch' "
            "'transformers>=5.16,<5.24'"
        ) from None
    return LoadedNemotron(config)


class NemotronStream:
    """One utterance, as Nemotron hears it. Implements `base.AsrStream` and `steps.StepClient`."""

    def __init__(
        self, steps: Steps, on_partial: OnPartial, text: Callable[[list[int]], str], chunks: ChunkCutter, prompt: int,
        heard: Callable[[list[int]], LikelyLanguage] | None = None,
    ) -> None:  # fmt: skip
        """`heard`: tells the language of tokens; None: nobody asks."""
        self.owner = owner()
        self._heard = heard or (lambda tokens: LikelyLanguage())
        self._steps, self._on_partial, self._text, self._chunks, self._prompt = steps, on_partial, text, chunks, prompt
        self._slot: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._begins, self._over, self._finishing = True, False, False
        self._tokens: list[int] = []
        self._settled = Hypothesis()
        self._lost: EngineError | None = None
        """Why a part of it was not heard, and so is worth nothing as a whole."""
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        """Samples up to which words are waited for, and the waiting futures."""

    def feed(self, pcm: Pcm) -> None:
        if self._over or self._lost or not pcm.size:
            return
        if not self._chunks.fed:
            self._steps.enter(self)  # and not sooner: a slot is for who speaks
        self._chunks.feed(pcm)
        if self._chunks.ready:
            self._ask()

    async def settle(self) -> Hypothesis:
        if self._lost and not self._over:
            raise _own(self._lost)
        if self._settled.until < self._chunks.fed and not self._over:
            await self._wait_for_slot()
            await self._hear_out()
        return self._settled

    async def finish(self) -> Hypothesis:
        self._finishing = True
        try:
            return await self.settle()
        finally:
            self.cancel()

    def cancel(self) -> None:
        if self._over:
            return
        self._over = True
        self._steps.leave(self)
        self._slot.cancel()
        for _, waiting in self._waiting:
            waiting.cancel()

    async def _wait_for_slot(self) -> None:
        try:
            async with asyncio.timeout(WAIT_S):
                await asyncio.shield(self._slot)
        except TimeoutError:
            self._steps.waits.refused += 1
            raise EngineBusy(
                f"No stream of the recogniser became free within {WAIT_S:g} s; admit fewer calls."
            ) from None
        if self._over:  # It was cancelled just as it had one, which may be another's by now.
            raise asyncio.CancelledError

    async def _hear_out(self) -> None:
        """Return once all that has been fed is heard."""
        wanted = (self._chunks.fed, asyncio.get_running_loop().create_future())
        self._waiting.append(wanted)
        self._ask()
        try:
            await wanted[1]
        finally:
            self._waiting.remove(wanted)
            if not self._waiting:
                self._steps.withdraw(self)
                if self._chunks.ready and not self._lost:
                    self._ask()

    def _ask(self) -> None:
        if not self._over and self._slot.done() and not self._slot.exception():
            self._steps.ask(self, urgent=self._waited_for)

    @property
    def _waited_for(self) -> bool:
        """Whether somebody wants words that are not there yet."""
        return any(not waiting.done() for _, waiting in self._waiting)

    # For the steps.

    def on_slot(self, slot: int) -> None:
        """As `StepClient.on_slot`."""
        self._slot.set_result(slot)
        if self._chunks.ready or self._waited_for:
            self._ask()

    def next_input(self) -> Row | None:
        """The next chunk; or, if there is none and somebody waits, the rest of the sound, in a copy."""
        chunks, slot = self._chunks, self._slot.result()
        if chunks.ready:
            sound = chunks.take()
            return Row(slot, self._begins, [sound], self._prompt, upto=chunks.heard)
        if not self._waited_for:
            return None
        return Row(slot, self._begins, chunks.rest(), self._prompt, copies=True, upto=chunks.fed)

    def on_result(self, given: Row, tokens: list[int]) -> None:
        """As `StepClient.on_result`."""
        if self._over:
            return
        if given.copies:
            whole = [*self._tokens, *tokens]
            self._settled = Hypothesis(self._text(whole), given.upto, language=self._heard(whole))
            for upto, waiting in self._waiting:
                if upto <= given.upto and not waiting.done():
                    waiting.set_result(None)
        else:
            self._begins = False
            self._tokens += tokens
        if self._chunks.ready or self._waited_for:
            self._ask()
        if tokens and not given.copies and not self._finishing:  # last: the listener may fail, or cancel
            self._on_partial(Hypothesis(self._text(self._tokens), given.upto))

    def on_failure(self, given: Row | None, error: EngineError) -> None:
        """As `StepClient.on_failure`. Who waits gets the error, now or when the words are asked for: a text with a hole
        in it would be answered as if it were whole."""
        if given is None or not given.copies:
            self._lost = error
            self._steps.withdraw(self)
        if not self._slot.done():
            self._slot.set_exception(_own(error))
            self._slot.exception()  # it may be asked for by nobody
        for _, waiting in self._waiting:
            if not waiting.done():
                waiting.set_exception(_own(error))


def _own(error: EngineError) -> EngineError:
    """A copy of the error, to be raised: each waiter gets its own, since a traceback would keep a call."""
    return type(error)(*error.args)
