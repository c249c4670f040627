"""The queues and pools of this process that an operator can adjust: how full they are, and what became of their jobs.
Each is kept by its owner, and read for metrics."""

import weakref
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFigures:
    """Figures of one queue, or of several with the same name."""

    name: str
    waiting: int
    """Jobs that wait now."""
    running: int
    """Jobs that no longer wait and are not done."""
    limit: int | None = None
    """Jobs, waiting and running, with which it is full; None: the number alone does not decide that."""
    begun: int
    """Jobs that have begun, up to now."""
    waited_s: float
    """Seconds that they have waited, all together."""
    refused: int = 0
    """Jobs for which there was no room, up to now."""
    wasted: int = 0
    """Jobs whose outcome turned out not to be needed, up to now."""


class Queue(Protocol):
    """A queue or pool that has figures."""

    def figures(self) -> QueueFigures | None:
        """The figures. None: it is closed."""


class QueueOutcomes:
    """Counts of the jobs of one queue."""

    def __init__(self) -> None:
        self.begun = self.refused = 0
        self.waited_s = 0.0

    def began(self, waited_s: float) -> None:
        """A job has begun, which has waited so long."""
        self.begun += 1
        self.waited_s += waited_s

    def figures(
        self, name: str, *, waiting: int, running: int, limit: int | None = None, wasted: int = 0
    ) -> QueueFigures:
        """The counts together with the queue's present state."""
        return QueueFigures(
            name=name, waiting=waiting, running=running, limit=limit, begun=self.begun, waited_s=self.waited_s,
            refused=self.refused, wasted=wasted,
        )  # fmt: skip


_queues: "weakref.WeakSet[Queue]" = weakref.WeakSet()


def show(queue: Queue) -> None:
    """Add a queue to `shown`, as long as it is referenced."""
    _queues.add(queue)


def shown() -> list[QueueFigures]:
    """All queues that are open, by name. To be called on the event loop."""
    found: dict[str, QueueFigures] = {}
    for figures in filter(None, [queue.figures() for queue in _queues]):
        same = found.get(figures.name)
        found[figures.name] = _together(same, figures) if same else figures
    return [found[name] for name in sorted(found)]


def _together(one: QueueFigures, other: QueueFigures) -> QueueFigures:
    """The sum of the figures of two queues with the same name."""
    bounded = one.limit is not None and other.limit is not None
    return QueueFigures(
        name=one.name,
        waiting=one.waiting + other.waiting,
        running=one.running + other.running,
        limit=(one.limit or 0) + (other.limit or 0) if bounded else None,
        begun=one.begun + other.begun,
        waited_s=one.waited_s + other.waited_s,
        refused=one.refused + other.refused,
        wasted=one.wasted + other.wasted,
    )
