import asyncio
import time

import pytest


@pytest.fixture
def virtual(monkeypatch: pytest.MonkeyPatch) -> None:
    """The media clock and the load live by the loop's clock, which jumps."""
    monkeypatch.setattr(time, "monotonic", lambda: asyncio.get_running_loop().time())
