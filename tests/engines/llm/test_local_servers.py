"""Which of the servers on this machine is taken."""

import asyncio

import pytest

from tests.engines.llm.test_auto import model, port
from tests.engines.openai_server import serving
from voicepipe.engines.llm.local_servers import LocalServer, look


async def test_the_first_model_that_writes_is_taken() -> None:
    server = model()
    server.models = ["nomic-embed-text", "llama3.2:3b", "qwen3"]
    async with serving(server) as url:
        found = await look({"nobody": 9, "Ollama": port(url)})
        assert found == LocalServer("Ollama", url, ("llama3.2:3b", "qwen3"))
        server.models = ["nomic-embed-text"]
        assert await look({"Ollama": port(url)}) is None


async def test_a_program_that_answers_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.engines.llm.local_servers.PATIENCE_S", 0.1)
    silent = await asyncio.start_server(lambda reader, writer: asyncio.sleep(5), "127.0.0.1", 0)
    async with silent, serving(model()) as url:
        ports = {"silent": silent.sockets[0].getsockname()[1], "Ollama": port(url)}
        found = await look(ports)
    assert found and found.program == "Ollama"
