"""Models on threads of ours: they are loaded there, what they fail at is counted, and what hangs is seen. Cores of
`life.py`."""

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from voicepipe.base.errors import EngineDead, EngineError
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import Tried


class ThreadedModel(Protocol):
    def warm(self) -> None:
        """Do once what it will be asked for; blocks. Raises EngineError."""

    def unload(self) -> None:
        """Give its memory back, at once: exceptions may hold the model for long."""


M = TypeVar("M", bound=ThreadedModel)


async def loaded(worker: Worker, load: Callable[[], M]) -> M:
    """A model that is warm; where it cannot be had, the worker is closed. A library's own threads are as nice as the
    one that makes them, so all of this is the worker's. Raises what `load` raises, EngineError."""
    try:
        model = await worker.submit(load)
        await worker.submit(model.warm)
        return model
    except BaseException:
        worker.close()
        raise


class ThreadedVoice(Generic[M]):
    """Implements `life.Core`. `name`: as errors call the library; `trial` speaks something short."""

    def __init__(self, name: str, worker: Worker, model: M, trial: Callable[[], object], stall_s: float) -> None:
        self._name = name
        self.worker, self.model = worker, model
        self._failures = Tried(lambda: worker.ask(trial, urgent=True, within_s=stall_s))

    @property
    def errored(self) -> bool:
        return self._failures.broken or self.hung

    @property
    def hung(self) -> bool:
        return self.worker.overdue()

    async def ask(self, speak: Callable[[], Speech], *, first: bool, within_s: float) -> Speech:
        """What `speak` makes, on a thread; one that takes longer than `within_s` hangs. `first`: a caller waits for
        it. Raises EngineError, EngineDead."""
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
        """Who waits, or asks from now on, is told EngineDead."""
        self.model.unload()
        self.worker.close(EngineDead(f"{self._name} hangs or failed and is being loaded again: see the log."))


class RecogniserQueue(Protocol):
    """Of those who want to be heard: whose turn it is."""

    failures: Tried

    def close(self) -> None:
        """Whoever waits is told."""


class ThreadedRecogniser:
    """Implements `life.Core`."""

    def __init__(self, worker: Worker, queue: RecogniserQueue, model: ThreadedModel) -> None:
        self._worker, self._queue, self._model = worker, queue, model

    @property
    def errored(self) -> bool:
        return self._queue.failures.broken or self.hung

    @property
    def hung(self) -> bool:
        return self._worker.overdue()

    async def close(self) -> None:
        hung = self.hung
        self._queue.close()
        if hung:
            return self._worker.close()  # Its thread has the model.
        try:
            await self._worker.submit(self._model.unload)
        finally:
            self._worker.close()
