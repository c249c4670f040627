"""A fleet of processes with records, and one caller who comes by every door."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx
from cryptography.hazmat.primitives import serialization

from tests.directory.fleets import KEY, public_key
from tests.directory.nats_server import nats_server
from tests.fleet.processes import Process, wait
from tests.fleet.rig import ANSWERS
from tests.ingress.telephony.telnyx_provider import PUBLIC
from tests.support.ports import free_port

READY_S = 120.0
NUMBER, SPOKEN, TYPED = "+4930555123", "Balthasar", "Rumpelstiltskin"
"""What the caller's telephones show, what they say there, and what their programs type."""
POP = """
[pop]
id = "{name}"
region = "{name}"
slots = 24
budget_ms = 600000
loop_lag_ms = 60000
drain_ms = 0
agents = "agents"
[http]
port = {port}
[records]
folder = "kept"
lines = "kept/{name}.jsonl"
[fleet]
keys = ["directory.pub.pem"]
url = "http://127.0.0.1:{port}"
place = [{latitude}, 8.7]
[bus]
servers = ["{nats}"]
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
[scripted]
hears = ["my name is {spoken}"]
[sip]
port = {sip}
[telephony]
public_url = "http://127.0.0.1:{port}"
[twilio]
auth_token_env = "TEST_TWILIO"
[telnyx]
public_key = "{telnyx_key}"
api_key_env = "TEST_TELNYX"
api_url = "{telnyx}"
"""
DIRECTORY = """
[directory]
key = "directory.pem"
place = [50.1, 8.7]
known_pops = "pops.json"
[bus]
servers = ["{nats}"]
[http]
port = {port}
operator_key_env = "TEST_OPERATOR"
[sip]
port = {sip}
[telephony]
public_url = "http://127.0.0.1:{port}"
[twilio]
auth_token_env = "TEST_TWILIO"
[telnyx]
public_key = "{telnyx_key}"
api_key_env = "TEST_TELNYX"
api_url = "{telnyx}"
[[tenants]]
name = "acme"
key_env = "TEST_ACME"
"""
AGENT = """
name = "front-desk"
greeting = "Good day."
[hooks]
after_call = "http://127.0.0.1:{nobody}/after-call"
secret_env = "TEST_HOOK"
"""
"""Nobody takes what it has sent, so it waits in the records."""


class FleetProcess(Process):
    """A PoP or a directory, with its ports."""

    def __init__(self, folder: Path, name: str, kind: str, text: str, **its: Any) -> None:
        self.port, self.sip = free_port(), free_port()
        file = folder / f"{name}.toml"
        file.write_text(text.format(name=name, port=self.port, sip=self.sip, **its))
        command = (sys.executable, "-m", "voicepipe", kind, "--config", str(file))
        super().__init__(name, command, folder / f"{name}.log", ANSWERS)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def serve(self) -> None:
        """Until it serves."""
        self.start()
        wait(lambda: self.serves, f"{self.name} serves", READY_S)


class Fleet:
    """A directory and two PoPs: Frankfurt, where the directory sends its calls, and London."""

    def __init__(self, folder: Path, nats: str, telnyx: str) -> None:
        self.folder = folder
        its = {"nats": nats, "telnyx": telnyx, "telnyx_key": PUBLIC, "spoken": SPOKEN}
        (folder / "agents").mkdir()
        (folder / "agents" / "front-desk.toml").write_text(AGENT.format(nobody=free_port()))
        self.directory = FleetProcess(folder, "directory", "directory", DIRECTORY, **its)
        self.fra = FleetProcess(folder, "fra", "pop", POP, latitude=50.1, **its)
        self.lhr = FleetProcess(folder, "lhr", "pop", POP, latitude=20.0, **its)

    def wait_for(self, *pops: str) -> None:
        """Until the directory has heard that these take calls."""
        wait(lambda: {pop["pop"] for pop in self.asked("/v1/pops")["pops"] if pop["status"] == "ok"} == set(pops),
             f"the directory hears of {pops}", READY_S)  # fmt: skip

    def asked(self, path: str, server: str = "", key: str = "k-operator") -> Any:
        """The answer to a GET at the directory, or at another server."""
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx.get(f"{server or self.directory.url}{path}", headers=headers, timeout=60).json()

    def records(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.asked("/v1/records?limit=1000")["data"]
        return rows

    def files_with(self, text: str) -> set[str]:
        """The names of all files of the fleet that contain a text: databases with their write-ahead logs, lines, what
        processes say. Not those that configure it."""
        files = [path for path in self.folder.rglob("*") if path.is_file() and path.suffix != ".toml"]
        return {path.name.removesuffix("-wal") for path in files if text.encode() in path.read_bytes()}

    def shown(self, pop: FleetProcess) -> set[str]:
        """The calls whose turns a PoP's dashboard shows."""
        return {turn["call"] for turn in self.asked("/v1/dashboard?minutes=60", pop.url, "")["turns"]}

    def kill(self, process: FleetProcess) -> None:
        process.signal(signal.SIGKILL)
        process.kill()


@contextmanager
def fleet(folder: Path, telnyx: str) -> Iterator[Fleet]:
    """One that runs. `telnyx`: the address of its API. Blocks."""
    public_key(folder)
    private = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    (folder / "directory.pem").write_bytes(KEY.private_bytes(serialization.Encoding.PEM, *private))
    with ExitStack() as stack:
        nats = stack.enter_context(nats_server(folder))
        made = Fleet(folder, nats.url, telnyx)
        for process in (made.directory, made.fra, made.lhr):
            stack.callback(process.kill)
            process.serve()
        made.wait_for("fra", "lhr")
        yield made
