"""Traces of calls, where a collector of OpenTelemetry is configured. Only then its library is imported."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.util import find_spec

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.engines.packages import extra
from voicepipe.observe.call_followers import UNTRACED, CallTracer

NEEDED = "opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"


def problem(config: Config) -> str:
    """What the configured traces lack here, and what to do about it; empty: nothing."""
    if not config.traces.endpoint or all(map(_is_there, NEEDED)):
        return ""
    return f"traces: OpenTelemetry is not installed; pip install {extra('traces')}, or leave traces.endpoint out"


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # Nor is what it is in.
        return False


@asynccontextmanager
async def traced(config: Config) -> AsyncIterator[CallTracer]:
    """Yields the tracer of calls; at the end, spans that have not been sent yet are. Raises ConfigError."""
    if lacks := problem(config):
        raise ConfigError(lacks)
    if not config.traces.endpoint:
        yield UNTRACED
        return
    from voicepipe.observe.otel import OtelTracer
    from voicepipe.observe.otlp import sending

    async with sending(config) as sender:
        yield OtelTracer(config, sender)
