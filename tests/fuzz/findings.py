"""Inputs that did harm: made as small as they still do it, and kept for the suite."""

import hashlib
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.campaign import Finding, outcome
from tests.fuzz.target import HERE, Target

MOST_RUNS = 600
"""Of the target, to make one finding smaller."""


def minimised(target: Target, finding: Finding) -> Finding:
    """The smallest input that was found to do the same."""
    if finding.kind == "leak":
        return finding

    def same(data: bytes) -> Finding | None:
        found = outcome(target, data)
        return found if found and found.where == finding.where else None

    best, budget = finding, MOST_RUNS if finding.kind == "crash" else MOST_RUNS // 20
    for pieces in (_lines, _bytes):
        best, budget = _shrunk(best, pieces, same, budget)
    return best


def _shrunk(
    best: Finding, pieces: Callable[[bytes], list[bytes]], same: Callable[[bytes], Finding | None], budget: int
) -> tuple[Finding, int]:
    """Leave out runs of pieces, at first long ones, while what is left still does it (delta debugging)."""
    length = max(1, len(pieces(best.data)) // 2)
    while budget > 0:
        at, parts = 0, pieces(best.data)
        while at < len(parts) and budget > 0:
            budget -= 1
            if found := same(b"".join(parts[:at] + parts[at + length :])):
                best, parts = found, parts[:at] + parts[at + length :]
            else:
                at += length
        if length == 1:
            break
        length //= 2
    return best, budget


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _bytes(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def keep(target: Target, finding: Finding) -> Path:
    """Write its input where the suite finds it."""
    folder = HERE / "findings" / target.name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{finding.kind}-{hashlib.sha256(finding.data).hexdigest()[:10]}"
    path.write_bytes(finding.data)
    return path
