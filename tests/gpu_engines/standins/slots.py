"""What the recogniser remembers of each call, in tensors that stay where they are, so that a step can be recorded.

A row of a batch reads one slot and writes another, or the same: `source` and `target`. A settle thus copies nothing
of its own: its first step reads the call's slot and writes a spare one.
"""

from typing import Any

import torch
from torch import Tensor


class Slots:
    """Keys and values [layers, 2, slots, heads, left, d], the convolutions' last inputs, the decoder's state."""

    def __init__(self, model: Any, slots: int) -> None:
        config, like = model.config, {"dtype": model.dtype, "device": model.device}
        encoder = config.encoder_config
        self.left = int(encoder.sliding_window) - 1
        """Frames that attention sees before a chunk."""
        heads, size = encoder.num_attention_heads, encoder.hidden_size
        self.kv = torch.randn(encoder.num_hidden_layers, 2, slots, heads, self.left, size // heads, **like)
        self.slots = slots
        self.convs: dict[str, Tensor] = {}
        """Made by the first step, which knows their shapes."""
        size, layers = config.decoder_hidden_size, config.num_decoder_layers
        self.said = torch.randn(slots, size, **like)
        """What the decoder makes of the words so far."""
        self.hidden = torch.randn(layers, slots, size, **like)
        self.cell = torch.randn(layers, slots, size, **like)

    @property
    def finite(self) -> bool:
        return all(bool(each.isfinite().all()) for each in (self.said, self.cell, self.kv))

    @property
    def bytes_a_slot(self) -> int:
        tensors: tuple[Tensor, ...] = (self.kv, *self.convs.values(), self.said, self.hidden, self.cell)
        size: int = sum(each.numel() * each.element_size() for each in tensors)
        return size // self.slots


class Keys:
    """As a layer of transformers wants its cache."""

    def __init__(self, slots: Slots, source: Tensor, target: Tensor) -> None:
        self._slots, self._source, self._target = slots, source, target

    def update(self, keys: Tensor, values: Tensor, layer: int) -> tuple[Tensor, Tensor]:
        """Those of the slots and the new ones [B, heads, left + new, d]."""
        found = []
        for store, new in zip(self._slots.kv[layer], (keys, values), strict=True):
            whole = torch.cat([store.index_select(0, self._source), new], 2)
            store.index_copy_(0, self._target, whole[:, :, -self._slots.left :])
            found.append(whole)
        return found[0], found[1]


class Paddings:
    """As a causal convolution of transformers wants its cache. Time is dimension 2 of all of them."""

    def __init__(self, slots: Slots, source: Tensor, target: Tensor) -> None:
        self._slots, self._source, self._target = slots, source, target

    def update(self, x: Tensor, key: str, conv: Any) -> Tensor:
        if key not in self._slots.convs:
            size = (self._slots.slots, x.shape[1], conv.left_pad, *x.shape[3:])
            self._slots.convs[key] = torch.randn(size, dtype=x.dtype, device=x.device)
        store = self._slots.convs[key]
        whole = torch.cat([store.index_select(0, self._source), x], 2)
        store.index_copy_(0, self._target, whole[:, :, whole.shape[2] - conv.left_pad :])
        return whole
