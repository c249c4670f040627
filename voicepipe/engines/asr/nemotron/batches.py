"""One step: a chunk of each of some calls -> their tokens. Blocking; to be used by one thread.

Inputs and outputs stay at fixed addresses, so that steps can be recorded: one for each size of a batch, the powers of
two.
Rows that fill a batch up begin with nothing and keep nothing. Encoder and the first rounds of the search are one
recording; where a row says more than those rounds hold, further ones follow until all rows are done.
"""

import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from voicepipe.audio import Pcm
from voicepipe.engines.asr.nemotron import front_end, greedy
from voicepipe.engines.asr.nemotron.encoding import NemotronEncoder
from voicepipe.engines.asr.nemotron.front_end import FACTOR
from voicepipe.engines.asr.nemotron.states import SlotAccess, States
from voicepipe.engines.asr.nemotron.steps import StepOutput

log = logging.getLogger(__name__)
WARM_UPS = 3
"""Runs before a recording: libraries choose their kernels and take their workspaces."""
FIRST_MORE, MORE = 2, 4
"""Rounds of the search beside one a frame: in the first recording, and in each further one. Quick speech has two
tokens in 160 ms. On a CPU, where nothing is recorded, there are no more than needed."""


class BatchRow(NamedTuple):
    """One row of a step: a chunk of one call's sound, which reads the state in slot `source` and writes it to slot
    `target`."""

    source: int
    target: int
    sound: Pcm
    prompt: int


class Batches:
    """Runs one step of the model for a batch of rows, at most `most`; on a GPU from CUDA graphs that were recorded for
    each batch size."""

    def __init__(self, model: Any, encoder: NemotronEncoder, states: States, frames: int, most: int) -> None:
        self._model, self._encoder, self._states, self._last = model, encoder, states, frames - 1
        self._stream = PriorityStream(model.device)
        self._sizes = [2**n for n in range((most - 1).bit_length() + 1)]
        rows, device = self._sizes[-1], model.device
        self._sound = torch.zeros(rows, front_end.samples(frames * FACTOR), dtype=torch.int16, device=device)
        self._which = torch.zeros(3, rows, dtype=torch.long, device=device)
        """int64[3, rows]: sources, targets, prompts."""
        self._sent_sound, self._sent_which = self._sendable(self._sound), self._sendable(self._which)
        size = model.config.decoder_hidden_size
        self._frames = torch.zeros(rows, frames, size, dtype=model.dtype, device=device)
        nobody = torch.full((rows,), states.nobody, device=device)
        self._decoder_state = SlotAccess(states, nobody, nobody).decoder_state()
        lazy = not self._stream.cuda
        self._rounds = (frames, 1) if lazy else (frames + FIRST_MORE, MORE)
        self._first_run: dict[int, Callable[[], Tensor]] = {n: partial(self._first_rounds, n) for n in self._sizes}
        self._further_run: dict[int, Callable[[], Tensor]] = {
            n: partial(self._more_rounds, n, self._rounds[1]) for n in self._sizes
        }

    def record(self) -> None:
        """Run every size once; on a GPU record it."""
        self._stream.follow()
        with torch.no_grad(), self._stream.entered():
            self._which[:2] = torch.tensor([[self._states.fresh], [self._states.nobody]], device=self._which.device)
            self._first_run[1]().tolist()  # makes what the first step makes, outside of any recording
            self._first_run[self._sizes[-1]]().tolist()
            for size in self._sizes:
                self._first_run[size] = self._stream.recorded(self._first_run[size])
                self._further_run[size] = self._stream.recorded(self._further_run[size])

    def hear(self, parts: Sequence[BatchRow]) -> list[StepOutput]:
        size = next(size for size in self._sizes if size >= len(parts))
        self._send(parts, size)
        said = [StepOutput([], True) for _ in parts]
        with torch.no_grad(), self._stream.entered():
            self._sound[:size].copy_(self._sent_sound[:size], non_blocking=True)
            self._which[:, :size].copy_(self._sent_which[:, :size], non_blocking=True)
            rows = self._first_run[size]().tolist()  # waits for the device; others have the GIL meanwhile
            while True:
                for number, (*tokens, _, finite) in enumerate(rows[: len(parts)]):
                    more = [token for token in tokens if token != greedy.NO_TOKEN]
                    said[number] = StepOutput(said[number].tokens + more, bool(finite))
                if all(row[-2] > self._last for row in rows):
                    return said
                rows = self._further_run[size]().tolist()

    def _send(self, parts: Sequence[BatchRow], size: int) -> None:
        fill = size - len(parts)
        which = [
            [*(part.source for part in parts), *[self._states.fresh] * fill],
            [*(part.target for part in parts), *[self._states.nobody] * fill],
            [*(part.prompt for part in parts), *[0] * fill],
        ]
        self._sent_which[:, :size] = torch.tensor(which)
        for row, part in zip(self._sent_sound, parts, strict=False):
            row.copy_(torch.from_numpy(part.sound))
        self._sent_sound[len(parts) : size] = 0

    def _sendable(self, there: Tensor) -> Tensor:
        """A tensor like `there` in the host's memory, from which the device can fetch it."""
        return torch.zeros(there.shape, dtype=there.dtype, pin_memory=self._stream.cuda)

    def _first_rounds(self, size: int) -> Tensor:
        access = self._access(size)
        self._frames[:size] = self._encoder.frames(self._sound[:size], access, self._which[2, :size])
        self._put(size, access.decoder_state())
        return self._more_rounds(size, self._rounds[0])

    def _more_rounds(self, size: int, rounds: int) -> Tensor:
        """int64[size, rounds + 2]: tokens, the frame at which each row stands, and whether all scores were numbers."""
        now = greedy.DecoderState(*(_rows(part, size) for part in self._decoder_state))
        state, tokens = greedy.search(self._model, self._frames[:size], now, rounds, lazy=not self._stream.cuda)
        self._put(size, state)
        self._access(size).store(state)
        return torch.cat([tokens, state.frame[:, None], state.finite[:, None].long()], 1)

    def _access(self, size: int) -> SlotAccess:
        return SlotAccess(self._states, self._which[0, :size], self._which[1, :size])

    def _put(self, size: int, state: greedy.DecoderState) -> None:
        for stored, part in zip(self._decoder_state, state, strict=True):
            _rows(stored, size).copy_(part)


