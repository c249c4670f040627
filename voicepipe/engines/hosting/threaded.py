"""Models on threads of ours: they are loaded there, what they fail at is counted, and what hangs is seen. Cores of
`supervised.py`."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import FailureTrials


class ThreadedModel(Protocol):
    """A model in our own process, which a thread of ours uses. Implemented by `LoadedWhisper`, `LoadedNemotron`,
    `HibariModel`.
    """

    def warm(self) -> None:
        """Do once what it will be asked for. Blocks. Raises EngineError."""

    def unload(self) -> None:
        """Release its memory at once: exceptions may hold the model for long."""


M = TypeVar("M", bound=ThreadedModel)


async def loaded(worker: Worker, load: Callable[[], M]) -> M:
    """Load a model and warm it up, on the worker's thread: a library's own threads are as nice as the one that makes
    them. If that fails, the worker is closed. Raises what `load` raises, EngineError."""
    try:
        model = await worker.submit(load)
        await worker.submit(model.warm)
        return model
    except BaseException:
        worker.close()
        raise


class ThreadedVoice(Generic[M]):
    """A voice's model with its threads. Implements `supervised.Core`. `name`: what errors call the library; `trial`
    speaks something short."""

    def __init__(self, name: str, worker: Worker, model: M, trial: Callable[[], object], stall_s: float) -> None:
        self._name = name
        self.worker, self.model = worker, model
        self._failures = FailureTrials(lambda: worker.ask(trial, urgent=True, within_s=stall_s))

    @property
    def errored(self) -> bool:
        return self._failures.broken or self.hung

    @property
    def hung(self) -> bool:
        return self.worker.overdue()

    async def ask(self, speak: Callable[[], Speech], *, first: bool, within_s: float) -> Speech:
        """Have `speak` make speech on a thread; a call that takes longer than `within_s` hangs. `first`: a caller waits
        for it. Raises EngineError, EngineDead."""
        speaking = self.worker.ask(speak, urgent=first, within_s=within_s)
        try:
            speech = await speaking
        except EngineDead:
            raise  # It was closed, or hung: that was seen.
        except Exception as error:  # also what nobody expected: it must end a phrase and not the call
            self._failures.failed()
            if isinstance(error, EngineError):
                raise
            raise EngineError(f"{self._name} failed: {error!r}") from error
        self._failures.worked()
        return speech

    async def close(self) -> None:
        """Fail who waits, or asks from now on, with EngineDead."""
        self.model.unload()
        self.worker.close(EngineDead(f"{self._name} hangs or failed and is being loaded again: see the log."))


class RecogniserQueue(Protocol):
    """The queue of utterances that wait for a recogniser's model. Implemented by `Passes`, `Steps`."""

    failures: FailureTrials

    def close(self) -> None:
        """Fail whoever waits."""


Q = TypeVar("Q", bound=RecogniserQueue)


class RecogniserCore(Generic[Q, M]):
    """A recogniser's model with its threads and its queue. Implements `supervised.Core`."""

    def __init__(self, worker: Worker, queue: Q, model: M) -> None:
        self._worker, self.queue, self.model = worker, queue, model

    @property
    def errored(self) -> bool:
        return self.queue.failures.broken or self.hung

    @property
    def hung(self) -> bool:
        return self._worker.overdue()

    async def close(self) -> None:
        hung = self.hung
        self.queue.close()
        if hung:
            return self._worker.close()  # Its thread has the model.
        try:
            await self._worker.submit(self.model.unload)
        finally:
            self._worker.close()
