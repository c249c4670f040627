"""The editions that a host keeps on its disk, and the one that it uses, also where it starts without a bus."""

import logging
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from voicepipe.base.errors import ConfigError
from voicepipe.directory.editions.edition import Edition, EditionId, write

T = TypeVar("T")
logger = logging.getLogger(__name__)

MOST = 50
"""Editions that are kept, and to which a fleet may be rolled back; beyond that the oldest are deleted."""
_NAME = re.compile(r"(\d{6,})-([0-9a-f]+)")
_EDITION = "edition.json"
"""Name of the file in an edition's folder with the whole edition."""
_CURRENT = "current"
"""Name of the file with the name of the folder in use."""


class EditionStore:
    """The editions that a host keeps on its disk below `folder`, and the one that it uses, so that it can start without
    a bus. Missing folders are made. It reads and writes files: call it from a thread. Methods raise ConfigError where
    that fails. `key` of the configuration names the folder."""

    def __init__(self, folder: Path, host: str, key: str) -> None:
        self.folder = folder / host
        """The host's own folder: several hosts of one machine may have one folder in their configurations."""
        self._key = key

    def keep(self, edition: Edition) -> Path:
        """Write the edition to disk; returns the folder with its files."""
        folder = self._of(edition.head)
        try:
            if self._read(edition.head) != edition:
                beside = folder.with_name(f".{folder.name}")
                shutil.rmtree(beside, ignore_errors=True)
                write({**edition.files, _EDITION: msgspec.json.encode(edition).decode()}, beside)
                shutil.rmtree(folder, ignore_errors=True)
                beside.rename(folder)  # All of it or nothing, should the host fail now.
                _synced(self.folder)
        except OSError as error:
            raise self._failed(error) from None
        return folder

    def use(self, edition: Edition) -> None:
        """Use this edition from now on, and after a restart. The oldest others are deleted."""
        try:
            beside = self.folder / f".{_CURRENT}"
            write({beside.name: self._of(edition.head).name}, self.folder)
            beside.replace(self.folder / _CURRENT)
            _synced(self.folder)
            for head in self._heads()[MOST:]:
                if head != edition.head:
                    shutil.rmtree(self._of(head), ignore_errors=True)
        except OSError as error:
            raise self._failed(error) from None

    def begin(self, opened: Callable[[Edition, Path], T], number: int = 0) -> tuple[T, Edition, str] | None:
        """The edition with which a host begins: the result of `opened` for an edition and the folder with its
        files; the edition; and the problem of a better one, if there is any. The best is that of this `number`, if
        it is not 0, then the one in use last, then the newest. None: no edition is kept. Raises ConfigError: none
        can be opened."""
        problem = ""
        for edition in self._best_first(number):
            try:
                made = opened(edition, self.keep(edition))
            except ConfigError as error:
                problem = problem or f"edition {edition.number}: {error}"
                logger.error("edition %d is not begun with: %s", edition.number, error)
            else:
                logger.info("agents, routes and tenants are those of edition %d (%s), and not of the host's own files",
                            edition.number, edition.digest)  # fmt: skip
                return made, edition, problem
        if problem:
            raise ConfigError(
                f"{problem}\nNone of the editions in {self.folder} can be begun with: mend this, or empty that folder "
                "to begin with the host's own files."
            )
        return None

    def _best_first(self, number: int) -> Iterator[Edition]:
        """The folders in this order. An edition that cannot be read is logged and left out."""
        heads, current = self._heads(), self._current()
        heads.sort(key=lambda head: (head.number != number, head != current))
        return filter(None, map(self._read, heads))

    def find(self, number: int) -> Edition | None:
        """The edition of this number."""
        return next((its for head in self._heads() if head.number == number and (its := self._read(head))), None)

    def all(self) -> list[Edition]:
        """All editions, the newest first."""
        return list(filter(None, map(self._read, self._heads())))

    def _current(self) -> EditionId | None:
        try:
            found = _NAME.fullmatch((self.folder / _CURRENT).read_text().strip())
        except (OSError, UnicodeDecodeError):
            return None
        return EditionId(int(found[1]), found[2]) if found else None

    def _read(self, head: EditionId) -> Edition | None:
        file = self._of(head) / _EDITION
        try:
            edition = msgspec.json.decode(file.read_bytes(), type=Edition)
            return edition if edition.head == head else None
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            logger.error("%s: cannot be read and is left out (%s)", file, error)
            return None

    def _heads(self) -> list[EditionId]:
        """The heads of all editions, the newest first."""
        try:
            found = [_NAME.fullmatch(path.name) for path in self.folder.iterdir()]
        except OSError:  # None was kept yet.
            return []
        return sorted((EditionId(int(name[1]), name[2]) for name in found if name), reverse=True)

    def _of(self, head: EditionId) -> Path:
        return self.folder / f"{head.number:06d}-{head.digest}"

    def _failed(self, error: OSError) -> ConfigError:
        return ConfigError(
            f"{self._key}: editions cannot be written into {self.folder} ({error.strerror}): give a folder on a disk "
            "that has room and may be written"
        )


def _synced(folder: Path) -> None:
    """Write the folder to disk: a rename within it survives a loss of power."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
