"""The page's files, for tests that run its modules by Node.js."""

from pathlib import Path

import pytest

from tests.web.node import copied


@pytest.fixture(scope="session")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """See `node.copied`."""
    return copied(tmp_path_factory.mktemp("web") / "page")
