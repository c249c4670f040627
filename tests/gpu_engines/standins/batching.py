"""Sequences side by side in one model: the tensors of a continuous batch, and its two kinds of step."""

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.gpu_engines.standins.device import CudaLane, Device, Recorded
from tests.gpu_engines.standins.llama import Cache, Llama
from voicepipe.bench.load import CACHED_TOKENS, TRAFFIC
from voicepipe.sizing.shapes import LlmShape

PREFILLS = (4, 2, 1)
"""Prompts that are read in one go."""
LENGTH = -(-(CACHED_TOKENS + TRAFFIC.new_tokens + TRAFFIC.reply_tokens) // 64) * 64
"""Tokens of a slot."""
KERNELS = [SDPBackend.EFFICIENT_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]
"""Of attention; on a GPU only the first and the last take a bias, and cuDNN would plan for each shape."""


class Batch:
    """`slots` sequences that all begin with the same cached tokens. Of `rows` that decode only the running ones count;
    the others turn in place. To be used by one thread."""

    def __init__(self, shape: LlmShape, slots: int, device: Device) -> None:
        self.lane: CudaLane = device.lane(urgent=True)
        self.slots = slots
        self.model: Llama = device.make(lambda: Llama(shape), device.bf16)
        self.cache = Cache(shape, slots, LENGTH, self.model.embed.weight)
        self.last = torch.zeros(slots, dtype=torch.int64, device=device.torch)
        """The newest token of each slot."""
        self.next = torch.zeros_like(self.last)
        """Where it will stand."""
        self._new = torch.zeros(max(PREFILLS), TRAFFIC.new_tokens, dtype=torch.int64, device=device.torch)
        self._into = torch.zeros(max(PREFILLS), dtype=torch.int64, device=device.torch)
        self.cached = torch.randint(shape.vocab, (CACHED_TOKENS,), device=device.torch)
        """What all sequences begin with."""
        self._prefix = self._learned()
        with sdpa_kernel(KERNELS):
            self._decodes = {rows: Recorded(partial(self._decode, rows), self.lane) for rows in buckets(slots)}
            self._prefills = {
                prompts: Recorded(partial(self._prefill, prompts), self.lane)
                for prompts in PREFILLS
                if prompts <= slots
            }

    def admit(self, prompts: Tensor, slots: Sequence[int]) -> list[int]:
        """Read prompts int64[n, new_tokens] into free slots, n being in PREFILLS; returns their first tokens."""
        count = len(slots)
        with self.lane.entered():
            for slot in slots:
                self.cache.kv[:, :, slot, :CACHED_TOKENS].copy_(self._prefix)
            self._new[:count].copy_(prompts, non_blocking=True)
            self._into[:count].copy_(torch.tensor(slots), non_blocking=True)
            return _told(self._prefills[count]())

    def step(self, running: Sequence[int]) -> list[int]:
        """One more token of each slot; returns those of slots 0, 1, ... up to the last that runs."""
        rows = next(rows for rows in buckets(self.slots) if rows > max(running))
        with self.lane.entered():
            return _told(self._decodes[rows]())

    def _prefill(self, count: int) -> Tensor:
        slots = self._into[:count]
        positions = torch.arange(CACHED_TOKENS, CACHED_TOKENS + TRAFFIC.new_tokens, device=slots.device).repeat(
            count, 1
        )
        tokens = self.model(self._new[:count], self.cache, slots, positions).argmax(-1)
        self.last[slots] = tokens
        self.next.index_fill_(0, slots, CACHED_TOKENS + TRAFFIC.new_tokens)  # a number put by index comes from the host
        return tokens

    def _decode(self, rows: int) -> Tensor:
        last, at = self.last[:rows], self.next[:rows]
        tokens = self.model(last[:, None], self.cache, None, at[:, None]).argmax(-1)
        last.copy_(tokens)
        at.add_(1).clamp_(max=self.cache.length - 1)  # a slot that nobody uses goes on without end
        return tokens

    def _learned(self) -> Tensor:
        """The cached tokens' keys and values: [layers, 2, CACHED_TOKENS, kv_heads, head_dim]."""
        positions = torch.arange(CACHED_TOKENS, device=self.cached.device)[None]
        with sdpa_kernel(KERNELS):
            self.model(self.cached[None], self.cache, None, positions)
        return self.cache.kv[:, :, 0, :CACHED_TOKENS].clone()


def _told(tokens: Tensor) -> list[int]:
    told: list[int] = tokens.tolist()  # waits for the lane; others have the GIL meanwhile
    return told


def buckets(slots: int) -> list[int]:
    """Rows for which a decoding step is recorded: powers of two, and all."""
    return [*(2**n for n in range(slots.bit_length()) if 2**n < slots), slots]
