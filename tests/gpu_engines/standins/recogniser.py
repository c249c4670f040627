"""The recogniser: transformers' own class of Nemotron Speech Streaming 0.6B with random weights. A step takes chunks of
160 ms of any calls, and leaves their words in the host's memory. The published shape is that of the configuration's
defaults with 128 mel bands: 24 layers of 1024.

Not transformers' `generate`, and not its encoder's `forward`: that builds a mask by the age of the stream, and all our
slots are as old as the window is long, for which every key may be seen; layers, convolutions and joint are the class's
own. Its decoder asks the host whether anything but blanks was said. Ours does not: it takes at most `SYMBOLS` words a
frame, the rows that have said blank go on in place and change nothing, and so encoder and decoder are one recording.
The layers of the LSTM run by `lstm_cell` with the class's weights. Sound comes as mel frames: the front end is not
measured.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers.models.nemotron_asr_streaming.configuration_nemotron_asr_streaming import (
    NemotronAsrStreamingConfig,
    NemotronAsrStreamingEncoderConfig,
)
from transformers.models.nemotron_asr_streaming.modeling_nemotron_asr_streaming import NemotronAsrStreamingForRNNT

from tests.gpu_engines.standins.device import Device, Recorded
from tests.gpu_engines.standins.slots import Keys, Paddings, Slots

LOOKAHEAD = 1
"""Frames of 80 ms behind the present one: chunks are of 160 ms."""
FRAMES = LOOKAHEAD + 1
MELS = 128
TINY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128,
        "subsampling_conv_channels": 16}  # fmt: skip
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


class StandInRecogniser:
    """To be used by one thread at a time. Recordings are by the size of the batch."""

    def __init__(self, device: Device, tiny: bool, calls: int, spare: int) -> None:
        """`spare`: settles at a time."""
        self.model, self.device = _built(device, tiny), device
        self.spare = range(calls, calls + spare)
        self._nobody = calls + spare
        """The slot of rows that only fill a batch."""
        self.slots = Slots(self.model, calls + spare + 1)
        _lessen(self.model, self.slots.left)
        self._lane = device.lane(urgent=True)
        self._mel, self._sent_mel = self._both(torch.randn(MOST, CHUNK_FRAMES, MELS).to(device.bf16))
        self._source, self._sent_source = self._both(torch.full((MOST,), self._nobody))
        self._target, self._sent_target = self._both(torch.full((MOST,), self._nobody))
        sounds = torch.randn(SOUNDS + 1, CHUNK_FRAMES, MELS)
        sounds[SOUNDS] = 0.1 * sounds[SOUNDS] - 3.0
        self._sounds = sounds.to(device.bf16)
        """The last is the silence."""
        self._turn = 0
        if device.cuda:
            torch.cuda.synchronize()
        with self._lane.entered():  # makes what the first step makes, outside of any recording
            self._hear(1).cpu()
        self._recorded = {size: Recorded(partial(self._hear, size), self._lane) for size in SIZES}

    def warm(self) -> None:
        """In the thread that will take the steps: libraries keep their choices by thread."""
        for size in SIZES:
            rows = [Row(slot, slot, silent=False) for slot in range(size)]
            for graph in (False, True) * 2:
                self.hear(rows, graph=graph)

    def hear(self, rows: Sequence[Row], *, graph: bool = True) -> list[list[int]]:
        """One step; at most MOST rows. A row is what was said in each frame, blanks included."""
        size = next(size for size in SIZES if size >= len(rows))
        fill = [self._nobody] * (size - len(rows))
        self._turn += 1
        which = [SOUNDS if row.silent else (self._turn + n) % SOUNDS for n, row in enumerate(rows)]
        which += [SOUNDS] * len(fill)
        self._sent_source[:size] = torch.tensor([row.source for row in rows] + fill)
        self._sent_target[:size] = torch.tensor([row.target for row in rows] + fill)
        self._sent_mel[:size] = self._sounds[which]
        with self._lane.entered():
            self._source[:size].copy_(self._sent_source[:size], non_blocking=True)
            self._target[:size].copy_(self._sent_target[:size], non_blocking=True)
            self._mel[:size].copy_(self._sent_mel[:size], non_blocking=True)
            said = (self._recorded[size] if graph else partial(self._hear, size))()
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
        for layer in encoder.layers:
            # As `_lessen` leaves it, a layer has the distances and reads nothing of these embeddings.
            x = layer(x, position_embeddings=x, past_key_values=keys, padding_cache=paddings)
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


def _built(device: Device, tiny: bool) -> Any:
    """On the device, in bfloat16 (on a CPU in float32)."""
    encoder = NemotronAsrStreamingEncoderConfig(num_mel_bins=MELS, **(TINY if tiny else {}))
    config = NemotronAsrStreamingConfig(encoder_config=encoder, **({"decoder_hidden_size": 32} if tiny else {}))
    model = device.make(lambda: NemotronAsrStreamingForRNNT(config), device.bf16)
    positions = model.encoder.encode_positions  # its numbers are no weights, and were lost with the meta device
    positions.inv_freq = positions.compute_default_relative_positional_parameters(encoder).to(device.torch)
    return model


def _lessen(model: Any, left: int) -> None:
    """The same results with less work: what is made of distances alone is made once, and convolutions of width 1 are
    matrix products, which need not be looked for among cuDNN's kernels."""
    config = model.config.encoder_config
    like = torch.zeros(1, FRAMES, config.hidden_size, dtype=model.dtype, device=model.device)
    with torch.no_grad():
        distances = model.encoder.encode_positions(like, cached_frames=left)
        for layer in model.encoder.layers:
            keys = layer.self_attn.relative_k_proj(distances)
            layer.self_attn.relative_k_proj.forward = lambda x, keys=keys: keys.expand(x.shape[0], -1, -1)
            for conv in (layer.conv.pointwise_conv1, layer.conv.pointwise_conv2):
                conv.forward = lambda x, conv=conv: F.linear(
                    x.transpose(1, 2), conv.weight.squeeze(-1), conv.bias
                ).transpose(1, 2)
