"""Sends spans by OTLP over HTTP, from a thread of the SDK's. What cannot be sent in time is dropped and counted."""

import asyncio
import logging
import threading
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from voicepipe.config import Config
from voicepipe.config.credentials import trace_headers
from voicepipe.config.pop_config import TRACES_PATH

WAITING = 2048
"""Spans that may wait to be sent: those of 60 calls in half a minute."""
AT_ONCE = 64
"""Spans of one request. To write them takes Python some milliseconds, in which the event loop may wait for it."""
EVERY_S = 2.0
SEND_S = 5.0
"""Seconds that a request may take, with retries and pauses; then its spans are dropped."""
CLOSE_S = 3.0
"""Seconds for which a PoP that ends goes on sending."""
SAID_EVERY_S = 60.0
LOGGERS = "opentelemetry.exporter.otlp.proto.http.trace_exporter", "opentelemetry.sdk._shared_internal"
"""Loggers of the library, which complain of every request while the collector is away."""


class _CountingExporter(SpanExporter):
    def __init__(self, exporter: SpanExporter) -> None:
        self.taken = self.lost = 0
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.taken += len(spans)
        result = self._exporter.export(spans)
        if result is not SpanExportResult.SUCCESS:
            self.lost += len(spans)
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class SpanSender(BatchSpanProcessor):
    """Sends spans that have ended, in batches, from a thread of its own, and counts those that it drops."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._counted = _CountingExporter(exporter)
        self._given = self._refused = 0
        super().__init__(self._counted, WAITING, EVERY_S * 1000, AT_ONCE)

    @property
    def dropped(self) -> int:
        """Spans that were dropped since it began."""
        return self._refused + self._counted.lost

    def on_end(self, span: ReadableSpan) -> None:
        # Here, since the SDK would drop the oldest one without counting.
        if self._given - self._counted.taken >= WAITING:
            self._refused += 1
            return
        self._given += 1
        super().on_end(span)

    async def close(self) -> None:
        """Send what is left, for CLOSE_S at most."""
        closing = threading.Thread(target=self.shutdown, name="traces are closed", daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, CLOSE_S)
        if closing.is_alive():
            self._counted.shutdown()  # What waits for its next try is woken, and what follows is dropped.


@contextmanager
def _seldom() -> Iterator[None]:
    """Within the context each kind of the library's lines gets into the log once a minute at most."""
    logged_at: dict[str, float] = {}

    def is_due(record: logging.LogRecord) -> bool:
        now = time.monotonic()
        if now - logged_at.get(record.msg, -SAID_EVERY_S) < SAID_EVERY_S:
            return False
        logged_at[record.msg] = now
        return True

    loggers = [logging.getLogger(name) for name in LOGGERS]
    for logger in loggers:
        logger.addFilter(is_due)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(is_due)


@asynccontextmanager
async def sending(config: Config) -> AsyncIterator[SpanSender]:
    """Yields a sender to the configured collector. Raises ConfigError: its headers are missing."""
    address, headers = config.traces.endpoint.rstrip("/") + TRACES_PATH, trace_headers(config)
    with _seldom():
        sender = SpanSender(
            OTLPSpanExporter(address, headers=headers, timeout=SEND_S, compression=Compression.NoCompression)
        )
        try:
            yield sender
        finally:
            await sender.close()
