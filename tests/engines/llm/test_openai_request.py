"""What is asked of a server of the OpenAI kind: fields that it refuses are left out from then on."""

import json
from typing import Any

import pytest

from voicepipe.agent import ToolSpec
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.openai_request import RefusedFields, refused_field, request

HELLO = Prompt((Message("user", "Is temperature unsupported?"),))
WEATHER = Prompt(HELLO.messages, (ToolSpec("weather"),), "required")
SENT = {
    **request(OpenAiConfig(), "m", WEATHER), "top_p": 0.9, "seed": 1, "stop": ["x"], "parallel_tool_calls": False,
    "stream_options": {"include_usage": True}, "priority": 1,
}  # fmt: skip


def openai(message: str, **more: Any) -> Any:
    return {"error": {"message": message, "type": "invalid_request_error"} | more}


REFUSALS = [
    # OpenAI and Azure
    (openai("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.", param="max_tokens", code="unsupported_parameter"), "max_tokens"),
    (openai("Unsupported value: 'temperature' does not support 0.0 with this model. Only the default (1) value is "
            "supported.", param="temperature", code="unsupported_value"), "temperature"),
    (openai("Unsupported value.", param="stop", code="unsupported_value"), "stop"),
    (openai("Unrecognized request argument supplied: stream_options"), "stream_options"),
    (openai("Unknown parameter: 'seed'.", param="seed"), "seed"),
    # Mistral, and whatever checks requests by pydantic
    ({"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"],
                                                 "msg": "Extra inputs are not permitted", "input": 1}]}}, "seed"),
    ({"detail": [{"loc": ["body", "top_p"], "msg": "extra fields not permitted", "type": "value_error.extra"}]},
     "top_p"),
    # Groq, Google (an array), xAI, Amazon, llama.cpp, LiteLLM
    (openai("property 'parallel_tool_calls' is unsupported"), "parallel_tool_calls"),
    ([openai('Invalid JSON payload received. Unknown name "stream_options": Cannot find field.', code=400)],
     "stream_options"),
    (openai("Argument not supported on this model: stop"), "stop"),
    ({"message": "The model returned the following errors: `temperature` is deprecated for this model."},
     "temperature"),
    (openai("`temperature` and `top_p` cannot both be specified for this model."), "temperature"),
    (openai("Unsupported param: tool_choice", code=400), "tool_choice"),
    (openai("litellm.UnsupportedParamsError: gpt-5 models don't support temperature=0.0. Only temperature=1 is "
            "supported. To drop it set litellm.drop_params = True"), "temperature"),
    (openai("litellm.UnsupportedParamsError: vertex_ai does not support parameters: ['parallel_tool_calls'], for "
            "model=x."), "parallel_tool_calls"),
    # Kimi, vLLM
    (openai("invalid temperature: only 1 is allowed for this model"), "temperature"),
    (openai("Invalid value: 'temperature' must be 1"), "temperature"),
    (openai("Try another one.", param="temperature"), "temperature"),
    (openai("temperature must be greater than 0", param="None"), "temperature"),
    (openai("`temperature` has to be a strictly positive float, it must be > 0", param=None), "temperature"),
    (openai("Got priority 1 but priority scheduling is not enabled."), "priority"),
    (openai("Cannot specify both top_p and temperature."), "top_p"),
    (openai("Stream options can only be defined when `stream=True`."), "stream_options"),
    (openai("'parallel_tool_calls' is only allowed when 'tools' are specified."), "parallel_tool_calls"),
    (openai("Not of that kind.", param="stop[0]"), "stop"),
    # What is about something else
    (openai("Invalid schema for function 'weather': In context=('properties', 'temperature'), 'unknown' is not "
            "permitted.", param="tools[0].function.parameters"), ""),
    (openai("Invalid schema for function 'weather': 'temperature' is not permitted."), ""),
    (openai("The user's temperature question is not permitted by policy.", param="prompt"), ""),
    (openai("Unsupported: temperature.", param="messages.[0].content"), ""),
    (openai("Invalid 'max_tokens': integer below minimum value. Expected a value >= 16, but got 1 instead.",
            param="max_tokens", code="integer_below_min_value"), ""),
    (openai("max_tokens must be at least 16, got 1."), ""),
    (openai("Invalid max_tokens value, the valid range is [1, 8192]"), ""),
    (openai("max_tokens is too large: 512.", param="max_tokens"), ""),
    # What is wrong with one request alone, or cannot be left out
    (openai("This model's maximum context length is 1024 tokens; 'max_tokens' is too large: 512, not supported."), ""),
    (openai("Unsupported value: 'messages[0].role' does not support 'system' with this model."), ""),
    (openai("tools is not supported by this model"), ""),
    (openai("Unknown parameter: 'frequency'."), ""),
    (openai("'max_tokens_to_sample' is an unknown parameter"), ""),
    (openai("The seed of doubt"), ""),
    ("<html>not supported</html>", ""),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "field"), REFUSALS)
