"""`sphinx`: pocketsphinx, whose model is inside its wheel. No download, no GPU; English only.

A decoder belongs to one utterance at a time, and its jobs run in order on threads below the event loop's priority. The
best words come from ending the utterance, which a pause does not: so `settle` ends it, and if the voice comes back its
sound is decoded once more, while the caller speaks. That costs a fifth of its duration; no word is split at a pause.
The words of the first pass over all sound go out as a partial before: they often stay, and their reply is begun.
"""

import asyncio
import logging
import os
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from voicepipe.audio import RATE, Pcm
from voicepipe.engines.base import Hypothesis, OnPartial
from voicepipe.engines.failures import Tried
from voicepipe.engines.fair import Ring, owner
from voicepipe.engines.life import IN_PROCESS, Life
from voicepipe.engines.sphinx_decoder import SphinxDecoder, never_heard
from voicepipe.engines.sphinx_language import SphinxLanguage
from voicepipe.engines.sphinx_recognition import PIECE, Recognition
from voicepipe.engines.worker import Worker
from voicepipe.errors import EngineBusy, EngineDead, EngineError
from voicepipe.queues import QueueFigures, Waits, show
from voicepipe.turn.answers import Wanted, wanted
from voicepipe.turn.patience import Patience

log = logging.getLogger(__name__)
DECODERS = 8
WAIT_S = 5.0
"""An utterance that has ended waits so long for a decoder; then the caller is better asked to say it again. As long as
the ladder waits for a reply: right after the start one decoder is loaded after the other, which takes seconds."""
EACH = 2
"""Decoders that a call may hold in any case."""
STALL_S, SLOWEST, SEARCH = 10.0, 5.0, 0.2
"""A job takes 0.2 s for a second of sound, and 0.6 on a crowded machine, and 0.01 s to search a second of what it has
heard for its best words. One that takes SLOWEST and SEARCH, and STALL_S besides, hangs; ..."""
LEAST_S = 3.0
"""... where jobs mostly take less than a quarter of it, this is enough besides."""
LOAD_S = 60.0
"""A decoder takes half a second to load, and a twentieth to free: one that takes so long hangs."""
ENDED = "The recogniser failed and is being loaded again: see the log."


class SphinxAsr:
    """Implements `base.Asr` and `base.Mortal`: where decoders hang, or fail and fail, all are left behind and loaded
    again. Decoders are shared by all calls: one is loaded by `start`, the others behind its back, up to `decoders`.

    `phrases`: what callers are likely to say; they adapt the language model, as what the agent has asked does for an
    utterance. `language` is ignored: it is English.
    `stall_s`: a job that takes so much longer than its sound hangs.
    """

    def __init__(
        self,
        phrases: Sequence[str] = (),
        *,
        decoders: int = DECODERS,
        threads: int | None = None,
        stall_s: float = STALL_S,
    ) -> None:
        self._phrases = tuple(phrases)
        self._most = decoders
        self._threads = threads or os.cpu_count() or 1
        self._stall_s = stall_s
        self._life: Life[Decoders] = Life("recogniser", self._load, IN_PROCESS)
        self._decoders: Decoders | None = None

    @property
    def alive(self) -> bool:
        return self._life.alive

    @property
    def restarts(self) -> int:
        return self._life.restarts

    async def start(self) -> None:
        """Load the model. Raises EngineMissing, EngineError."""
        await self._life.start()

    async def close(self) -> None:
        await self._life.close()
        self._decoders = None

    @property
    def lent(self) -> int:
        """See `Lends`."""
        return self._decoders.lent if self._decoders else 0

    def stream(self, on_partial: OnPartial, *, language: str = "en", asked: str = "") -> "SphinxStream":
        """While decoders are loaded again, calls that go on have streams that hear nothing and say why."""
        if self._decoders is None:
            raise EngineError("SphinxAsr was not started.")
        return self._decoders.stream(on_partial, wanted(asked))

    async def _load(self) -> "Decoders":
        # Loading has a thread of its own, which yields to all others: it takes as long as three seconds of sound.
        loader = Worker("sphinx-load", nice=15, told=False)  # Nobody waits for it.
        try:
            if unheard := await loader.submit(never_heard, self._phrases):
                log.warning("%s", unheard)
            language = await loader.submit(SphinxLanguage, self._phrases)
            first = await loader.submit(_load, language)
        except BaseException:
            loader.close()
            raise
        worker = Worker("sphinx", self._threads)
        self._decoders = Decoders(worker, loader, language, first, self._most, self._stall_s)
        return self._decoders


