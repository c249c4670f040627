"""What a fuzzer is aimed at."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Target:
    """One function that takes what came off a wire. The package's docstring says what `run` promises."""

    name: str
    """As `python -m tests.fuzz NAME` takes it; also its folder in `corpus/` and `findings/`."""
    says: str
    """What reads the input, in one line."""
    run: Callable[[bytes], object]
    seeds: Callable[[], Iterable[bytes]] = tuple
    """Valid inputs, beside the files of `corpus/`."""
    generate: Callable[[Random], bytes] | None = None
    """A new input by a grammar; all that it does depends on the random numbers that it is given."""
    words: Sequence[bytes] = ()
    """What the protocol's parsers look for: put into inputs as it is."""
    share: float = 1.0
    """Of the inputs of a whole run, beside the other targets'. A target whose inputs are slow takes less than 1."""
    limit_s: float = 0.1
    """Processor time that one input may take."""
    largest: int = 65_536
    """Bytes of an input: no more comes off this wire at once."""

    def corpus(self) -> list[bytes]:
        """Its valid inputs, always in the same order. Never empty."""
        return [*self.seeds(), *files("corpus", self.name)] or [b""]


def files(folder: str, name: str) -> list[bytes]:
    """What is kept of a target in `folder`, by file name."""
    return [path.read_bytes() for path in sorted((HERE / folder / name).glob("*")) if path.is_file()]


def targets() -> dict[str, Target]:
    """All targets, by name. Raises ValueError for a name that two have."""
    found: dict[str, Target] = {}
    package = importlib.import_module("tests.fuzz.targets")
    for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda module: module.name):
        for target in importlib.import_module(f"{package.__name__}.{module.name}").TARGETS:
            if target.name in found:
                raise ValueError(f"two fuzz targets are called {target.name!r}")
            found[target.name] = target
    return found
