"""`voicepipe configs`: the files that come with voicepipe: configurations, agents, manifests, alerts, dashboards, and
what systemd, Kubernetes and Kamailio need. Their names are their paths in the repository."""

import difflib
import re
import shutil
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path

from rich.table import Table

from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables
from voicepipe.config import shipped_files

FOLDERS = ("configs", "pops")
IN_A_CHECKOUT = ("*.png", "*.pyc", "pops/dashboards/*.py", "pops/deploy/containers/secrets/*")
"""Files that are in these folders of a checkout, and do not come with voicepipe."""


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
    whole = {shipped_files() / each for each in names()}
    try:
        to.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            for path in sorted(whole & set(source.rglob("*"))):
                (made := target / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, made)
        else:
            shutil.copy(source, target)
    except OSError as error:
        raise ConfigError(f"{target} cannot be written: {error.strerror}") from None
    print(target)
    return 0


def names() -> Iterator[str]:
    """The names of all files, sorted."""
    root = shipped_files()
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and not any(fnmatchcase(name, pattern) for pattern in IN_A_CHECKOUT):
                yield name


def found(name: str) -> Path:
    """The file or folder of this name, or else the file that ends so, or else the folder: "gpu" is configs/gpu.toml. Of
    several the one nearest to the top is meant. Raises ConfigError: there is none, or several are as near."""
    asked, root, known = name.strip("/"), shipped_files(), list(names())
    folders = {parent.as_posix() for each in known for parent in Path(each).parents}
    if asked in known or asked in folders - {"."}:
        return root / asked
    ends = (f"/{asked}", f"/{asked}.toml")
    meant = _nearest(known, ends) or _nearest(sorted(folders), ends)
    if len(meant) == 1:
        return root / meant[0]
    stems = {Path(each).stem: each for each in known}
    close = meant or [stems[stem] for stem in difflib.get_close_matches(Path(asked).stem, stems, 3)]
    what = f"several files are called {name}" if meant else f"there is no {name!r}"
    near = f": {', '.join(close)}" if close else ""
    raise ConfigError(f"configs: {what}{near} (`voicepipe configs list` names all)")


def _nearest(names: Sequence[str], ends: tuple[str, ...]) -> list[str]:
    """Those of `names` with one of these ends that are in the fewest folders."""
    found = [name for name in names if name.endswith(ends)]
    depth = min((name.count("/") for name in found), default=0)
    return [name for name in found if name.count("/") == depth]


def _first_comment(path: Path) -> str:
    """The first sentence of a file's first comment, or a page's heading; empty: it begins with neither."""
    with path.open(encoding="utf-8") as file:
        lines = [line.strip() for line in islice(file, 2)]
    comment = next((line.lstrip("#") for line in lines if re.match(r"#+ ", line)), "")
    return comment.strip().partition(". ")[0].rstrip(".")
