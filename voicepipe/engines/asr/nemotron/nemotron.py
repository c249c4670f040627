"""`nemotron`: a recogniser that listens. One model for all calls, on a GPU, or slowly on a CPU.

Each chunk of sound is heard once, when it comes, with what the model remembers of the call. When a silence begins, the
rest and a little silence are heard in a copy of that memory: its words are the final ones, unless the voice comes back,
and then the call goes on with the memory that has no silence in it.
"""

import time
from functools import partial
from typing import TYPE_CHECKING

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.base.worker import Worker
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron.chunks import Chunks
from voicepipe.engines.asr.nemotron.steps import Steps
from voicepipe.engines.asr.nemotron.stream import NemotronStream
from voicepipe.engines.base import OnPartial
from voicepipe.engines.hosting.life import IN_PROCESS, Life
from voicepipe.engines.hosting.threaded import ThreadedRecogniser, loaded

if TYPE_CHECKING:
    from voicepipe.engines.asr.nemotron.model import LoadedNemotron


class NemotronRecogniser(ThreadedRecogniser):
    """A loaded Nemotron model with its thread and the queue of its steps. Implements `life.Core`."""

    def __init__(self, worker: Worker, model: "LoadedNemotron", config: NemotronConfig) -> None:
        self.model = model
        gather_s = config.gather_ms / 1000
        self.steps = Steps(worker, model, config.streams, config.stall_s, time.monotonic, gather_s)
        super().__init__(worker, self.steps, model)


class NemotronAsr(Life[NemotronRecogniser]):
    """The engine `nemotron`: a streaming recogniser. Implements `base.Asr` and `base.HasDecoders`. A model that fails
    repeatedly is loaded again."""

    def __init__(self, config: NemotronConfig) -> None:
        super().__init__("recogniser", self._load, IN_PROCESS)
        self._config = config

    @property
    def decoders_in_use(self) -> int:
        return self.last.steps.slots.in_use if self.last else 0

    def stream(self, on_partial: OnPartial, *, language: str = "en", asked: str = "") -> NemotronStream:
        """Begin an utterance. While the model is loaded again, calls that go on have streams that hear nothing and say
        why."""
        if self.last is None:
            raise EngineError("NemotronAsr was not started.")
        model, texts = self.last.model, self.last.model.texts
        prompt = texts.prompt(None if self._config.detect_language else language)
        return NemotronStream(self.last.steps, on_partial, texts.text, Chunks(model.frames), prompt)

    async def _load(self) -> NemotronRecogniser:
        """A model that has run every kind of step once. Raises EngineMissing, EngineError."""
        worker = Worker("nemotron", told=False)  # It runs one step at a time; `Steps` has the queue.
        model = await loaded(worker, partial(_loaded, self._config))
        return NemotronRecogniser(worker, model, self._config)


def _loaded(config: NemotronConfig) -> "LoadedNemotron":
    try:
        from voicepipe.engines.asr.nemotron.model import LoadedNemotron
    except ImportError as error:
        raise EngineMissing(
            f"nemotron needs torch and transformers, which vLLM brings along ({error}); pip install 'torch' "
            "'transformers>=5.16,<5.24'"
        ) from None
    return LoadedNemotron(config)
