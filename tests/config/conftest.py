from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def write(tmp_path: Path) -> Any:
    def write(text: str, name: str = "my.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return write
