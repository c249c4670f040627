"""What is told of queues, without what fills them."""

from dataclasses import dataclass

from voicepipe.base import queues
from voicepipe.base.queues import QueueFigures, QueueOutcomes


@dataclass(eq=False)
class FakeQueue:
    name: str
    waiting: int = 0
    limit: int | None = 8
    closed: bool = False

    def __post_init__(self) -> None:
        self.waits = QueueOutcomes()
        queues.show(self)

    def figures(self) -> QueueFigures | None:
        if self.closed:
            return None
        return self.waits.figures(self.name, waiting=self.waiting, running=1, limit=self.limit)


def told(*names: str) -> list[QueueFigures]:
    return [figures for figures in queues.shown() if figures.name in names]


def test_those_of_one_name_are_told_together_and_closed_ones_are_not() -> None:
    one, other, gone = FakeQueue("fake b", 2), FakeQueue("fake b", 3), FakeQueue("fake a", closed=True)
    one.waits.began(0.5)
    other.waits.began(0.25)
    other.waits.refused = 2
    assert told("fake a", "fake b") == [
        QueueFigures(name="fake b", waiting=5, running=2, limit=16, begun=2, waited_s=0.75, refused=2)
    ]
    gone.closed, other.limit = False, None
    assert [(figures.name, figures.limit) for figures in told("fake a", "fake b")] == [("fake a", 8), ("fake b", None)]


def test_those_that_nobody_has_any_more_are_not_told() -> None:
    FakeQueue("fake gone")
    assert not told("fake gone")
