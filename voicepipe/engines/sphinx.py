"""`sphinx`: pocketsphinx, whose model is inside its wheel. No download, no GPU; clear English speech only.

The Python binding holds the GIL while it decodes, so the C library inside the wheel is called through ctypes, which lets go of
it: threads then decode side by side, beside the event loop.
"""

import asyncio
import ctypes
import importlib.util
import math
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from voicepipe.audio import Pcm
from voicepipe.engines.base import Hypothesis, OnPartial
from voicepipe.errors import EngineMissing

T = TypeVar("T")
LOG10_OF_BASE = math.log10(1.0001)
"""pocketsphinx counts log-probabilities to this base."""
PARTIAL_SAMPLES = 1600
"""A partial is looked for every 100 ms of sound."""
NICE = 5
"""Recognition yields to the event loop."""


def _library() -> ctypes.CDLL:
    spec = importlib.util.find_spec("pocketsphinx._pocketsphinx")
    if spec is None or spec.origin is None:
        raise EngineMissing("pocketsphinx is not installed: pip install pocketsphinx")
    library = ctypes.CDLL(spec.origin)
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    for name, result, arguments in (
        ("ps_config_init", pointer, (pointer,)),
        ("ps_config_set_str", pointer, (pointer, text, text)),
        ("ps_config_set_bool", pointer, (pointer, text, number)),
        ("ps_init", pointer, (pointer,)),
        ("ps_free", number, (pointer,)),
        ("ps_start_utt", number, (pointer,)),
        ("ps_end_utt", number, (pointer,)),
        ("ps_process_raw", number, (pointer, pointer, ctypes.c_size_t, number, number)),
        ("ps_get_hyp", text, (pointer, pointer)),
        ("ps_get_lm", pointer, (pointer, text)),
        ("ngram_prob", ctypes.c_int32, (pointer, pointer, ctypes.c_int32)),
        ("err_set_loglevel_str", number, (text,)),
    ):
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Decoder:
    """One utterance at a time, on one thread."""

    def __init__(self) -> None:
        self._c = _library()
        model = Path(importlib.util.find_spec("pocketsphinx").origin).parent / "model" / "en-us"  # type: ignore[union-attr, arg-type]
        self._c.err_set_loglevel_str(b"FATAL")
        config = self._c.ps_config_init(None)
        for key, path in (("hmm", "en-us"), ("dict", "cmudict-en-us.dict"), ("lm", "en-us.lm.bin")):
            self._c.ps_config_set_str(config, key.encode(), str(model / path).encode())
        for key in ("fwdflat", "bestpath"):
            self._c.ps_config_set_bool(config, key.encode(), 0)
        self._decoder = self._c.ps_init(config)
        self._lm = self._c.ps_get_lm(self._decoder, None)

    def start(self) -> None:
        self._c.ps_start_utt(self._decoder)

    def feed(self, pcm: Pcm) -> None:
        self._c.ps_process_raw(self._decoder, pcm.ctypes.data, pcm.size, 0, 0)

    def words(self) -> str:
        found = self._c.ps_get_hyp(self._decoder, None)
        return found.decode() if found else ""

    def end_logprob(self, words: str) -> float | None:
        """log10 probability that a sentence ends after `words`."""
        context = [b"</s>", *(word.encode() for word in reversed(["<s>", *words.split()]))][:3]
        if not words:
            return None
        return self._c.ngram_prob(self._lm, (ctypes.c_char_p * len(context))(*context), len(context)) * LOG10_OF_BASE

    def end(self) -> None:
        self._c.ps_end_utt(self._decoder)

    def free(self) -> None:
        self._c.ps_free(self._decoder)


class _Worker:
    """A decoder and the only thread that touches it."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(1, "sphinx", initializer=_yield_to_others)
        self.decoder: Decoder | None = None

    async def start(self) -> "_Worker":
        self.decoder = await asyncio.get_running_loop().run_in_executor(self.pool, Decoder)
        return self

    def close(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)
        if self.decoder:
            self.decoder.free()


def _yield_to_others() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


class SphinxAsr:
    """Decoders shared by all calls; one is loaded at start, more as utterances overlap. 95 MB each."""

    def __init__(self, decoders: int = 8, phrases: Sequence[str] = ()) -> None:
        self._limit = decoders
        self._workers: list[_Worker] = []
        self._free: deque[_Worker] = deque()
        self._waiting: deque[SphinxStream] = deque()
        self._growing: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._grow()

    async def close(self) -> None:
        if self._growing:
            await self._growing
        for worker in self._workers:
            await asyncio.to_thread(worker.close)
        self._workers.clear()
        self._free.clear()

    def stream(self, on_partial: OnPartial, *, language: str = "en") -> "SphinxStream":
        stream = SphinxStream(self, on_partial)
        if self._free:
            stream.begin(self._free.popleft())
        else:
            self._waiting.append(stream)
        if not self._free and len(self._workers) < self._limit and self._growing is None:
            self._growing = asyncio.create_task(self._grow())
        return stream

    async def _grow(self) -> None:
        worker = await _Worker().start()
        self._growing = None
        self._workers.append(worker)
        self.release(worker)

    def release(self, worker: _Worker) -> None:
        while self._waiting:
            stream = self._waiting.popleft()
            if not stream.over:
                stream.begin(worker)
                return
        self._free.append(worker)


class SphinxStream:
    """Sound that comes before a decoder is free waits."""

    def __init__(self, asr: SphinxAsr, on_partial: OnPartial) -> None:
        self.over = False
        self._asr = asr
        self._on_partial = on_partial
        self._loop = asyncio.get_running_loop()
        self._worker: _Worker | None = None
        self._begun = asyncio.Event()
        self._early: list[Pcm] = []
        self._fed = self._looked = 0
        self._text = ""

    def begin(self, worker: _Worker) -> None:
        self._worker = worker
        assert worker.decoder
        self._job(worker.decoder.start)
        for pcm in self._early:
            self._job(self._decode, pcm)
        self._early.clear()
        self._begun.set()

    def feed(self, pcm: Pcm) -> None:
        if self.over:
            return
        if self._worker is None:
            self._early.append(pcm)
        else:
            self._job(self._decode, pcm)

    async def settle(self) -> Hypothesis:
        await self._begun.wait()
        return await asyncio.wrap_future(self._job(self._hypothesis))

    async def finish(self) -> Hypothesis:
        hypothesis = await self.settle()
        self.cancel()
        return hypothesis

    def cancel(self) -> None:
        if self.over:
            return
        self.over = True
        worker = self._worker
        if worker and worker.decoder:
            done = self._job(worker.decoder.end)
            done.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._asr.release, worker))

    def _job(self, job: Callable[..., T], *arguments: Any) -> Any:
        assert self._worker
        return self._worker.pool.submit(job, *arguments)

    # On the worker's thread:

    def _decode(self, pcm: Pcm) -> None:
        if self.over:
            return
        assert self._worker and self._worker.decoder
        self._worker.decoder.feed(pcm)
        self._fed += pcm.size
        if self._fed - self._looked >= PARTIAL_SAMPLES:
            self._looked = self._fed
            text = self._worker.decoder.words()
            if text != self._text:
                self._text = text
                self._loop.call_soon_threadsafe(self._deliver, Hypothesis(text, self._fed))

    def _hypothesis(self) -> Hypothesis:
        assert self._worker and self._worker.decoder
        text = self._worker.decoder.words()
        return Hypothesis(text, self._fed, self._worker.decoder.end_logprob(text))

    def _deliver(self, hypothesis: Hypothesis) -> None:
        if not self.over:
            self._on_partial(hypothesis)
