"""Which code an input reaches: one that reaches new code is worth mutating further."""

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGES = ("voicepipe", "aiortc", "aioice", "sippy")
"""Code of these counts: ours, and theirs that reads what strangers send."""


class Coverage:
    """Remembers the steps from line to line that were ever taken. By `sys.settrace`, which slows the code down: for a
    sample of the inputs."""

    def __init__(self) -> None:
        self._seen: set[tuple[int, int, int]] = set()
        self._last: tuple[int, int] = (0, 0)
        self._fresh = False
        self._watched: dict[str, bool] = {}
        specs = (importlib.util.find_spec(package) for package in PACKAGES)
        self._folders = tuple(str(Path(spec.origin).parent) for spec in specs if spec and spec.origin)

    def __len__(self) -> int:
        return len(self._seen)

    def is_new(self, run: Callable[[bytes], object], data: bytes) -> bool:
        """Run `data` and tell whether it went where none before it went. What `run` raises is raised."""
        self._fresh, self._last = False, (0, 0)
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            run(data)
        finally:
            sys.settrace(before)
        return self._fresh

    def _called(self, frame: FrameType, event: str, arg: Any) -> Any:
        name = frame.f_code.co_filename
        watched = self._watched.get(name)
        if watched is None:
            watched = self._watched[name] = name.startswith(self._folders)
        return self._line if watched else None

    def _line(self, frame: FrameType, event: str, arg: Any) -> Any:
        if event == "line":
            code, line = hash(frame.f_code.co_filename), frame.f_lineno
            step = (code, self._last[1] if self._last[0] == code else 0, line)
            self._last = (code, line)
            if step not in self._seen:
                self._seen.add(step)
                self._fresh = True
        return self._line
