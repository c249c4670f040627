"""A step: chunks of 160 ms of any calls -> words in the host's memory, whole or kernel by kernel.

Not transformers' `generate`, and not its encoder's `forward`: that builds a mask by the age of the stream, and all our
slots are as old as the window is long, for which every key may be seen; layers, convolutions and joint are the class's
own. Its decoder asks the host whether anything but blanks was said. Ours does not: it takes at most `SYMBOLS` words a
frame, the rows that have said blank go on in place and change nothing, and so encoder and decoder are one recording.
The layers of the LSTM run by `lstm_cell` with the class's weights. Sound comes as mel frames: the front end is not
measured.
"""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from voicepipe.bench.engines.standins.device import CudaLane, Device, Recorded
from voicepipe.bench.engines.standins.streaming.model import FRAMES, MELS, left, positions, tune
from voicepipe.bench.engines.standins.streaming.slots import Keys, Paddings, Slots

SYMBOLS = 2
"""Words of one frame at most; the class's greedy search allows 10, which speech does not need."""
CHUNK_FRAMES = 8 * FRAMES
MOST = 64
"""Rows of a step."""
SIZES = [2**n for n in range(MOST.bit_length())]
SOUNDS = 32


class Row(NamedTuple):
    source: int
    target: int
    silent: bool


class Errors(logging.Handler):
    """What the stand-ins said of parts that could not be recorded."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.said: list[str] = []
        logging.getLogger("voicepipe.bench.engines.standins.device").addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(" ".join(record.getMessage().split())[:300])


class StandInRecogniser:
    """To be used by one thread at a time. Recordings are by lane, and by the size of the batch."""

    def __init__(self, model: Any, calls: int, spare: int, device: Device) -> None:
        self.model, self.device = model, device
        self.spare = range(calls, calls + spare)
        self._nobody = calls + spare
        """The slot of rows that only fill a batch."""
        self.slots = Slots(model, calls + spare + 1, left(model))
        self.lanes = {urgent: device.lane(urgent=urgent) for urgent in (True, False)}
        self._recorded: dict[bool, dict[int, Recorded]] = {True: {}, False: {}}
        self._mel, self._sent_mel = self._both(torch.randn(MOST, CHUNK_FRAMES, MELS).to(device.bf16))
        self._source, self._sent_source = self._both(torch.full((MOST,), self._nobody))
        self._target, self._sent_target = self._both(torch.full((MOST,), self._nobody))
        sounds = torch.randn(SOUNDS + 1, CHUNK_FRAMES, MELS)
        sounds[SOUNDS] = 0.1 * sounds[SOUNDS] - 3.0
        self._sounds = sounds.to(device.bf16)
        """The last is the silence."""
        self._turn = 0
        self._tuned = False

    def tune(self) -> None:
        """The same results from now on with less work. Recordings so far are not used any more, and stay: torch makes
        no recording in a pool whose last one is gone."""
        tune(self.model)
        self._tuned, self._old, self._recorded = True, self._recorded, {True: {}, False: {}}

    def record(self, sizes: Sequence[int], *, urgent: bool) -> None:
        lane = self.lanes[urgent]
        if self.device.cuda:
            torch.cuda.synchronize()
        with lane.entered():  # makes what the first step makes, outside of any recording
            self._hear(1).cpu()
        for size in sizes:
            self._recorded[urgent][size] = Recorded(partial(self._hear, size), lane)

    def hear(self, rows: Sequence[Row], *, graph: bool, urgent: bool = True) -> list[list[int]]:
        """One step; at most MOST rows. A row is what was said in each frame, blanks included."""
        size = next(size for size in SIZES if size >= len(rows))
        fill = [self._nobody] * (size - len(rows))
        self._turn += 1
        which = [SOUNDS if row.silent else (self._turn + n) % SOUNDS for n, row in enumerate(rows)] + [SOUNDS] * len(
            fill
        )
        self._sent_source[:size] = torch.tensor([row.source for row in rows] + fill)
        self._sent_target[:size] = torch.tensor([row.target for row in rows] + fill)
        self._sent_mel[:size] = self._sounds[which]
        lane: CudaLane = self.lanes[urgent]
        with lane.entered():
            for there, here in (
                (self._source, self._sent_source),
                (self._target, self._sent_target),
                (self._mel, self._sent_mel),
            ):
                there[:size].copy_(here[:size], non_blocking=True)
            said = (self._recorded[urgent][size] if graph else partial(self._hear, size))()
            words: list[list[int]] = said.tolist()  # waits for the lane; others have the GIL meanwhile
        return words[: len(rows)]

    def _both(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """There, and here where the device can fetch them."""
        here = values.pin_memory() if self.device.cuda else values.clone()
        return values.to(self.device.torch), here

    def _hear(self, size: int) -> Tensor:
        with torch.no_grad():
            source, target = self._source[:size], self._target[:size]
            return self._words(self.encoded(self._mel[:size], source, target), source, target)

    def encoded(self, mel: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """mel [B, CHUNK_FRAMES, MELS] -> [B, FRAMES, decoder's size]"""
        encoder = self.model.encoder
        paddings, keys = Paddings(self.slots, source, target), Keys(self.slots, source, target)
        x = encoder.subsampling(mel, None, padding_cache=paddings) * encoder.input_scale
        distances = x if self._tuned else positions(self.model, x)  # what is tuned reads nothing of it
        for layer in encoder.layers:
            x = layer(x, position_embeddings=distances, past_key_values=keys, padding_cache=paddings)
        projected: Tensor = self.model.encoder_projector(x)
        return projected

    def _words(self, frames: Tensor, source: Tensor, target: Tensor) -> Tensor:
        """int64[B, FRAMES * SYMBOLS]"""
        slots, blank = self.slots, self.model.config.blank_token_id
        said = slots.said.index_select(0, source)
        hidden, cell = slots.hidden.index_select(1, source), slots.cell.index_select(1, source)
        words = []
        for number in range(FRAMES):
            going = torch.ones(source.shape[0], 1, dtype=torch.bool, device=source.device)
            for _ in range(SYMBOLS):
                word = self.model.joint(said, frames[:, number]).argmax(-1, keepdim=True)
                going = going & (word != blank)
                words.append(torch.where(going, word, torch.full_like(word, blank)))
                new_said, new_hidden, new_cell = self.predicted(word[:, 0], hidden, cell)
                said = torch.where(going, new_said, said)
                hidden, cell = torch.where(going, new_hidden, hidden), torch.where(going, new_cell, cell)
        slots.said.index_copy_(0, target, said)
        slots.hidden.index_copy_(1, target, hidden)
        slots.cell.index_copy_(1, target, cell)
        return torch.cat(words, 1)

    def predicted(self, word: Tensor, hidden: Tensor, cell: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What the decoder makes of one word more, and its state [layers, B, size] twice."""
        decoder = self.model.decoder
        x, hiddens, cells = decoder.embedding(word), [], []
        for layer in range(hidden.shape[0]):
            weights = [
                getattr(decoder.lstm, f"{name}_l{layer}") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            ]
            x, state = torch.lstm_cell(x, (hidden[layer], cell[layer]), *weights)
            hiddens.append(x)
            cells.append(state)
        return decoder.decoder_projector(x), torch.stack(hiddens), torch.stack(cells)
