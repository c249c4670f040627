"""Language models that run on this machine already: of Ollama, LM Studio, vLLM and llama.cpp, by their usual ports."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import httpx

from voicepipe.base.web_answer import PLAIN, whole
from voicepipe.engines.llm.event_stream import LONGEST_EVENT
from voicepipe.engines.llm.openai_wire import model_names

USUAL: Mapping[str, int] = {"Ollama": 11434, "LM Studio": 1234, "vLLM": 8000, "llama.cpp": 8080}
"""Ports that these servers have unless somebody gives them another. The first one that has a model is taken."""
PATIENCE_S = 1.0
"""For a list of models: a server on this machine has it at once, and a PoP that starts waits for it."""
NO_WRITERS = ("embed", "rerank", "whisper", "bge-", "minilm")
"""Parts of the names of models that write no replies, though servers list them."""


@dataclass(frozen=True, slots=True)
class LocalServer:
    """A language model's server on this machine, and its models."""

    program: str
    """The program's name, by its port: "Ollama"."""
    url: str
    """Its base URL, with /v1."""
    models: tuple[str, ...]
    """The models that write replies, as it lists them; at least one."""

    def __str__(self) -> str:
        return f"{self.program} at {self.url}"


async def look(ports: Mapping[str, int] = USUAL) -> LocalServer | None:
    """The first of these servers that answers with a model; None: there is none. All are asked at the same time."""
    # Without certificates, which take 20 ms to read: nothing here is TLS, and this may be asked every few seconds.
    async with httpx.AsyncClient(headers=PLAIN, timeout=PATIENCE_S, trust_env=False, verify=False) as client:
        asked = [_found(client, program, f"http://127.0.0.1:{port}/v1") for program, port in ports.items()]
        return next((found for found in await asyncio.gather(*asked) if found), None)


async def _found(client: httpx.AsyncClient, program: str, url: str) -> LocalServer | None:
    try:
        async with asyncio.timeout(PATIENCE_S), client.stream("GET", f"{url}/models") as response:
            listed = model_names(await whole(response, LONGEST_EVENT)) if response.is_success else []
    except (httpx.HTTPError, TimeoutError):
        return None
    models = tuple(_writers(listed))
    return LocalServer(program, url, models) if models else None


def _writers(listed: Iterable[str]) -> Iterable[str]:
    return (name for name in listed if not any(part in name.lower() for part in NO_WRITERS))