def test_which_field_a_server_refuses(answer: Any, field: str) -> None:
    assert refused_field(SENT, json.dumps(answer).encode()) == field


def test_a_server_that_refuses_all_of_it_in_turn_gets_what_a_reply_needs() -> None:
    refusals, config = RefusedFields("The server"), OpenAiConfig(body={"seed": 1, "top_p": 0.9})
    for _ in range(20):
        body = request(config, "m", WEATHER, refusals.fields)
        optional = [name for name in body if name not in ("model", "messages", "tools", "stream")]
        if not optional:
            break
        assert refusals.learn(body, json.dumps(openai(f"Unknown parameter: '{optional[0]}'.")).encode())
    assert len(refusals.fields) == 6 and set(body) == {"model", "messages", "tools", "stream"}


def test_the_limit_has_the_name_that_the_server_takes() -> None:
    refusals = RefusedFields("The server")
    assert refusals.learn(request(OpenAiConfig(), "m", HELLO), json.dumps(REFUSALS[0][0]).encode())
    body = request(OpenAiConfig(), "m", HELLO, refusals.fields)
    assert "max_tokens" not in body and body["max_completion_tokens"] == 512
    short = request(OpenAiConfig(), "m", Prompt(HELLO.messages, max_tokens=5), refusals.fields)
    assert short["max_completion_tokens"] == 5


def test_a_configured_limit_keeps_its_number_under_its_other_name() -> None:
    config = OpenAiConfig(body={"max_tokens": 100})
    assert request(config, "m", HELLO, {"max_tokens"})["max_completion_tokens"] == 100


def test_the_log_says_what_to_do_about_it(caplog: pytest.LogCaptureFixture) -> None:
    config = OpenAiConfig(body={"stream_options": {"include_usage": True}})
    refusals = RefusedFields("The server", config.body)
    for field in ("stream_options", "temperature"):
        refusals.learn(request(config, "m", HELLO), json.dumps(openai(f"Unknown parameter: '{field}'.")).encode())
    body, omitted = caplog.messages
    assert "take it out of openai.body" in body and 'add "temperature" to openai.omit' in omitted


@pytest.mark.parametrize(
    ("config", "sent"),
    [
        ({}, {"temperature": 0.0, "max_tokens": 512}),
        ({"max_tokens": 0}, {"temperature": 0.0}),
        ({"max_tokens": 0, "body": {"max_completion_tokens": 99}}, {"temperature": 0.0, "max_completion_tokens": 99}),
        ({"body": {"max_completion_tokens": 99}}, {"temperature": 0.0, "max_completion_tokens": 99}),
        ({"omit": ["temperature"]}, {"max_tokens": 512}),
        ({"omit": ["temperature", "max_tokens"]}, {"max_completion_tokens": 512}),
        ({"omit": ["temperature", "max_tokens", "max_completion_tokens"]}, {}),
        ({"body": {"temperature": 0.7, "seed": 1}}, {"temperature": 0.7, "max_tokens": 512, "seed": 1}),
    ],
)
def test_what_the_configuration_leaves_out_and_adds(config: dict[str, Any], sent: dict[str, Any]) -> None:
    body = request(OpenAiConfig(**config), "m", HELLO)
    assert {name: value for name, value in body.items() if name not in ("model", "messages", "stream")} == sent


def test_what_no_request_can_be_without_is_not_omitted() -> None:
    with pytest.raises(ValueError, match="cannot have 'messages'; allowed: temperature, max_tokens"):
        OpenAiConfig(omit=("messages",))
