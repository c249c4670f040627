"""What the model remembers of each call, in tensors that stay where they are, so that a step can be recorded.

A row of a batch reads one slot and writes another, or the same. So a copy costs nothing of its own, and a call begins
by reading the slot FRESH, which nobody writes: that of a call that has said nothing yet.
"""

from typing import Any

import torch
from torch import Tensor

from voicepipe.engines.asr.nemotron import greedy


class States:
    """The model's memory of all utterances: tensors with `slots` slots, and two more. `left`: frames that attention
    sees before a chunk."""

    def __init__(self, model: Any, slots: int, left: int) -> None:
        config, like = model.config, {"dtype": model.dtype, "device": model.device}
        encoder, self.left = config.encoder_config, left
        self.fresh, self.nobody = slots, slots + 1
        """The slot that all begin with, and that of rows whose state is not kept."""
        self.slots = slots + 2
        heads = encoder.num_attention_heads
        shape = (encoder.num_hidden_layers, 2, self.slots, heads, left, encoder.hidden_size // heads)
        self.kv = torch.zeros(shape, **like)
        """Keys and values."""
        self.age = torch.zeros(self.slots, dtype=torch.long, device=model.device)
        """Frames that each slot has heard, `left` at most: attention may see no others."""
        self.convs: dict[str, Tensor] = {}
        """The last inputs of each convolution. Made by the first step, which knows their shapes."""
        self.prediction, self.hidden, self.cell = (
            part.repeat(*([1] * (part.dim() - 2)), self.slots, 1).contiguous() for part in greedy.initial_state(model)
        )
        """The prediction network's states: [slots, size], and [layers, slots, size] twice."""


class SlotAccess:
    """The slots that B rows of a step read (`source`) and write (`target`): int64[B] each."""

    def __init__(self, states: States, source: Tensor, target: Tensor) -> None:
        self.states, self._source, self._target = states, source, target
        self.keys, self.paddings = SlotKeyValues(states, source, target), SlotPaddings(states, source, target)
        self.age = states.age.index_select(0, source)
        """int64[B]: frames that each row had heard before this chunk."""

    def advance(self, frames: int) -> None:
        """Note that so many more frames were heard."""
        self.states.age.index_copy_(0, self._target, (self.age + frames).clamp(max=self.states.left))

    def attention_mask(self, frames: int) -> Tensor:
        """bool[B, 1, 1, left + frames]: which keys are those of the row's call."""
        keys = torch.arange(self.states.left + frames, device=self.age.device)
        return (keys >= self.states.left - self.age[:, None])[:, None, None]

    def decoder_state(self) -> greedy.DecoderState:
        """The rows' state at the first of a chunk's frames."""
        states, like = self.states, self.age
        prediction = states.prediction.index_select(0, self._source)
        hidden, cell = states.hidden.index_select(1, self._source), states.cell.index_select(1, self._source)
        frame, count = torch.zeros_like(like), torch.zeros_like(like)
        return greedy.DecoderState(prediction, hidden, cell, frame, count, torch.ones_like(like).bool())

    def store(self, state: greedy.DecoderState) -> None:
        self.states.prediction.index_copy_(0, self._target, state.prediction)
        self.states.hidden.index_copy_(1, self._target, state.hidden)
        self.states.cell.index_copy_(1, self._target, state.cell)


class SlotKeyValues:
    """The cache of attention's keys and values over slots, with the interface that a layer of transformers wants."""

    def __init__(self, states: States, source: Tensor, target: Tensor) -> None:
        self._states, self._source, self._target = states, source, target

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """The slots' keys and values with the new ones: [B, heads, left + new, d]."""
        found = []
        for store, new in zip(self._states.kv[layer], (keys, values), strict=True):
            whole = torch.cat([store.index_select(0, self._source), new], 2)
            store.index_copy_(0, self._target, whole[:, :, whole.shape[2] - self._states.left :])
            found.append(whole)
        return found[0], found[1]


class SlotPaddings:
    """The cache of past inputs over slots, with the interface that a causal convolution of transformers wants. Time is
    dimension 2 of all tensors."""

    def __init__(self, states: States, source: Tensor, target: Tensor) -> None:
        self._states, self._source, self._target = states, source, target

    def update(self, x: Tensor, key: str, conv: Any) -> Tensor:
        """The last inputs in the slots, followed by `x`."""
        if key not in self._states.convs:
            shape = (self._states.slots, x.shape[1], conv.left_pad, *x.shape[3:])
            self._states.convs[key] = torch.zeros(shape, dtype=x.dtype, device=x.device)
        store = self._states.convs[key]
        whole = torch.cat([store.index_select(0, self._source), x], 2)
        store.index_copy_(0, self._target, whole[:, :, whole.shape[2] - conv.left_pad :])
        return whole
