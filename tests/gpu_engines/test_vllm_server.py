"""The engine `openai` against vLLM's own server with the nano LLM: `make test-engines`."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.engines.contract import ToolContract, the_call
from tests.models.dialogues import AGENT, TRANSFER
from voicepipe.base.errors import EngineError
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Llm, Message, Prompt
from voicepipe.engines.llm.openai import OpenAiLlm

NANO = Path(__file__).parents[1] / "models" / "nano-llm"
SERVER = [
    sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(NANO), "--served-model-name", "nano",
    "--dtype", "float32", "--enforce-eager", "--max-model-len", "4096", "--max-num-seqs", "4",
    "--kv-cache-memory-bytes", str(64 << 20), "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
]  # fmt: skip
START_S, END_S = 300, 60


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = tmp_path_factory.mktemp("vllm") / "log"
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with (
        log.open("w") as out,
        subprocess.Popen(
            [*SERVER, "--port", str(port)], stdout=out, stderr=out, env=environment, start_new_session=True
        ) as server,
    ):
        try:
            _await_health(f"http://127.0.0.1:{port}/health", server, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.terminate()
            with suppress(subprocess.TimeoutExpired):
                server.wait(END_S)
            with suppress(ProcessLookupError):  # its engine's process would stay
                os.killpg(server.pid, signal.SIGKILL)


def _await_health(url: str, server: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and server.poll() is None:
        with suppress(httpx.HTTPError):
            if httpx.get(url, trust_env=False).is_success:
                return
        time.sleep(1)
    pytest.fail(f"vLLM's server does not answer: {log.read_text()[-2000:]}")


@pytest.mark.engine
class TestVllmServer(ToolContract):
    @pytest.fixture(autouse=True)
    def served(self, base_url: str) -> None:
        self.base_url = base_url

    def factory(self) -> Llm:  # type: ignore[override]
        return OpenAiLlm(OpenAiConfig(base_url=self.base_url))

    async def test_a_tool_is_called_of_its_own_accord(self, llm: Llm) -> None:
        messages = (Message("system", AGENT["instructions"]), Message("user", "i would like to talk to a person"))
        call = await the_call(llm, Prompt(messages, (TRANSFER,)))
        assert (call.name, call.arguments) == ("transfer_call", '{"to": "colleague"}')

    async def test_an_unknown_model(self, base_url: str) -> None:
        with pytest.raises(EngineError, match="no model 'other'; set openai.model to one of: nano"):
            await OpenAiLlm(OpenAiConfig(base_url=base_url, model="other")).start()

    async def test_an_address_without_its_end(self, base_url: str) -> None:
        with pytest.raises(EngineError, match="mostly ends in /v1"):
            await OpenAiLlm(OpenAiConfig(base_url=base_url.removesuffix("/v1"), model="nano")).start()
