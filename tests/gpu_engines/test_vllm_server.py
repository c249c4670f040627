"""The engine `openai` against vLLM's own server, with the nano LLM: `make test-vllm`."""

from collections.abc import Iterator

import pytest

from tests.engines.contract import ToolContract, the_call
from tests.gpu_engines import model_servers
from tests.models.dialogues import AGENT, TRANSFER
from voicepipe.base.errors import EngineError
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Llm, Message, Prompt
from voicepipe.engines.llm.openai import OpenAiLlm

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    with model_servers.vllm() as url:
        yield url


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