class Decoders:
    """Those that are loaded, and who has them. Implements `life.Core`.

    A call has two at most, what it says and what it said before, as long as no quarter of them is free for others.
    """

    def __init__(
        self, worker: Worker, loader: Worker, language: SphinxLanguage, first: SphinxDecoder, most: int, stall_s: float
    ) -> None:
        self.worker = worker
        self.stall_s = stall_s
        """Until it is known what jobs take."""
        self._most_s = stall_s
        self._patience = Patience()
        self._loader = loader
        self._language = language
        self._most = most
        self._free: deque[SphinxDecoder] = deque((first,))
        self._in_use: Counter[str] = Counter()
        """By call."""
        self._loaded = 1
        self._loading = self._closed = self._left_behind = False
        self._waiting: Ring[SphinxStream] = Ring()
        self.waits = Waits()
        show(self)
        self._failures = Tried(self._try)
        self._lost = False
        """None is left, and none can be loaded."""
        self._grow()

    def figures(self) -> QueueFigures | None:
        """As `queues.Queue`, of utterances, which wait for a decoder."""
        waits = self.waits
        return None if self._closed else QueueFigures(
            name="decoders", waiting=len(self._waiting), running=self.lent, begun=waits.begun,
            waited_s=waits.waited_s, refused=waits.refused,
        )  # fmt: skip

    @property
    def errored(self) -> bool:
        return self._lost or self._failures.broken or self.hung

    @property
    def hung(self) -> bool:
        return self.worker.overdue() or self._loader.overdue()

    def took(self, seconds: float) -> None:
        """A job was done after so long."""
        self._patience.took(1000 * seconds)
        self.stall_s = min(self._most_s, self._patience.ms(1000 * LEAST_S, 1000 * self._most_s) / 1000)

    @property
    def lent(self) -> int:
        """Those that calls have."""
        return self._loaded - self._loading - len(self._free)

    async def close(self) -> None:
        """Who hears and who waits is told. If a thread hangs, decoders in use free themselves as soon as none is in
        them."""
        self._closed, self._left_behind = True, self.hung
        while (stream := self._waiting.pop()) is not None:
            stream.fail()
        self.worker.close(EngineDead(ENDED))
        self._loader.close()
        free, self._free = self._free, deque()
        await asyncio.to_thread(_free_all, free)

    def stream(self, on_partial: OnPartial, wants: Wanted) -> "SphinxStream":
        stream = SphinxStream(self, on_partial, wants)
        if self._closed:
            stream.fail()
        else:
            self._waiting.put(stream, stream.owner)
            self._hand_out()
        return stream

    def leave(self, stream: "SphinxStream") -> None:
        """A stream that waits no more: no decoder is given to it, and nobody keeps its sound."""
        self._waiting.remove(stream)

    def release(self, owner: str, decoder: SphinxDecoder, *, broken: bool = False) -> None:
        """A stream is done with `decoder`; whoever is next gets it."""
        self._in_use[owner] -= 1
        if not self._in_use[owner]:
            del self._in_use[owner]
        if self._closed:
            if not self._left_behind:  # else a thread may still be in it
                asyncio.get_running_loop().run_in_executor(None, decoder.free)
            return
        if broken:
            self._failures.failed()
            self._loaded -= 1
            freeing = self._loader.ask(decoder.free, within_s=LOAD_S)
            freeing.add_done_callback(lambda freed: freed.cancelled() or freed.exception())  # `hung` tells of it.
            self._grow()
            return
        self._failures.worked()
        self._free.append(decoder)
        self._hand_out()

    async def _try(self) -> None:
        """A decoder of its own, which hears something."""
        decoder = await self._loader.ask(partial(_load, self._language), within_s=LOAD_S)
        self._loader.ask(decoder.free, within_s=LOAD_S)

    def _hand_out(self) -> None:
        while self._free and (stream := self._waiting.pop(self._may)):
            self._in_use[stream.owner] += 1
            self.waits.began(time.monotonic() - stream.asked)
            # The one used last: what it holds is in the processor's caches, and it has grown to what utterances need.
            stream.begin(self._free.pop())

    def _may(self, owner: str) -> bool:
        return self._in_use[owner] < EACH or len(self._free) > self._most // 4

    def _grow(self) -> None:
        """Load the decoders that are missing, one after the other."""
        if not (self._closed or self._loading) and self._loaded < self._most:
            self._loaded += 1
            self._loading = True
            loading = self._loader.ask(partial(_load, self._language), within_s=LOAD_S)
            loading.add_done_callback(self._grown)

    def _grown(self, loading: "asyncio.Future[SphinxDecoder]") -> None:
        self._loading = False
        if loading.cancelled() or loading.exception():
            self._loaded -= 1
            self._lost = not self._loaded
            if not loading.cancelled():  # No memory, perhaps.
                why = loading.exception()
                log.warning("a decoder of the recogniser could not be loaded, %d are left: %s", self._loaded, why)
        elif self._closed:
            asyncio.get_running_loop().run_in_executor(None, loading.result().free)
        else:
            self._free.append(loading.result())
            self._hand_out()
            self._grow()


