"""A voice on threads of ours: what it fails at is counted, and what hangs is seen. For `life.py`."""

from collections.abc import Callable

from voicepipe.engines.base import Speech
from voicepipe.engines.failures import Tried
from voicepipe.engines.worker import Worker
from voicepipe.errors import EngineDead, EngineError


class ThreadedVoice:
    """All of `life.Core` but `close`. `name`: as errors call the library; `trial` speaks something short."""

    def __init__(self, name: str, worker: Worker, trial: Callable[[], Speech], stall_s: float) -> None:
        self._name = name
        self.worker = worker
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
