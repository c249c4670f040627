import pytest

from voicepipe.engines.hosting import life


@pytest.fixture
def restarts_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What broke is seen at once, and started again soon."""
    monkeypatch.setattr(life, "WATCH_S", 0.01)
    monkeypatch.setattr(life, "FIRST_PAUSE_S", 0.05)