def _free_all(decoders: Iterable[SphinxDecoder]) -> None:
    """100 MB each, in small pieces: too long for the event loop."""
    for decoder in decoders:
        decoder.free()


def _load(language: SphinxLanguage) -> SphinxDecoder:
    decoder = SphinxDecoder(language)
    warm = np.random.default_rng(0).normal(0, 300, RATE // 4).astype(np.int16)
    decoder.start(warm)
    decoder.feed(warm)
    decoder.end()
    return decoder


class SphinxStream:
    """One utterance. Sound that comes before a decoder is free waits."""

    def __init__(self, decoders: Decoders, on_partial: OnPartial, wants: Wanted) -> None:
        self.over = self._finishing = False
        self.owner = owner()
        self.asked = time.monotonic()
        """Since when it waits."""
        self._decoders = decoders
        self._on_partial = on_partial
        self._wants = wants
        self._lane = decoders.worker.lane()
        self._ready: asyncio.Future[Recognition] = asyncio.get_running_loop().create_future()
        self._inbox: deque[Pcm] = deque()
        self._fed = 0
        self._decoding = False
        self._partial = ""

    def begin(self, decoder: SphinxDecoder) -> None:
        """The decoder is this stream's until it is over."""
        self._ready.set_result(Recognition(decoder, self._inbox, self._wants))
        self._pump()

    def fail(self) -> None:
        """No decoder will be given to it."""
        self._ready.set_exception(EngineDead(ENDED))
        self._ready.exception()  # it may be asked for by nobody

    def feed(self, pcm: Pcm) -> None:
        if not self.over and pcm.size:
            self._inbox.append(pcm.copy())
            self._fed += pcm.size
            self._pump()

    async def settle(self) -> Hypothesis:
        try:
            async with asyncio.timeout(WAIT_S):
                recognition = await asyncio.shield(self._ready)
        except TimeoutError:
            self._decoders.waits.refused += 1
            raise EngineBusy(f"No decoder became free within {WAIT_S:g} s; admit fewer calls.") from None
        within_s = partial(self._within_s, recognition)
        hearing = self._lane.post(recognition.hear_out, urgent=True, within_s=within_s)
        hearing.add_done_callback(self._heard_out)
        try:
            return await self._lane.post(recognition.settle, urgent=True, within_s=within_s)
        finally:
            hearing.cancel()  # if the voice is back before it ran

    async def finish(self) -> Hypothesis:
        self._finishing = True
        try:
            return await self.settle()
        finally:
            self.cancel()

    def cancel(self) -> None:
        if self.over:
            return
        self.over = True
        self._lane.drop()
        if not self._ready.done():
            self._ready.cancel()
            self._inbox.clear()
            self._decoders.leave(self)
            return
        if self._ready.exception():
            return
        recognition = self._ready.result()
        closing = self._lane.post(recognition.close, within_s=partial(self._within_s, recognition))
        closing.add_done_callback(lambda done: self._give_back(recognition, done))

    def _pump(self) -> None:
        if self._decoding or not self._ready.done() or self._ready.exception():
            return
        recognition = self._ready.result()
        if recognition.behind or self._fed - recognition.heard >= recognition.piece:
            self._decoding = True
            hearing = self._lane.post(recognition.hear, within_s=partial(self._piece_within_s, recognition))
            hearing.add_done_callback(self._heard)

    def _heard(self, hearing: "asyncio.Future[Hypothesis | None]") -> None:
        self._decoding = False
        if hearing.cancelled() or hearing.exception() or self.over:
            return  # what failed here fails again, and is told, in `settle`
        self._decoders.took(self._ready.result().took_s)
        self._tell(hearing.result())
        self._pump()

    def _heard_out(self, hearing: "asyncio.Future[Hypothesis | None]") -> None:
        if not (hearing.cancelled() or hearing.exception() or self.over):
            self._tell(hearing.result())

    def _tell(self, partial: Hypothesis | None) -> None:
        if partial is not None and partial.text != self._partial and not self._finishing:
            self._partial = partial.text
            self._on_partial(partial)

    def _within_s(self, recognition: "Recognition") -> float:
        """A job that takes longer hangs: it has to hear all that has come, and to search all of it."""
        sound = self._fed - recognition.heard + recognition.work
        return self._decoders.stall_s + (SLOWEST * sound + SEARCH * self._fed) / RATE

    def _piece_within_s(self, recognition: "Recognition") -> float:
        """The same of a job that decodes one piece, and takes the noise out of all that has come."""
        return self._decoders.stall_s + (SLOWEST * PIECE + SEARCH * (self._fed - recognition.heard)) / RATE

    def _give_back(self, recognition: "Recognition", closing: "asyncio.Future[Any]") -> None:
        if not closing.cancelled():
            self._decoders.release(self.owner, recognition.decoder, broken=closing.exception() is not None)
