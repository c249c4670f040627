"""`voicepipe configs`: the files that come with voicepipe: configurations, agents, manifests, alerts, dashboards, and
what systemd, Kubernetes and Kamailio need. Their names are their paths in the repository."""

import difflib
import re
import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from rich.table import Table

from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables
from voicepipe.config import shipped_files

FOLDERS = ("configs", "pops")
IN_A_CHECKOUT = (".py", ".pyc", ".png")
"""Endings of files that are in these folders of a checkout, and do not come with voicepipe."""


def listed() -> int:
    """Print each file's name, and its first comment. Returns the exit status."""
    table = Table(box=None, pad_edge=False, header_style="")
    table.add_column("name", no_wrap=True)
    table.add_column("what it is")
    for name in names():
        table.add_row(name, _first_comment(shipped_files() / name))
    for_tables().print(table, markup=False)
    return 0


def show(name: str) -> int:
    """Print a file. Returns the exit status. Raises ConfigError: there is none of this name."""
    path = found(name)
    if path.is_dir():
        raise ConfigError(f"{name} is a folder; `voicepipe configs copy {name}` copies it whole")
    print(path.read_text("utf-8"), end="")
    return 0


def copy(name: str, to: Path) -> int:
    """Copy a file or a folder into the folder `to`, which is made. Returns the exit status.

    Raises ConfigError: there is none of this name; it is in `to` already; `to` cannot be written.
    """
    source = found(name)
    target = to / source.name
    if target.exists():
        raise ConfigError(f"{target} is there already; remove it, or name another folder")
    ignored = shutil.ignore_patterns("__pycache__", *(f"*{ending}" for ending in IN_A_CHECKOUT))
    try:
        to.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, copy_function=shutil.copyfile, ignore=ignored)
        else:
            shutil.copyfile(source, target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from None
    print(target)
    return 0


def names() -> Iterator[str]:
    """The names of all files, sorted."""
    root = shipped_files()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix not in IN_A_CHECKOUT:
                yield path.relative_to(root).as_posix()


def found(name: str) -> Path:
    """The file or folder of this name, which may be shorter than its path where only one ends so: "gpu" for
    configs/gpu.toml. Raises ConfigError."""
    asked, root, known = name.strip("/"), shipped_files(), list(names())
    folders = {parent.as_posix() for each in known for parent in Path(each).parents}
    if asked in known or asked in folders - {"."}:
        return root / asked
    ends = (f"/{asked}", f"/{asked}.toml")
    meant = [each for each in (*known, *sorted(folders)) if each.endswith(ends)]
    if len(meant) == 1:
        return root / meant[0]
    stems = {Path(each).stem: each for each in known}
    close = meant or [stems[stem] for stem in difflib.get_close_matches(Path(asked).stem, stems, 3)]
    what = f"several files are called {name}" if meant else f"there is no {name!r}"
    near = f": {', '.join(close)}" if close else ""
    raise ConfigError(f"configs: {what}{near} (`voicepipe configs list` names all)")


def _first_comment(path: Path) -> str:
    """The first sentence of a file's first comment, or a page's heading; empty: it begins with neither."""
    with path.open(encoding="utf-8") as file:
        lines = [line.strip() for line in islice(file, 2)]
    comment = next((line.lstrip("#") for line in lines if re.match(r"#+ ", line)), "")
    return comment.strip().partition(". ")[0].rstrip(".")
