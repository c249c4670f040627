"""A collector, as far as PoPs see it: it takes traces by OTLP over HTTP, and keeps them."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class Receiver:
    """One that listens."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: set[tuple[tuple[str, object], ...]] = set()
        """Of the senders."""
        self.keys: set[str | None] = set()
        """What came as Authorization."""
        self.url = ""

    def take(self, body: bytes) -> None:
        """One request."""
        for of_resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.add(tuple(sorted(attributes(of_resource.resource.attributes).items())))
            for of_scope in of_resource.scope_spans:
                self.spans += of_scope.spans

    def named(self, name: str) -> list[Span]:
        """Those of this name that have come."""
        return [span for span in self.spans if span.name == name]


def attributes(pairs: Iterable[KeyValue]) -> dict[str, object]:
    """By name."""
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value") or "string_value") for pair in pairs}


@contextmanager
def receiver() -> Iterator[Receiver]:
    """It listens on a free port of this machine."""
    made = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            well = self.path == "/v1/traces" and self.headers["Content-Type"] == "application/x-protobuf"
            if well:
                made.keys.add(self.headers["Authorization"])
                made.take(body)
            self.send_response(200 if well else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield made
    finally:
        server.shutdown()
        server.server_close()
        serving.join()
