"""Stand-ins as stages: as in a PoP the recogniser and the voice are in this process, the language model in another."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from voicepipe.bench.engines.chosen import Options
from voicepipe.bench.engines.load import TRAFFIC
from voicepipe.bench.engines.readings import Readings
from voicepipe.bench.engines.shapes import TtsShape
from voicepipe.bench.engines.standins.apart import LanguageApart
from voicepipe.bench.engines.standins.asr import TorchAsr
from voicepipe.bench.engines.standins.device import Device
from voicepipe.bench.engines.standins.tts import TorchTts
from voicepipe.sizing.shapes import AsrShape, LlmShape

RATE = 16_000


async def language(options: Options, shape: LlmShape) -> LanguageApart:
    """Raises EngineError: its process did not start."""
    llm = LanguageApart(options.llm, shape, max(options.calls), options.device)
    await llm.start()
    return llm


def recogniser(options: Options, shape: AsrShape, device: Device) -> "ReadingAsr":
    standin = TorchAsr(shape, options.window_s, device)
    name = f"Whisper {options.asr} with windows of {options.window_s} s"
    return ReadingAsr(Readings(f"stand-in: {name} in torch, {device.named(device.half)}", shape.weights, standin.read))


def voice(options: Options, shape: TtsShape, device: Device) -> "WholePhrases":
    return WholePhrases(TorchTts(options.tts, shape, device))


class ReadingAsr:
    """A recogniser that reads the newest sound of an utterance again and again, as Whisper does."""

    def __init__(self, readings: Readings) -> None:
        self.name, self.weights = readings.name, readings.weights
        self._readings = readings
        self._utterances = 0

    def listen(self, call: int, told: Callable[[int], None]) -> "ReadUtterance":
        self._utterances += 1
        return ReadUtterance(self._readings, self._utterances, told)

    def close(self) -> None:
        self._readings.close()


class ReadUtterance:
    """`number`: of the utterance; readings of one replace one another."""

    def __init__(self, readings: Readings, number: int, told: Callable[[int], None]) -> None:
        self._readings, self._number, self._told = readings, number, told
        self._fed = self._asked = 0
        self._reading: set[asyncio.Task[None]] = set()

    def feed(self, pcm: Any) -> None:
        self._fed += len(pcm)
        if self._fed - self._asked >= TRAFFIC.partial_s * RATE:
            self._asked = self._fed
            task = asyncio.create_task(self._partial(self._fed))
            self._reading.add(task)
            task.add_done_callback(self._reading.discard)

    async def settle(self) -> None:
        await self._readings.read(self._number, self._fed / RATE, final=True)

    def cancel(self) -> None:
        for task in self._reading:
            task.cancel()

    async def _partial(self, upto: int) -> None:
        if await self._readings.read(self._number, upto / RATE, final=False):
            self._told(upto)


class WholePhrases:
    """A voice whose first sound comes with a phrase's last."""

    def __init__(self, tts: TorchTts) -> None:
        self.name, self.weights = tts.name, tts.weights
        self._tts = tts

    async def speak(self, call: int, text: str, *, first: bool) -> AsyncGenerator[None, None]:
        await self._tts.speak(call, first=first)
        yield

    def close(self) -> None:
        self._tts.close()
