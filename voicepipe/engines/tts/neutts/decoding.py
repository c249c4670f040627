"""The codec on a thread of ours: windows that wait are decoded together, each call's in turn."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from voicepipe.base.errors import EngineDead
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech
from voicepipe.engines.tts.neutts.windows import Sound

BATCH = 16
"""Windows that are decoded together, at most."""
Decode = Callable[[Sequence[Sequence[int]]], list[Sound]]


@dataclass(eq=False, slots=True)
class _WaitingWindow:
    """A window of codes that waits to be decoded, and then its sound."""

    codes: Sequence[int]
    sound: Sound | None = None


class CodecBatches:
    """Decodes windows of codes in batches, for all calls, on the one thread of `worker`. `decode` takes windows that
    are equally long."""

    def __init__(self, worker: Worker, decode: Decode, stall_s: float) -> None:
        self.worker = worker
        self._decode = decode
        self._stall_s = stall_s
        self._waiting: list[_WaitingWindow] = []
        self._one = threading.Lock()

    async def ask(self, codes: Sequence[int], use: Callable[[Sound], Speech], *, first: bool) -> Speech:
        """Decode a window. Returns what `use`, which runs on the thread too, makes of its sound. `first`: a caller
        hears nothing until then. Raises EngineBusy, EngineDead, and what decoding raises."""
        asked = _WaitingWindow(codes)
        with self._one:
            self._waiting.append(asked)
        try:
            return await self.worker.ask(partial(self._made, asked, use), urgent=first, within_s=self._stall_s)
        finally:
            with self._one:
                if asked in self._waiting:
                    self._waiting.remove(asked)

    def close(self, why: str) -> None:
        """Fail who waits with EngineDead, and forget the codec: its memory is released, whoever holds this."""

        def ended(windows: Sequence[Sequence[int]]) -> list[Sound]:
            raise EngineDead(why)

        self._decode = ended
        self.worker.close(EngineDead(why))

    def _made(self, asked: _WaitingWindow, use: Callable[[Sound], Speech]) -> Speech:
        """Decode a batch. Who comes first in the worker's order takes others along, who find their sound when it is
        their turn."""
        if asked.sound is None:
            with self._one:
                others = [each for each in self._waiting if len(each.codes) == len(asked.codes) and each is not asked]
                batch = [asked, *others][:BATCH]
                self._waiting = [each for each in self._waiting if each not in batch]
            for each, sound in zip(batch, self._decode([each.codes for each in batch]), strict=True):
                each.sound = sound
        assert asked.sound is not None
        return use(asked.sound)
