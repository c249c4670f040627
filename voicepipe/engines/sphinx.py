"""`sphinx`: pocketsphinx, whose model is inside its wheel. No download, no GPU; English only.

A decoder belongs to one utterance at a time, and its jobs run in order on threads below the event loop's priority. The
best words come from ending the utterance, which a pause does not: so `settle` ends it, and if the voice comes back its
sound is decoded once more, while the caller speaks. That costs a fifth of its duration; no word is split at a pause.
The words of the first pass over all sound go out as a partial before: they often stay, and their reply is begun.
"""

import asyncio
import os
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from voicepipe.audio import RATE, Pcm, dbfs, ms_to_samples
from voicepipe.engines.base import Hypothesis, OnPartial
from voicepipe.engines.denoise import HOP, Denoiser
from voicepipe.engines.sphinx_decoder import Decoder
from voicepipe.engines.sphinx_language import Language
from voicepipe.engines.worker import Worker
from voicepipe.errors import EngineBusy, EngineError

DECODERS = 8
CHUNK = ms_to_samples(60)
"""Sound is decoded in pieces of at least this length, and looked at for a partial after PARTIAL."""
PARTIAL = ms_to_samples(100)
PIECE = ms_to_samples(400)
"""No job decodes more than this, except for the words at the end: others wait for a thread meanwhile."""
REPLAY = ms_to_samples(2500)
"""A pause after more sound than this splits the recognition: decoding it all again would hold up the words to come."""
WAIT_S = 5.0
"""An utterance that has ended waits so long for a decoder; then the caller is better asked to say it again. As long as
the ladder waits for a reply: right after the start one decoder is loaded after the other, which takes seconds."""
BEGINNING = ms_to_samples(500)
"""Decoding waits for so much voice, which tells what the caller sounds like and whether the line is a telephone's."""
SILENCE = ms_to_samples(500)
"""So much of what follows after `settle` is kept, for the soft beginning of a voice that comes back."""
BACK_DB = 28.0
"""After `settle`, sound within this of the loudest so far (noise taken out) is the voice that comes back."""


class SphinxAsr:
    """Decoders shared by all calls: one is loaded by `start`, the others behind its back, up to `decoders`.

    `phrases`: what callers are likely to say; they adapt the language model. `language` is ignored: it is English.
    """

    def __init__(self, phrases: Sequence[str] = (), *, decoders: int = DECODERS, threads: int | None = None) -> None:
        self._phrases = tuple(phrases)
        self._language: Language | None = None
        self._most = decoders
        self._threads = threads or os.cpu_count() or 1
        self._worker: Worker | None = None
        self._loader: Worker | None = None
        self._free: deque[Decoder] = deque()
        self._loaded = 0
        self._loading = False
        self._waiting: deque[SphinxStream] = deque()

    async def start(self) -> None:
        if self._worker is None:
            self._worker = Worker("sphinx", self._threads)
            # Loading has a thread of its own, which yields to all others: it takes as long as three seconds of sound.
            self._loader = Worker("sphinx-load", nice=15)
            self._language = await self._loader.submit(Language, self._phrases)
            self._loaded += 1
            self._free.append(await self._loader.submit(_load, self._language))
            self._grow()

    async def close(self) -> None:
        while self._waiting:
            self._waiting.popleft().cancel()
        for worker in (self._worker, self._loader):
            if worker:
                worker.close()
        self._worker = self._loader = None
        while self._free:
            self._free.popleft().free()
        self._loaded = 0

    @property
    def lent(self) -> int:
        """See `Lends`."""
        return self._loaded - self._loading - len(self._free)

    def stream(self, on_partial: OnPartial, *, language: str = "en") -> "SphinxStream":
        if self._worker is None:
            raise EngineError("SphinxAsr was not started.")
        stream = SphinxStream(self, self._worker, on_partial)
        if self._free:
            # The one used last: what it holds is in the processor's caches, and it has grown to what utterances need.
            stream.begin(self._free.pop())
        else:
            self._waiting.append(stream)
        return stream

    def leave(self, stream: "SphinxStream") -> None:
        """A stream that waits no more: no decoder is given to it, and nobody keeps its sound."""
        with suppress(ValueError):
            self._waiting.remove(stream)

    def release(self, decoder: Decoder, *, broken: bool = False) -> None:
        """A stream is done with `decoder`; whoever waits longest gets it."""
        if self._loader is None:
            decoder.free()
        elif broken:
            self._loaded -= 1
            self._loader.submit(decoder.free)  # 100 MB in small pieces: too long for the event loop
            self._grow()
        elif self._waiting:
            self._waiting.popleft().begin(decoder)
        else:
            self._free.append(decoder)

    def _grow(self) -> None:
        """Load the decoders that are missing, one after the other."""
        if self._loader and self._language and not self._loading and self._loaded < self._most:
            self._loaded += 1
            self._loading = True
            self._loader.submit(_load, self._language).add_done_callback(self._grown)

    def _grown(self, loading: "asyncio.Future[Decoder]") -> None:
        self._loading = False
        if loading.cancelled() or loading.exception():
            self._loaded -= 1  # no memory, perhaps: streams share the decoders that there are
        else:
            self.release(loading.result())
            self._grow()


