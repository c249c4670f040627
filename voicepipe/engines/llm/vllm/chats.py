"""Prompts -> requests of AsyncLLM, by the pipeline of vLLM's own chat server without its HTTP: the model's template,
its tokens, grammars for tool calls, parsers of what it writes."""

import functools
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.entrypoints.serve.engine.protocol import ErrorResponse
from vllm.exceptions import VLLMValidationError
from vllm.lora.request import LoRARequest
from vllm.renderers.online_renderer import OnlineRenderer
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.engine.async_llm import AsyncLLM
from vllm.v1.structured_output.backend_xgrammar import validate_xgrammar_grammar

from voicepipe.base.errors import RequestRefused
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Prompt
from voicepipe.engines.llm import chat
from voicepipe.engines.llm.spoken_text import Habits
from voicepipe.engines.llm.vllm.reading import CompletionOutput, ReplyReading

log = logging.getLogger(__name__)
TOO_LONG = ("input_tokens", "input_text")
"""What vLLM names in the error about a prompt that does not fit."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """The request of one reply: what AsyncLLM.generate takes, and how to read its output."""

    inputs: Any
    params: SamplingParams
    reading: ReplyReading
    lora: LoRARequest | None = None
    """The adapter that the agent names; None: the model alone answers."""


class Chats:
    """Turns prompts into requests of one AsyncLLM. `lora`: the directory of each adapter, by its name. Raises
    TypeError: there are no such parsers, or the tokenizer does not fit them."""

    def __init__(self, llm: AsyncLLM, config: VllmConfig, lora: Mapping[str, str]) -> None:
        self._lora = {name: LoRARequest(name, number, path) for number, (name, path) in enumerate(lora.items(), 1)}
        self._model = llm.model_config
        self._tokenizer = llm.get_tokenizer()
        self._config = config
        self._habits = Habits("vLLM", "set vllm.args.reasoning_parser", "set vllm.tool_call_parser to the model's")
        self._defaults = self._model.get_diff_sampling_param()
        self._renderer = OnlineRenderer(
            llm.model_config,
            llm.renderer,
            request_logger=None,
            chat_template=None,
            chat_template_content_format="auto",
            enable_auto_tools=True,
            tool_parser=config.tool_call_parser or None,
            reasoning_parser=config.args.get("reasoning_parser"),
        )

    async def request(self, prompt: Prompt) -> ChatRequest:
        """A prompt that leaves no room for its reply loses its oldest turns. Raises RequestRefused: nothing is left, or
        there is no adapter as the agent names it."""
        if prompt.agent and (problem := self._config.lacks_model(prompt.agent.name, prompt.agent.model)):
            raise RequestRefused(problem)
        limit = self._model.max_model_len
        reply = min(prompt.max_tokens or self._config.max_tokens, limit // 2)
        whole = chat.messages(prompt)
        for messages in chat.shorter(whole):
            request = self._request(prompt, messages, reply)
            inputs = await self._rendered(request)
            if inputs is not None and len(inputs["prompt_token_ids"]) + reply <= limit:
                if messages is not whole:
                    log.info("a prompt of %d messages was cut to %d", len(whole), len(messages))
                params = request.to_sampling_params(reply, self._defaults)
                reading = self._reading(request, inputs["prompt_token_ids"])
                return ChatRequest(
                    inputs, params, reading, self._lora.get(prompt.agent.model) if prompt.agent else None
                )
        raise RequestRefused(
            f"The agent's instructions and tools leave no room for a reply in {limit} tokens: shorten them, or raise "
            "vllm.max_model_len."
        )

    def _request(self, prompt: Prompt, messages: list[chat.Chat], reply: int, **fields: Any) -> ChatCompletionRequest:
        own = prompt.agent.temperature if prompt.agent else None
        if self._config.tool_call_parser and (tools := chat.tools(prompt)):
            for tool in tools:
                tool["function"]["strict"] = _enforceable(json.dumps(tool["function"]["parameters"]))
            fields |= {"tools": tools, "tool_choice": chat.choice(prompt)}
        return ChatCompletionRequest(
            messages=messages,
            max_completion_tokens=reply,
            temperature=self._config.temperature if own is None else own,
            stream=True,
            include_reasoning=False,
            chat_template_kwargs={"enable_thinking": False},
            **fields,
        )

    async def _rendered(self, request: ChatCompletionRequest) -> Any:
        """What AsyncLLM takes; None: it is too long. Adds the grammar to `request`."""
        try:
            rendered = await self._renderer.render_chat(request)
        except VLLMValidationError as error:
            if error.parameter in TOO_LONG:
                return None
            raise
        if isinstance(rendered, ErrorResponse):
            raise RequestRefused(f"vLLM refuses a prompt: {rendered.error.message}")
        return rendered[1][0]

    def _reading(self, request: ChatCompletionRequest, tokens: list[int]) -> ReplyReading:
        if self._renderer.parser is None:
            return ReplyReading((), habits=self._habits)
        parser = self._renderer.parser(
            self._tokenizer,
            request.tools,
            chat_template_kwargs=self._renderer.effective_chat_template_kwargs(request),
            model_config=self._model,
        )

        def parse(output: CompletionOutput) -> Any:
            return parser.parse_delta(
                delta_text=output.text,
                delta_token_ids=list(output.token_ids),
                request=request,
                prompt_token_ids=tokens,
                finished=output.finish_reason is not None,
            )

        names = [tool.function.name for tool in request.tools or ()]
        return ReplyReading(names, parse, self._habits)


@functools.lru_cache(1000)
def _enforceable(schema: str) -> bool:
    """Whether vLLM can hold the arguments to this JSON Schema while they are written; else to JSON alone."""
    try:
        validate_xgrammar_grammar(SamplingParams(structured_outputs=StructuredOutputsParams(json=schema)))
    except (VLLMValidationError, ValueError):
        return False
    return True
