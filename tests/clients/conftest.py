"""One PoP for all clients, with another origin's page let in; and what their callers say."""

from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest

from latency_probes import clips
from latency_probes.own_server import COMMAND, own_server
from tests.spoken import spoken

JS = Path(__file__).parent / "js"
BEFORE = 24_000 // 2
"""Samples of silence before each question: a client may still play the last of what it was sent."""


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the test's output is what clients saw."""


@pytest.fixture(scope="session")
def origin() -> Iterator[str]:
    """Serves the files of js/, as somebody's web site that is not the PoP's."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=JS)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def pop(origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a fresh PoP with the embedded engines."""
    manifest = tmp_path_factory.mktemp("pop") / "clients.toml"
    manifest.write_text(f'[pop]\nbudget_ms = 600000\n[http]\norigins = ["{origin}"]\n')
    with own_server((*COMMAND, "--pop", str(manifest))) as url:
        yield url


@pytest.fixture(scope="session")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What the caller asks first, and over the answer to it: s16le at 24 kHz."""
    folder = tmp_path_factory.mktemp("questions")
    files = []
    for utterance in spoken("hours", "person"):
        pcm = np.concatenate([np.zeros(BEFORE, np.int16), clips.speech(utterance, 1).pcm])
        files.append(folder / f"{utterance.id}.s16le")
        files[-1].write_bytes(pcm.astype("<i2").tobytes())
    return files
