"""The table [traces]: what of calls is told to a collector of OpenTelemetry."""

from typing import Annotated
from urllib.parse import urlsplit

from msgspec import Meta

from voicepipe.ranges import Section, Variable

PATH = "/v1/traces"
"""OTLP's, below a collector's address."""


class TracesConfig(Section, frozen=True):
    endpoint: str = ""
    """Base address of a collector that takes OTLP over HTTP, as "http://127.0.0.1:4318". Empty: there are no traces."""
    sample: Annotated[float, Meta(ge=0, le=1)] = 1.0
    """Share of the calls that are traced. A call that belongs to a trace already (traceparent) is traced if that is."""
    headers_env: Variable = ""
    """Names the environment variable with headers for the collector, written as for OTEL_EXPORTER_OTLP_HEADERS."""

    def __post_init__(self) -> None:
        parts = urlsplit(self.endpoint)
        if self.endpoint and not (parts.scheme in ("http", "https") and parts.hostname):
            raise ValueError(f"endpoint: {self.endpoint!r} is none; give one such as http://127.0.0.1:4318")
        if parts.path.rstrip("/").endswith(PATH) or parts.query:
            raise ValueError(f"endpoint: {self.endpoint!r} is not the base address; leave out what follows it: {PATH}")
        if self.headers_env and not self.endpoint:
            raise ValueError("headers_env: there is no endpoint that would get them; give one, or leave this out")
