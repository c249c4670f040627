"""A recogniser's model on threads of ours, and the queue of those who want to be heard. For `life.py`."""

from typing import Protocol

from voicepipe.engines.failures import Tried
from voicepipe.engines.worker import Worker


class Queue(Protocol):
    """The queue: whose turn it is."""

    failures: Tried

    def close(self) -> None:
        """Whoever waits is told."""


class Loaded(Protocol):
    def unload(self) -> None:
        """Give its memory back, at once: exceptions may hold the model for long."""


class ThreadedRecogniser:
    """Implements `life.Core`."""

    def __init__(self, worker: Worker, queue: Queue, model: Loaded) -> None:
        self._worker, self._queue, self._loaded = worker, queue, model

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
            await self._worker.submit(self._loaded.unload)
        finally:
            self._worker.close()
