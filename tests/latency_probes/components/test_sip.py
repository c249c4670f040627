"""The measurement itself: calls are placed, and counted. No figures are asserted."""

import shutil

import pytest

from latency_probes.components.sip import SipLoad, SipResult, measured
from voicepipe.errors import ConfigError

pytestmark = pytest.mark.e2e


@pytest.mark.skipif(shutil.which("sipp") is None, reason="sipp is not installed: apt install sip-tester")
async def test_calls_are_placed_and_counted() -> None:
    result = await measured(SipLoad(20, 20, 0.2))
    assert result.failed == 0 and len(result.answer_ms) == 20
    assert 0 <= result.percentile(0.5) <= result.percentile(0.99)


async def test_without_sipp_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(ConfigError, match="apt install sip-tester"):
        await measured(SipLoad(1, 1, 0.1))


def test_percentiles() -> None:
    result = SipResult(0, [1.0, 2.0, 3.0, 4.0], None, 0.0)
    assert [result.percentile(share) for share in (0, 0.5, 0.99)] == [1, 3, 4]
