"""A PoP, and one behind a directory, for all clients, with another origin's page let in; and what their callers say."""

import sys
import time
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import httpx
import numpy as np
import pytest

from latency_probes import clips
from latency_probes.own_server import COMMAND, own_server
from tests.directory.keys import make_keys
from tests.directory.nats_server import PROGRAM, nats_server
from tests.support.ports import free_port
from tests.support.spoken import spoken
from voicepipe.serving import lan

JS = Path(__file__).parent / "js"
VOICEPIPE = (sys.executable, "-m", "voicepipe")
PATIENT = "[pop]\nbudget_ms = 600000\n"
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


class Site(NamedTuple):
    """What a client is given."""

    url: str
    """The address that it knows."""
    pop: str
    """Where its call is."""


@pytest.fixture(scope="session", params=["at a PoP", "through a directory"])
def site(request: pytest.FixtureRequest, origin: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A fresh PoP with the default engines, or a directory and such a PoP behind it."""
    folder = tmp_path_factory.mktemp("site")
    http = f'[http]\norigins = ["{origin}"]\n'
    manifest = folder / "pop.toml"
    if request.param == "at a PoP":
        manifest.write_text(f"{PATIENT}{http}")
        with own_server((*COMMAND, "--pop", str(manifest))) as url:
            yield Site(url, url)
        return
    if PROGRAM is None:
        pytest.skip("needs nats-server (Debian: apt install nats-server)")
    make_keys(folder)
    port = free_port()
    with nats_server(folder) as nats:
        bus = f'[bus]\nservers = ["{nats.url}"]\n'
        fleet = f'[fleet]\nkeys = ["directory.pub.pem"]\nurl = "http://127.0.0.1:{port}"\n'
        manifest.write_text(f"{PATIENT}{fleet}{bus}")
        (directory := folder / "directory.toml").write_text(f'[directory]\nkey = "directory.pem"\n{http}{bus}')
        with (
            own_server((*VOICEPIPE, "pop", "--pop", str(manifest), "--port", str(port))) as pop,
            own_server((*VOICEPIPE, "directory", "--config", str(directory), "--port", "0")) as url,
        ):
            while httpx.get(f"{url}/readyz").status_code != 200:
                time.sleep(0.1)
            yield Site(url, pop)


class Secure(NamedTuple):
    """A PoP with TLS of its own."""

    url: str
    certificate: Path
    """Signed by itself: clients are told to trust it."""


@pytest.fixture(scope="session")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    """A fresh PoP with the default engines and `http.cert`."""
    folder = tmp_path_factory.mktemp("secure")
    pem = lan.certificate(folder / "pop.pem", ["127.0.0.1"])
    (manifest := folder / "pop.toml").write_text(f'{PATIENT}[http]\ncert = "{pem}"\nkey = "{pem}"\n')
    with own_server((*COMMAND, "--pop", str(manifest))) as url:
        yield Secure(url, pem)


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
