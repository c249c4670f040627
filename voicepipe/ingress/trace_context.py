"""The trace that a call belongs to, as HTTP brings it (W3C Trace Context). Only `observe/otlp.py` makes sense of it."""

import msgspec
from starlette.requests import HTTPConnection

from voicepipe.call_settings import CallSettings, TraceContext

HEADERS = "traceparent", "tracestate"
LONGEST = 512
"""Characters of each header; the convention requires so many of the second, and has 55 in the first."""


def trace_context(connection: HTTPConnection) -> TraceContext:
    """The trace context of a request or a WebSocket. Empty where there is none, or one that is too long."""
    parent, state = (",".join(connection.headers.getlist(name)) for name in HEADERS)
    return TraceContext(parent, state if len(state) <= LONGEST else "") if len(parent) <= LONGEST else TraceContext()


def in_trace(settings: CallSettings, connection: HTTPConnection) -> CallSettings:
    """`settings` of a call that this request or WebSocket begins, with its trace context."""
    origin = msgspec.structs.replace(settings.origin, trace=trace_context(connection))
    return msgspec.structs.replace(settings, origin=origin)
