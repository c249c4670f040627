"""The parts of a server that use another configuration while it runs: all of them, or none."""

from collections.abc import Callable
from typing import Generic, TypeVar

C = TypeVar("C")
Use = Callable[[], None]
"""Begins to use what was read; it cannot fail."""


class Rereads(Generic[C]):
    """The parts of a server that read secrets and files again, with a configuration of the kind `C`."""

    def __init__(self) -> None:
        self._parts: list[Callable[[C], Use]] = []
        self._warnings: list[Callable[[], str]] = []
        self.problem = ""
        """Why the last reload changed nothing; empty: it succeeded, or there was none."""

    def join(self, read: Callable[[C], Use]) -> None:
        """Add a part. `read` reads what the part needs of a configuration, and changes nothing; it raises ConfigError.
        It is called in a thread."""
        self._parts.append(read)

    def warn_of(self, warning: Callable[[], str]) -> None:
        """Add a warning for the server's health; empty while there is none."""
        self._warnings.append(warning)

    @property
    def warning(self) -> str:
        """All that is not as the files have it, for the server's health; empty: nothing."""
        return "; ".join(filter(None, (self.problem, *(warning() for warning in self._warnings))))

    def read(self, config: C) -> Use:
        """Read for all parts; what is returned makes them use it. Raises ConfigError: then none of them has changed.
        Reads files: call it from a thread."""
        uses = [read(config) for read in self._parts]

        def use() -> None:
            for each in uses:
                each()

        return use
