"""An edition of a fleet's configuration: agents' files, and a file of routes and tenants."""

import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from voicepipe.base.errors import ConfigError
from voicepipe.config.file_kind import RULES
from voicepipe.config.toml_file import text_of

AGENTS = "agents"
"""Folder of an edition with the agents' files, and one folder below those that they name (`intents_file`). Beside it
lies `RULES`, with routes and tenants."""
_PATH = re.compile(rf"{AGENTS}/([\w-][\w.-]*/)?[\w-][\w.-]*\.toml|{re.escape(RULES)}", re.ASCII)
TEXT_BYTES = 8 * 1024 * 1024
"""Bytes of all files of an edition."""
PACKED_BYTES = 900_000
"""Bytes of a compressed edition on the bus; NATS takes messages of a megabyte."""
MOST_FILES, PATH_BYTES = 2000, 200
DIGEST = 12
"""Hexadecimal digits that distinguish editions: enough against mistakes, and no protection against forgers."""


class EditionId(msgspec.Struct, frozen=True, order=True):
    """Identifies an edition. The higher number is the newer; of two with one number, pushed at two directories at the
    same moment, the higher digest wins everywhere."""

    number: int
    digest: str


NONE = EditionId(0, "")
"""Before the first push."""


class Edition(msgspec.Struct, frozen=True, dict=True):
    """A fleet's agents, routes and tenants, as they were pushed."""

    number: int
    """Rises by one with each push."""
    files: dict[str, str]
    """Texts by their paths, with "/" between folders: "agents/front-desk.toml"."""
    at: float
    """Unix seconds at the directory that accepted it."""
    like: int = 0
    """The number of the older edition with the same files: it was rolled back to. 0: the files are new."""

    @cached_property
    def digest(self) -> str:
        """The digest of the files alone: an edition that was rolled back to has it again."""
        said = msgspec.json.encode(sorted(self.files.items()))
        return hashlib.sha256(said).hexdigest()[:DIGEST]

    @property
    def head(self) -> EditionId:
        return EditionId(self.number, self.digest)


def check(files: Mapping[str, str]) -> None:
    """Raises ConfigError: these are no files of an edition, none of them is an agent's, or they are too large."""
    if len(files) > MOST_FILES:
        raise ConfigError(f"There are {len(files)} files, and a push has at most {MOST_FILES}: split the fleet.")
    for path in files:
        if not _PATH.fullmatch(path) or len(path) > PATH_BYTES:
            raise ConfigError(
                f"{path}: cannot be pushed; name files by letters, digits, dots, - and _, and put those that agents "
                "name one folder below theirs"
            )
    if not any(path.count("/") == 1 for path in files):
        raise ConfigError(f"There is no agent among the files: push a folder with agents' *.toml ({AGENTS}/...).")
    if (size := sum(len(text.encode()) for text in files.values())) > TEXT_BYTES:
        raise ConfigError(f"The files have {size} bytes together, and a push at most {TEXT_BYTES}: shorten them.")


def gathered(folder: Path, rules: Path | None = None) -> dict[str, str]:
    """The files of `folder`, agents and what lies one folder below, with `rules`. Python files are left out: code is
    installed at each host. Raises ConfigError."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: is no folder; give the one that holds the agents' files, such as configs/agents")
    found = sorted(file for pattern in ("*.toml", "*/*.toml") for file in folder.glob(pattern))
    files = {f"{AGENTS}/{file.relative_to(folder).as_posix()}": text_of(file) for file in found}
    if rules:
        files[RULES] = text_of(rules)
    check(files)
    return files


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write the files into `folder`, which need not exist; they are on its disk afterwards. Raises OSError."""
    for path, text in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w", encoding="utf-8") as written:
            written.write(text)
            written.flush()
            os.fsync(written.fileno())


@contextmanager
def laid_out(files: Mapping[str, str]) -> Iterator[Path]:
    """Yields a folder with the files, for as long as the context lasts. Errors in them name their paths in the edition.
    Raises ConfigError."""
    check(files)
    try:
        with TemporaryDirectory(prefix="voicepipe-edition-") as made:
            folder = Path(made)
            write(files, folder)
            with paths_in_edition(folder):
                yield folder
    except OSError as error:
        raise ConfigError(f"This host cannot write the files down to look at them: {error.strerror}") from None


@contextmanager
def paths_in_edition(folder: Path) -> Iterator[None]:
    """Within the context, errors in files in `folder` name their paths in the edition. Raises ConfigError."""
    try:
        yield
    except ConfigError as error:
        said = str(error).replace(f"{folder}/", "")
        is_of_rules = said.startswith(("routes[", "tenants[")) and (folder / RULES).exists()
        raise ConfigError(f"{RULES}: {said}" if is_of_rules else said) from None
    except Exception as error:  # Whatever it is: a host that says nothing would pass for one that agrees.
        raise ConfigError(f"The files cannot be read here ({type(error).__name__}: {error})") from error


def packed(edition: Edition) -> bytes:
    """The edition compressed for the bus. Raises ConfigError: it is too large."""
    said = zlib.compress(msgspec.json.encode(edition))
    if len(said) > PACKED_BYTES:
        raise ConfigError(
            f"The files have {len(said)} bytes when they are compressed, and the bus takes {PACKED_BYTES}: shorten "
            "them, or split the fleet."
        )
    return said


def unpacked(said: bytes) -> Edition:
    """The edition in these bytes. Takes milliseconds: call it from a thread. Raises ValueError: they are none."""
    reading = zlib.decompressobj()
    try:
        text = reading.decompress(said, 2 * TEXT_BYTES)
        edition = msgspec.json.decode(text, type=Edition)
        _ = edition.digest  # Known from now on.
        return edition
    except (zlib.error, msgspec.DecodeError) as error:
        raise ValueError(f"no edition: {error}") from error
