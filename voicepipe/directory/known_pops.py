"""The PoPs that keep records, as a directory remembers them: on its disk, so that it can name one that is down long
after it fell silent, and after a restart of its own."""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from voicepipe.base.errors import ConfigError

logger = logging.getLogger(__name__)

DAY_S = 86_400.0
EVERY_S = 600.0
"""Seconds between writings where no PoP is new: so much too old may be what the file says of when one was heard."""
AGAIN_S = 10.0
"""Seconds after which a file that could not be written is tried again."""


class KnownPop(msgspec.Struct, frozen=True):
    """What is remembered of a PoP."""

    heard: float
    """Unix seconds of its last report."""
    keep_days: float
    """As `records.keep_days` there: once it has been away for longer, it deletes what it kept when it starts."""


_known = msgspec.json.Decoder(dict[str, KnownPop])


class KnownPops:
    """The PoPs that keep records, from their first report on, until nothing can be left of what they kept, or they are
    forgotten. `file`: where they are remembered; None: in memory. `clock` gives Unix seconds. Raises ConfigError: the
    file cannot be read."""

    def __init__(self, file: Path | None = None, clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._changed = asyncio.Event()
        self._pops = _read(file) if file else {}

    def names(self) -> set[str]:
        now = self._clock()
        return {pop for pop, its in self._pops.items() if now < its.heard + (its.keep_days + 1) * DAY_S}

    def heard(self, pop: str, keep_days: float) -> None:
        """A PoP reports. `keep_days`: 0 if it keeps no records."""
        before = self._pops.get(pop)
        if keep_days:
            self._pops[pop] = KnownPop(self._clock(), keep_days)
        elif before:
            del self._pops[pop]
        if keep_days != (before.keep_days if before else 0):
            self._changed.set()

    def forget(self, pop: str) -> bool:
        """A PoP was taken away for good. Returns whether it was known."""
        known = self._pops.pop(pop, None) is not None
        self._changed.set()
        return known

    async def run(self) -> None:
        """Write the file whenever PoPs come or go, until cancelled."""
        assert self._file
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), EVERY_S)
            self._changed.clear()
            content = msgspec.json.encode({pop: self._pops[pop] for pop in self.names()})
            try:
                await asyncio.to_thread(_write, self._file, content)
            except OSError as error:
                logger.error("directory.known_pops: %s cannot be written (%s): after a restart this directory may not "
                             "know of all PoPs that keep records", self._file, error.strerror)  # fmt: skip
                self._changed.set()
                await asyncio.sleep(AGAIN_S)


def _read(file: Path) -> dict[str, KnownPop]:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return _known.decode(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as error:
        raise ConfigError(
            f"directory.known_pops: {file} cannot be read ({error}): name another file, or delete it; then this "
            "directory knows of no PoP that is down now"
        ) from None


def _write(file: Path, content: bytes) -> None:
    """All of it or nothing, should the host fail now."""
    beside = file.with_name(f".{file.name}")
    with beside.open("wb") as made:
        made.write(content)
        made.flush()
        os.fsync(made.fileno())
    beside.replace(file)
