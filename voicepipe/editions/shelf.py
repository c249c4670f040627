"""The editions that one host keeps on its disk, and the one that it goes by, also where it begins without a bus."""

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from voicepipe.editions.edition import Edition, Head, write
from voicepipe.errors import ConfigError

MOST = 50
"""Kept; the oldest go. What a fleet may be rolled back to."""
_NAME = re.compile(r"(\d{6,})-([0-9a-f]+)")
_EDITION = "edition.json"
"""Within an edition's folder, beside its files: all that was pushed."""
_CURRENT = "current"
"""The name of the folder that counts."""


class Shelf:
    """In `folder`, which is made when it is needed. It reads and writes files: call it from a thread. All methods raise
    ConfigError where that fails. `key` of the configuration names the folder."""

    def __init__(self, folder: Path, key: str) -> None:
        self._folder = folder
        self._key = key

    def keep(self, edition: Edition) -> Path:
        """Write it down; the folder with its files. One that is there already stays as it is."""
        folder = self._of(edition.head)
        try:
            if not folder.exists():
                beside = folder.with_name(f".{folder.name}.{os.getpid()}")
                shutil.rmtree(beside, ignore_errors=True)
                write(edition.files, beside)
                (beside / _EDITION).write_bytes(msgspec.json.encode(edition))
                beside.rename(folder)  # All of it or nothing, should the host fail now.
        except OSError as error:
            raise self._failed(error) from None
        return folder

    def go_by(self, edition: Edition) -> None:
        """From now on, and after a restart. Of the others the oldest go."""
        try:
            beside = self._folder / f".{_CURRENT}.{os.getpid()}"
            beside.write_text(self._of(edition.head).name)
            beside.replace(self._folder / _CURRENT)
            heads = sorted(self._heads(), reverse=True)
            for head in heads[MOST:]:
                if head != edition.head:
                    shutil.rmtree(self._of(head), ignore_errors=True)
        except OSError as error:
            raise self._failed(error) from None

    def current(self) -> Edition | None:
        """The one that counts. None: there was none yet."""
        try:
            found = _NAME.fullmatch((self._folder / _CURRENT).read_text().strip())
        except FileNotFoundError:
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise self._failed(error) from None
        return self._read(Head(int(found[1]), found[2])) if found else None

    def find(self, number: int) -> Edition | None:
        """The one of this number."""
        head = max((head for head in self._heads() if head.number == number), default=None)
        return self._read(head) if head else None

    def all(self) -> list[Edition]:
        """The newest first."""
        return [self._read(head) for head in sorted(self._heads(), reverse=True)]

    def _read(self, head: Head) -> Edition:
        file = self._of(head) / _EDITION
        try:
            return msgspec.json.decode(file.read_bytes(), type=Edition)
        except (OSError, msgspec.DecodeError) as error:
            raise self._failed(error) from None

    def _heads(self) -> Iterator[Head]:
        if self._folder.is_dir():
            found = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
            yield from (Head(int(name[1]), name[2]) for name in found if name)

    def _of(self, head: Head) -> Path:
        return self._folder / f"{head.number:06d}-{head.digest}"

    def _failed(self, error: Exception) -> ConfigError:
        return ConfigError(
            f"{self._key}: editions cannot be kept in {self._folder} ({error}): give a folder that may be written, or "
            "empty this one and push again"
        )
