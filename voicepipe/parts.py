"""What several may have of something of which there is only so much. Pure."""

from collections import Counter


class Parts:
    """So many in all, and how many of them each has: at most `times` as many as are free.

    So the fewer are free, the fewer one may have, and who has none finds some free, whatever any one other does."""

    def __init__(self, all: int, times: int = 1) -> None:
        self.busy = 0
        self._all, self._times = all, times
        self._of = Counter[str]()

    def may(self, who: str) -> bool:
        """They may have one more."""
        return self._of[who] < self._times * (self._all - self.busy)

    def take(self, who: str) -> None:
        self.busy += 1
        self._of[who] += 1

    def give_back(self, who: str) -> None:
        self.busy -= 1
        self._of[who] -= 1
        if not self._of[who]:
            del self._of[who]
