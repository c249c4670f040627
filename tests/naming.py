"""`python -m tests.naming`: names and docstrings that one understands only beside their neighbours. Exits with 1.

A class name stands once in the package, private ones counted: whoever reads `Waits` should not have to ask which. A
docstring has a subject of its own.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

LEANING = re.compile(
    r"(likewise|alike)\b|(one|a) (call|pop|client|turn|utterance)'s\.|of (one|a|all) \w+\.", re.IGNORECASE
)
"""How a docstring begins that leans on the one before it."""


def classes_that_stand_twice(root: Path) -> Iterator[str]:
    """A line for each name, whatever underscore it begins with."""
    found: dict[str, list[str]] = defaultdict(list)
    for path in sorted((root / "voicepipe").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                found[node.name.lstrip("_")].append(f"{path.relative_to(root)}:{node.lineno}")
    for name, places in sorted(found.items()):
        if len(places) > 1:
            yield f"{places[-1]}: class {name} stands in {', '.join(places[:-1])}, too: give one a name of its own"


def leaning_docstrings(root: Path) -> Iterator[str]:
    """A line for each docstring, also of an attribute, that has no subject of its own."""
    for path in sorted((root / "voicepipe").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                if LEANING.match(node.value.value):
                    begins, where = node.value.value.partition("\n")[0], f"{path.relative_to(root)}:{node.lineno}"
                    yield f'{where}: "{begins}" leans on its neighbours: say whose and what'


def complaints(root: Path = ROOT) -> list[str]:
    """All of them."""
    return [*classes_that_stand_twice(root), *leaning_docstrings(root)]


if __name__ == "__main__":
    for line in (found := complaints()):
        print(line)
    sys.exit(bool(found))
