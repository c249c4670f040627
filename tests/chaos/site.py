"""The processes of one run: a PoP and the server of its language model."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from latency_probes.own_server import Started, started
from tests.chaos.switches import FOLDER, Switches
from tests.support.ports import free_port

CONFIG = """
[pop]
agents = "{folder}"
budget_ms = 600000
slots = 8

[engines]
vad = "{vad}"
asr = "{asr}"
llm = "openai"
tts = "espeak"

[openai]
base_url = "http://127.0.0.1:{port}/v1"
timeout_ms = 4000

[ladder]
fallback_ms = 3000
stall_ms = 2000
"""
AGENT = 'name = "front-desk"\nacknowledgement = "One moment."\nfallback = "Sorry, I have a problem."\n'


class Model:
    """The language model's server: it can be killed, stopped and started."""

    def __init__(self, switches: Switches) -> None:
        self.port = free_port()
        self._environment = {**os.environ, FOLDER: str(switches.folder)}
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = (sys.executable, "-m", "tests.chaos.model_server", str(self.port))
        self._process = subprocess.Popen(command, env=self._environment, stdin=subprocess.DEVNULL)
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/v1/models", timeout=1).close()
                return
            except OSError:
                time.sleep(0.1)
        raise TimeoutError("the language model's server did not start")

    def signal(self, number: signal.Signals) -> None:
        if self._process:
            self._process.send_signal(number)
            if number == signal.SIGKILL:
                self._process.wait()
                self._process = None

    def close(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._process = None


class Site:
    """What a fault is done to, and what is asked how it is."""

    def __init__(self, pop: Started, model: Model, switches: Switches) -> None:
        self.pop, self.model, self.switches = pop, model, switches

    @property
    def alive(self) -> bool:
        """The PoP's process is there."""
        return Path(f"/proc/{self.pop.pid}/cmdline").exists() and self.status() != 0

    def status(self) -> int:
        """What /readyz answers; 0: nothing."""
        try:
            with urllib.request.urlopen(f"{self.pop.url}/readyz", timeout=5) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return 0


@contextmanager
def site(folder: Path, *, hears: bool) -> Iterator[Site]:
    """A PoP that answers. `hears`: with Whisper, for callers who speak; else they type."""
    switches = Switches(folder / "switches")
    switches.folder.mkdir()
    agents = folder / "agents"
    agents.mkdir()
    (agents / "front-desk.toml").write_text(AGENT)
    model = Model(switches)
    vad, asr = ("silero", "whisper") if hears else ("scripted", "scripted")
    config = folder / "voicepipe.toml"
    config.write_text(CONFIG.format(folder=agents, port=model.port, vad=vad, asr=asr))
    command = (sys.executable, "-m", "tests.chaos.faulty_pop", "pop", "--port", "0", "--config", str(config))
    try:
        model.start()
        with started(command, {**os.environ, FOLDER: str(switches.folder)}) as pop:
            yield Site(pop, model, switches)
    finally:
        model.close()
