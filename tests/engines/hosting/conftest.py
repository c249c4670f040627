import pytest

from voicepipe.engines.hosting import supervised


@pytest.fixture
def restarts_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke is seen at once, and started again soon."""
    monkeypatch.setattr(supervised, "WATCH_S", 0.01)
    monkeypatch.setattr(supervised, "FIRST_PAUSE_S", 0.05)
