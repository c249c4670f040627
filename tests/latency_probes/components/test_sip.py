"""The measurement itself: calls are placed, and counted. No figures are asserted."""

import shutil

import pytest

from latency_probes.components.sip import SipLoad, measured
from voicepipe.base.errors import ConfigError

pytestmark = pytest.mark.e2e


@pytest.mark.skipif(shutil.which("sipp") is None, reason="sipp is not installed: apt install sip-tester")
async def test_calls_are_placed_and_counted() -> None:
    result = await measured(SipLoad(20, 20, 0.2))
    assert result.failed == 0 and len(result.answer_ms) == 20


async def test_without_sipp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ConfigError, match="apt install sip-tester"):
        await measured(SipLoad(1, 1, 0.1))
