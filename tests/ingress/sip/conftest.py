"""For tests of SIP: sippy's timers, hurried."""

import asyncio
from typing import Any

import pytest

from voicepipe.ingress.sip import transactions


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """sippy's timers run fifty times as fast: 32 s are 0.64."""

    def go(timer: Any) -> None:
        timer._handle = asyncio.get_running_loop().call_later(timer._seconds / 50, timer._due)

    monkeypatch.setattr(transactions.SippyTimer, "go", go)