def _load(language: Language) -> Decoder:
    decoder = Decoder(language)
    warm = np.random.default_rng(0).normal(0, 300, RATE // 4).astype(np.int16)
    decoder.start(warm)
    decoder.feed(warm)
    decoder.end()
    return decoder


class SphinxStream:
    """One utterance. Sound that comes before a decoder is free waits."""

    def __init__(self, asr: SphinxAsr, worker: Worker, on_partial: OnPartial) -> None:
        self.over = self._finishing = False
        self._asr = asr
        self._on_partial = on_partial
        self._lane = worker.lane()
        self._ready: asyncio.Future[Recognition] = asyncio.get_running_loop().create_future()
        self._inbox: deque[Pcm] = deque()
        self._fed = 0
        self._decoding = False
        self._partial = ""

    def begin(self, decoder: Decoder) -> None:
        """The decoder is this stream's until it is over."""
        self._ready.set_result(Recognition(decoder, self._inbox))
        self._pump()

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
            raise EngineBusy(f"No decoder became free within {WAIT_S:g} s; admit fewer calls.") from None
        hearing = self._lane.post_urgent(recognition.hear_out)
        hearing.add_done_callback(self._heard_out)
        try:
            return await self._lane.post_urgent(recognition.settle)
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
            self._asr.leave(self)
            return
        recognition = self._ready.result()
        closing = self._lane.post(recognition.close)
        closing.add_done_callback(lambda done: self._give_back(recognition, done))

    def _pump(self) -> None:
        if self._decoding or not self._ready.done():
            return
        recognition = self._ready.result()
        if recognition.behind or self._fed - recognition.heard >= CHUNK:
            self._decoding = True
            self._lane.post(recognition.hear).add_done_callback(self._heard)

    def _heard(self, hearing: "asyncio.Future[Hypothesis | None]") -> None:
        self._decoding = False
        if self.over or hearing.cancelled() or hearing.exception():
            return  # what failed here fails again, and is told, in `settle`
        self._tell(hearing.result())
        self._pump()

    def _heard_out(self, hearing: "asyncio.Future[Hypothesis | None]") -> None:
        if not (self.over or hearing.cancelled() or hearing.exception()):
            self._tell(hearing.result())

    def _tell(self, partial: Hypothesis | None) -> None:
        if partial is not None and partial.text != self._partial and not self._finishing:
            self._partial = partial.text
            self._on_partial(partial)

    def _give_back(self, recognition: "Recognition", closing: "asyncio.Future[Any]") -> None:
        if not closing.cancelled():
            self._asr.release(recognition.decoder, broken=closing.exception() is not None)


class Recognition:
    """The blocking half of a stream: runs on worker threads, one job at a time.

    `inbox` is where the event loop puts more sound. A job takes what is there when it runs, so that none is lost with a
    job that is dropped before.
    """

    def __init__(self, decoder: Decoder, inbox: deque[Pcm]) -> None:
        self.decoder = decoder
        self.heard = 0
        """Samples taken from the inbox."""
        self._inbox = inbox
        self._denoiser = Denoiser()
        self._open = self._broken = False
        self._heard: list[Pcm] = []
        """Sound without noise since the last split, for decoding it again; up to `settle`."""
        self._silence: deque[Pcm] = deque()
        """The last of what came after `settle`."""
        self._ahead: list[Pcm] = []
        """What of it is still to be decoded."""
        self._looked = 0
        self._loudest = -96.0
        self._before = ""
        """Words before the last split."""
        self._settled: Hypothesis | None = None

    def hear(self) -> Hypothesis | None:
        """Decode what has come; a partial if it is time for one."""
        self._guard(self._hear)
        if self._settled or not self._open or self.heard - self._looked < PARTIAL:
            return None
        self._looked = self.heard
        return Hypothesis(self._words(), self.heard)

    def hear_out(self) -> Hypothesis | None:
        """Decode all that has come; a partial unless its best words are there already."""
        self._guard(lambda: self._hear(last=self._open))  # `settle` alone begins on less than BEGINNING
        return Hypothesis(self._words(), self.heard) if self._open and not self._settled else None

    def settle(self) -> Hypothesis:
        """Find the best words of everything that has come."""
        self._guard(self._settle)
        assert self._settled is not None
        return Hypothesis(self._settled.text, self.heard, self._settled.end_logprob)

    def _settle(self) -> None:
        self._hear(last=True)
        if self._settled is None:
            guess = self.decoder.words() if self._open else ""
            self._end()
            text = self._words()
            self._settled = Hypothesis(text, self.heard, self.decoder.end_logprob(self.decoder.words(), guess))

    def close(self) -> None:
        """Leave the decoder ready for another utterance. Raises EngineError if it is not."""
        self._guard(self._end)

    def _guard(self, job: Callable[[], None]) -> None:
        """Once something failed the words are not to be trusted, nor is the decoder."""
        try:
            job()
        except Exception as error:
            self._broken = True
            raise EngineError(f"The recogniser failed: {error}") from error
        if self._broken:
            raise EngineError("The recogniser failed during this utterance.")

    @property
    def behind(self) -> bool:
        """There is more to decode than one job does."""
        return self._open and sum(sound.size for sound in self._ahead) >= CHUNK

    def _hear(self, *, last: bool = False) -> None:
        pcm = np.concatenate([np.empty(0, np.int16), *(self._inbox.popleft() for _ in range(len(self._inbox)))])
        self.heard += pcm.size
        sound = self._denoiser.clean(pcm, last=last)
        if sound.size:
            loudest = max(dbfs(hop) for hop in sound.reshape(-1, HOP))
            back = loudest > self._loudest - BACK_DB
            self._loudest = max(self._loudest, loudest)
            if self._settled is None:
                self._heard.append(sound)
                self._ahead.append(sound)
            else:
                self._silence.append(sound)
                while sum(quiet.size for quiet in self._silence) - self._silence[0].size >= SILENCE:
                    self._silence.popleft()
                if back:
                    self._ahead = [self._resume(self._settled)]
        if self._ahead and self._settled is None:
            self._decode(np.concatenate(self._ahead), last)

    def _decode(self, sound: Pcm, last: bool) -> None:
        if not self._open:
            voice = self._from_voice(sound)
            if voice.size < BEGINNING and not last:
                return
            self.decoder.start(voice, narrow=bool(self._denoiser.narrow))
            self._open = True
        piece = sound.size if last else PIECE
        self._ahead = [sound[piece:]] if sound.size > piece else []
        self.decoder.feed(sound[:piece])

    def _from_voice(self, sound: Pcm) -> Pcm:
        """`sound` without the quiet before its first voice."""
        loud = (dbfs(hop) > self._loudest - BACK_DB for hop in sound.reshape(-1, HOP))
        return sound[next((i for i, voiced in enumerate(loud) if voiced), 0) * HOP :]

    def _resume(self, settled: Hypothesis) -> Pcm:
        """The voice is back: what must be decoded (again)."""
        self._settled = None
        if sum(sound.size for sound in self._heard) > REPLAY:
            self._before = settled.text
            self._heard = []
        sound: Pcm = np.concatenate([*self._heard, *self._silence])
        self._silence.clear()
        self._heard = [sound]
        return sound

    def _end(self) -> None:
        self._ahead = []
        if self._open:
            self._open = False
            self.decoder.end()

    def _words(self) -> str:
        return f"{self._before} {self.decoder.words()}".strip() if self._heard else self._before
