"""The stand-in for kokoro-onnx: a phrase at a time on each of a few threads, as `engines/tts/kokoro.py` has it."""

from queue import SimpleQueue
from threading import Lock

import torch
from torch import Tensor

from tests.gpu_engines.standins.device import Device, Recorded
from tests.gpu_engines.standins.kokoro import Kokoro, TtsShape, lengths
from voicepipe.base.worker import Worker
from voicepipe.bench.load import TRAFFIC
from voicepipe.sizing.traffic import LATER_PHRASE_S

WORKERS = 2
"""Phrases that are spoken at a time: the configuration's default."""


class TorchTts:
    def __init__(self, shape: TtsShape, device: Device) -> None:
        model: Kokoro = device.make(lambda: Kokoro(shape), torch.float32)
        self.silent = 0
        """Phrases without any sound, which NaN becomes."""
        self._counting = Lock()
        self._speakers: SimpleQueue[_Speaker] = SimpleQueue()
        for _ in range(WORKERS):
            self._speakers.put(_Speaker(model, shape, device))
        self._worker = Worker("tts", WORKERS)

    async def speak(self, *, first: bool) -> None:
        """Raises EngineError, and what torch raises."""
        await self._worker.ask(lambda: self._speak(first), urgent=first)

    def _speak(self, first: bool) -> None:
        speaker = self._speakers.get()
        try:
            if not speaker.speak(first):
                with self._counting:
                    self.silent += 1
        finally:
            self._speakers.put(speaker)


class _Speaker:
    """Of one thread at a time: a first phrase and a later one, each of its usual length."""

    def __init__(self, model: Kokoro, shape: TtsShape, device: Device) -> None:
        self._voice = torch.randn(1, 2 * shape.style, device=device.torch)
        self._lanes = {first: device.lane(urgent=first) for first in (True, False)}
        self._texts, self._spoken = {}, {}
        for first, seconds in ((True, TRAFFIC.phrase.speech_s), (False, LATER_PHRASE_S)):
            phonemes, frames = lengths(seconds)
            self._texts[first] = text = torch.randint(shape.symbols, (1, phonemes), device=device.torch)

            def work(text: Tensor = text, frames: int = frames) -> Tensor:
                return (32767 * model(text, self._voice, frames)).to(torch.int16)

            self._spoken[first] = Recorded(work, self._lanes[first])

    def speak(self, first: bool) -> bool:
        """The speech is in the host's memory when this returns. False: all of it is silence."""
        with self._lanes[first].entered():
            self._texts[first].copy_(self._texts[first].flip(1))  # another text
            return bool(self._spoken[first]().cpu().any())
