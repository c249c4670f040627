"""Faults as files: one process makes or removes a file, others look whether it is there."""

import os
from pathlib import Path

FOLDER = "VOICEPIPE_CHAOS"
"""The environment variable that names the folder."""


class Switches:
    """The faults that are on in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def inherited(cls) -> "Switches":
        """Those of the process that started this one."""
        return cls(Path(os.environ[FOLDER]))

    def on(self, name: str) -> bool:
        return (self.folder / name).exists()

    def set(self, name: str) -> None:
        (self.folder / name).touch()

    def clear(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
