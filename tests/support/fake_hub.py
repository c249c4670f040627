"""A model hub on loopback, as far as huggingface_hub asks one. It remembers what was asked for."""

import hashlib
import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "1" * 40


@dataclass
class FakeHub:
    """`models`: org/name -> its files; org/name@tag -> those of another revision.
    A gated model shows what it has and gives it to nobody without a token."""

    models: Mapping[str, Mapping[str, bytes]]
    gated: frozenset[str] = frozenset()
    breaks: set[str] = field(default_factory=set)
    """Files whose first transfer ends in the middle."""
    fetched: list[str] = field(default_factory=list)
    """Files of which bytes were sent, with the range that was asked for: "model.bin bytes=12-"."""
    url: str = ""


@contextmanager
def serving(hub: FakeHub) -> Iterator[FakeHub]:
    class Handler(_Handler):
        fake = hub

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        hub.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield hub
        finally:
            server.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    fake: FakeHub

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if asked := re.fullmatch(r"/api/models/([^/]+/[^/]+)(?:/(tree|revision)/(\w+))?", path):
            self._describe(asked[1], asked[3] or "main", tree=asked[2] == "tree")
        elif asked := re.fullmatch(r"/([^/]+/[^/]+)/resolve/(\w+)/(.+)", path):
            self._send_file(*asked.groups())
        else:
            self._answer(404, b"")

    def _found(self, name: str, revision: str) -> tuple[str, Mapping[str, bytes]] | None:
        """The commit and its files."""
        for known, files in self.fake.models.items():
            tag = known.partition("@")[2]
            commit = hashlib.sha1(tag.encode()).hexdigest() if tag else COMMIT
            if known.partition("@")[0] == name and revision in (tag or "main", commit):
                return commit, files
        return None

    def _describe(self, name: str, revision: str, *, tree: bool) -> None:
        if name not in self.fake.models:
            self._answer(401, b'{"error": "Invalid username or password."}', {"X-Error-Code": "RepoNotFound"})
            return
        found = self._found(name, revision)
        if found is None:
            self._answer(404, b'{"error": "Invalid rev id"}', {"X-Error-Code": "RevisionNotFound"})
            return
        commit, files = found
        listed = [{"type": "file", "path": path, "size": len(data), "oid": "0"} for path, data in files.items()]
        siblings = [{"rfilename": path, "size": len(data)} for path, data in files.items()]
        self._answer(200, json.dumps(listed if tree else {"id": name, "sha": commit, "siblings": siblings}).encode())

    def _send_file(self, name: str, revision: str, path: str) -> None:
        if name in self.fake.gated and "Authorization" not in self.headers:
            self._answer(401, b"", {"X-Error-Code": "GatedRepo"})
            return
        found = self._found(name, revision)
        if not found or path not in found[1]:
            self._answer(404, b"")
            return
        commit, data = found[0], found[1][path]
        headers = {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if self.command == "HEAD":
            self._answer(200, data, headers)
            return
        span = self.headers.get("Range", "")
        self.fake.fetched.append(f"{path} {span}".strip())
        if start := re.fullmatch(r"bytes=(\d+)-", span):
            headers["Content-Range"] = f"bytes {start[1]}-{len(data) - 1}/{len(data)}"
            self._answer(206, data[int(start[1]) :], headers)
        elif path in self.fake.breaks:
            self.fake.breaks.discard(path)
            self._answer(200, data, headers, sent=len(data) // 2)
            self.close_connection = True
        else:
            self._answer(200, data, headers)

    def _answer(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[:sent])

    def log_message(self, format: str, *args: object) -> None:
        pass
