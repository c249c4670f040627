"""Servers of the OpenAI kind with the nano LLM, each a child process on a port of this machine."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

from tests.models import nano_gguf
from tests.support.ports import free_port

NANO = nano_gguf.NANO
START_S, END_S = 300, 60
VLLM = (
    sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(NANO), "--served-model-name", "nano",
    "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096", "--max-num-seqs", "4",
    "--kv-cache-memory-bytes", str(64 << 20), "--block-size", "32",
    "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
)  # fmt: skip


@contextmanager
def vllm() -> Iterator[str]:
    """The address of vLLM's own server, as in `openai.base_url`."""
    with _served(VLLM) as url:
        yield url


@contextmanager
def llama_cpp(program: str = "llama-server") -> Iterator[str]:
    """The address of llama.cpp's server, as in `openai.base_url`."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "nano.gguf"
        nano_gguf.write(model)
        options = (
            "--alias",
            "nano",
            "--ctx-size",
            "4096",
            "--parallel",
            "1",
            "--threads",
            "1",
            "--jinja",
            "--no-webui",
        )
        with _served((program, "--model", str(model), *options)) as url:
            yield url


@contextmanager
def _served(command: Sequence[str]) -> Iterator[str]:
    port = free_port()
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with tempfile.TemporaryDirectory() as folder, (Path(folder) / "log").open("w+") as log:
        with subprocess.Popen(
            [*command, "--port", str(port)], stdout=log, stderr=log, env=environment, start_new_session=True
        ) as server:
            try:
                _await_health(f"http://127.0.0.1:{port}/health", server, Path(folder) / "log")
                yield f"http://127.0.0.1:{port}/v1"
            finally:
                server.terminate()
                with suppress(subprocess.TimeoutExpired):
                    server.wait(END_S)
                with suppress(ProcessLookupError):  # its engine's process would stay
                    os.killpg(server.pid, signal.SIGKILL)


def _await_health(url: str, server: "subprocess.Popen[bytes]", log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(httpx.HTTPError):
            if httpx.get(url, trust_env=False).is_success:
                return
        time.sleep(0.2)
    raise TimeoutError(f"the server does not answer: {log.read_text()[-2000:]}")
