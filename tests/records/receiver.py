"""Somebody who is told of calls: an HTTP server in a thread, which checks signatures with OpenAI's SDK."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from openai import OpenAI

SECRET = "whsec_c2l4dGVlbiBieXRlcyBhcmUgdG9vIGZldyBoZXJl"


class Receiver:
    """What came, each with a right signature; `status` is what it answers."""

    def __init__(self) -> None:
        self.status = 200
        self.told: list[dict[str, Any]] = []
        """Bodies that were answered with 200."""
        self.ids: list[str] = []
        """Of all requests."""
        self.url = ""

    def takes(self, headers: Any, body: bytes) -> int:
        """The status of the answer. Raises InvalidWebhookSignatureError."""
        sdk = OpenAI(api_key="none", webhook_secret=SECRET)
        sdk.webhooks.verify_signature(body, dict(headers))
        self.ids.append(headers["webhook-id"])
        if self.status == 200:
            self.told.append(json.loads(body))
        return self.status


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """One that listens, at any free port or at this one."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(receiver.takes(self.headers, body))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/after-call"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
