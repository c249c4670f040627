"""`python -m tests.shape`: files and functions that have grown long, and mostly hold two things. A report: some are
rightly so, and nothing is cut only to stay under a number."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

LONG_FILE, LONG_FUNCTION = 400, 60
"""Lines."""


def long_ones(root: Path = ROOT) -> Iterator[str]:
    """A line for each."""
    for path in sorted(path for package in ("voicepipe", "latency_probes") for path in (root / package).rglob("*.py")):
        text, name = path.read_text(), path.relative_to(root).as_posix()
        if (lines := len(text.splitlines())) > LONG_FILE:
            yield f"{name}: {lines} lines"
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > LONG_FUNCTION:
                    yield f"{name}:{node.lineno} {node.name}: {lines} lines"


if __name__ == "__main__":
    for line in long_ones():
        print(line)
