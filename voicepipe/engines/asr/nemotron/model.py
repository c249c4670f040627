"""The model as transformers loads it, and a step for the chunks of some calls. Blocking.

Not transformers' `generate`, which walks one batch from one generator: here calls come and go between two steps.
"""

import gc
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron import checkpoint, front_end
from voicepipe.engines.asr.nemotron.batches import Batches, BatchRow
from voicepipe.engines.asr.nemotron.checkpoint import Checkpoint, Texts
from voicepipe.engines.asr.nemotron.encoding import NemotronEncoder
from voicepipe.engines.asr.nemotron.front_end import FACTOR, frames_of
from voicepipe.engines.asr.nemotron.states import States
from voicepipe.engines.asr.nemotron.steps import Row, StepOutput

MOST = 64
"""Rows of a step. With more a GPU takes longer for each."""
COPIES = 8
"""Rows of a step that read on in a copy of their slot (`settle`)."""


class LoadedNemotron:
    """A loaded Nemotron model, with the states of all utterances. Its methods block.

    Raises EngineMissing, EngineError: the model or a library behind it is not there, or not what it should be.
    """

    def __init__(self, config: NemotronConfig) -> None:
        found = checkpoint.read(config)
        self.frames = frames_of(config.chunk_ms)
        self.texts = Texts(found)
        # torch's threads spin while they wait for each other: one that has no core to itself slows all down tenfold.
        torch.set_num_threads(config.threads or max(1, (os.cpu_count() or 2) - 1))
        self.most, self.copies = min(MOST, config.streams + COPIES), COPIES
        try:
            model = _loaded(found, config)
            with torch.no_grad():
                encoder = NemotronEncoder(model, self.frames)
                self._states = States(model, config.streams + COPIES, encoder.left)
                self._batches = Batches(model, encoder, self._states, self.frames, self.most)
        except torch.OutOfMemoryError as error:
            raise _too_large(error) from None
        self._spares = range(config.streams, config.streams + COPIES)
        self._silence = np.zeros(front_end.samples(self.frames * FACTOR), np.int16)

    def warm(self) -> None:
        """Run every kind of step once; on a GPU record it. Raises EngineError."""
        try:
            self._batches.record()
        except torch.OutOfMemoryError as error:
            raise _too_large(error) from None
        self.try_out()

    def try_out(self) -> None:
        """Hear a chunk of silence. Raises EngineError, and what torch raises."""
        (heard,) = self._batches.hear([BatchRow(self._states.fresh, self._states.nobody, self._silence, 0)])
        if not heard.finite:
            raise EngineError("Nemotron computes no numbers: its weights, or the GPU, are broken.")

    def hear(self, rows: Sequence[Row]) -> list[StepOutput]:
        """Run one step: at most `most` rows, at most COPIES of them copies."""
        heard = [StepOutput([], True) for _ in rows]
        spares = iter(self._spares)
        at = [self._states.fresh if row.begins else row.slot for row in rows]
        into = [next(spares) if row.copies else row.slot for row in rows]
        for number in range(max(len(row.sounds) for row in rows)):
            going = [n for n, row in enumerate(rows) if number < len(row.sounds)]
            parts = [BatchRow(at[n], into[n], rows[n].sounds[number], rows[n].prompt) for n in going]
            for n, more in zip(going, self._batches.hear(parts), strict=True):
                heard[n] = StepOutput(heard[n].tokens + more.tokens, heard[n].finite and more.finite)
                at[n] = into[n]
        return heard

    def unload(self) -> None:
        """Release its memory; it hears no more."""
        cuda = self._states.kv.is_cuda
        del self._batches, self._states
        gc.collect()  # modules hold each other
        if cuda:
            torch.cuda.empty_cache()


def _loaded(found: Checkpoint, config: NemotronConfig) -> Any:
    """transformers' model, on its device."""
    device = config.device
    if device.startswith("cuda") and not torch.cuda.is_available():
        raise EngineError(
            f"nemotron.device = {config.device!r}, and torch sees no GPU here; `voicepipe doctor` shows what there is"
        )
    dtype = config.dtype_on(device)
    try:
        from transformers.utils.logging import disable_progress_bar

        disable_progress_bar()
        model = _class(found).from_pretrained(found.directory, dtype=getattr(torch, dtype), local_files_only=True)
        return model.to(device).eval().requires_grad_(False)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # transformers, safetensors and torch each raise their own
        raise EngineError(f"Nemotron cannot be loaded from {found.directory}: {str(error).strip()}") from None


def _class(found: Checkpoint) -> Any:
    try:
        if found.many_languages:
            from transformers.models.nemotron3_5_asr.modeling_nemotron3_5_asr import Nemotron3_5AsrForRNNT

            return Nemotron3_5AsrForRNNT
        from transformers.models.nemotron_asr_streaming.modeling_nemotron_asr_streaming import (
            NemotronAsrStreamingForRNNT,
        )

        return NemotronAsrStreamingForRNNT
    except ImportError as error:
        raise EngineMissing(f"transformers has no Nemotron ({error}); pip install 'transformers>=5.16,<5.24'") from None


def _too_large(error: Exception) -> EngineError:
    said = str(error).strip().splitlines()[0]
    return EngineError(
        f"Nemotron does not fit on the GPU ({said}): give it another `device`, or lower nemotron.streams."
    )
