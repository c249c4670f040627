"""The engine `openai` against llama.cpp's server, with the nano LLM. It is run by hand, since `llama-server` takes half
an hour to build: with that in PATH, `.venv-vllm/bin/python -m pytest tests/by_hand`."""

from collections.abc import Iterator

import pytest

from tests.engines.contract import ToolContract
from tests.gpu_engines import model_servers
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Llm
from voicepipe.engines.llm.openai import OpenAiLlm

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with model_servers.llama_cpp() as url:
        yield url


class TestLlamaServer(ToolContract):
    @pytest.fixture(autouse=True)
    def served(self, base_url: str) -> None:
        self.base_url = base_url

    def factory(self) -> Llm:  # type: ignore[override]
        return OpenAiLlm(OpenAiConfig(base_url=self.base_url))