def _rows(part: Tensor, size: int) -> Tensor:
    """The first `size` rows of a batch: of the dimension before the last for states, else of the only one."""
    return part[..., :size, :] if part.dim() > 1 else part[:size]


class PriorityStream:
    """A CUDA stream for one thread's work, which goes before that of others in this process. On a CPU it does
    nothing."""

    def __init__(self, device: torch.device) -> None:
        self.cuda = device.type == "cuda"
        self._stream = torch.cuda.Stream(device, priority=-1) if self.cuda else None
        self._pool = torch.cuda.graph_pool_handle() if self.cuda else None

    def follow(self) -> None:
        """Have the stream's work wait for what was begun outside it so far."""
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))

    def entered(self) -> AbstractContextManager[object]:
        """A context in which this thread's work goes to this stream."""
        return torch.cuda.stream(self._stream) if self._stream else nullcontext()

    def recorded(self, work: Callable[[], Tensor]) -> Callable[[], Tensor]:
        """`work`, which takes and leaves its tensors where they are. What it returns stands until the stream's next
        work begins. On a CPU, and where CUDA cannot record it, it is `work` itself."""
        if self._stream is None:
            return work
        with self.entered():
            for _ in range(WARM_UPS):
                work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                output = work()
        except RuntimeError as error:
            log.warning("the recogniser runs kernel by kernel, which is slow: CUDA cannot record a step: %s", error)
            torch.cuda.set_stream(torch.cuda.default_stream(self._stream.device))  # it is still in the recording's
            return work

        def replay() -> Tensor:
            graph.replay()
            return output

        return replay
