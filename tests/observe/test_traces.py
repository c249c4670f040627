"""Traces are made only where a collector is configured, and where its library is there."""

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, parse
from voicepipe.observe import traces
from voicepipe.observe.call_followers import UNTRACED
from voicepipe.observe.otel import OtelTracer
from voicepipe.observe.traces import problem, traced

TRACED = parse({"traces": {"endpoint": "http://127.0.0.1:9"}})


async def test_without_a_collector_calls_are_not_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "_is_there", lambda module: False)
    assert problem(Config()) == ""
    async with traced(Config()) as made:
        assert made is UNTRACED


async def test_with_one_they_are() -> None:
    assert problem(TRACED) == ""
    async with traced(TRACED) as made:
        assert isinstance(made, OtelTracer) and made.dropped == 0


async def test_where_the_library_is_missing_it_is_said_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "NEEDED", ("opentelemetry.sdk", "opentelemetry_that_there_is_not.exporter"))
    assert "pip install 'voicepipe-pop[traces]'" in problem(TRACED)
    with pytest.raises(ConfigError, match="OpenTelemetry is not installed"):
        async with traced(TRACED):
            pass
