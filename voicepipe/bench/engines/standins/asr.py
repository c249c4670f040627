"""The stand-in for faster-whisper: passes of fixed length, recorded for each size of batch."""

from functools import partial

import torch
from torch import Tensor

from voicepipe.bench.engines.readings import BATCH
from voicepipe.bench.engines.standins.device import CudaLane, Device, Recorded
from voicepipe.bench.engines.standins.whisper import PROMPT, RATE, Mel, Whisper
from voicepipe.sizing.shapes import AsrShape

TOKENS = 12
"""Of a reading: what four seconds of speech hold."""


class TorchAsr:
    """`window_s`: seconds that the encoder hears, whatever the utterance has."""

    def __init__(self, shape: AsrShape, window_s: int, device: Device) -> None:
        self._model: Whisper = device.make(lambda: Whisper(shape), device.half)
        self._mel, self._dtype = Mel(shape.mels, device.torch), device.half
        self._sound = 0.1 * torch.randn(BATCH, RATE * window_s)
        self._heard = self._sound.to(device.torch)
        self._prompt = torch.randint(shape.vocab, (BATCH, PROMPT), device=device.torch)
        self._lanes = {urgent: device.lane(urgent=urgent) for urgent in (True, False)}
        self._passes = {urgent: self._recorded(lane) for urgent, lane in self._lanes.items()}

    def read(self, heard_s: list[float], urgent: bool) -> None:
        """One pass; the words are in the host's memory when it returns. At most BATCH utterances."""
        passes = self._passes[urgent]
        batch = next(batch for batch in passes if batch >= len(heard_s))
        with self._lanes[urgent].entered():
            self._heard[:batch].copy_(self._sound[:batch], non_blocking=True)
            passes[batch]().tolist()

    def _recorded(self, lane: CudaLane) -> dict[int, Recorded]:
        sizes = [2**n for n in range(BATCH.bit_length())]
        return {batch: Recorded(partial(self._pass, batch), lane) for batch in sizes}

    def _pass(self, batch: int) -> Tensor:
        mel = self._mel(self._heard[:batch]).to(self._dtype)
        return self._model.read(mel, self._prompt[:batch], TOKENS)
