"""What a language model's server answers: its stream of events, its refusals, its list of models."""

import json
from random import Random
from typing import Any

from tests.fuzz.target import Target
from voicepipe.engines.openai_wire import Lines, StreamedReply, complaint, names
from voicepipe.errors import EngineError


def _event(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"


def _call(index: int, **function: str) -> bytes:
    return _event({"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": function}]})


PIECES = (
    _event({"role": "assistant", "content": ""}),
    _event({"content": "We open "}),
    _event({"content": "at <think>no</think>on."}),
    _call(0, name="look", arguments=""),
    _call(0, arguments='{"a":'),
    _call(1, arguments="1}"),
    _event({"content": None}, "stop"),
    b"data: [DONE]\n\n",
    b": keep-alive\n\n",
    b'data: {"error": {"message": "out of memory"}}\n\n',
    b'data: {"choices": [], "usage": {"total_tokens": 5}}\n\n',
    b"data:\n\n",
    b"data: null\n\n",
    b"\r\n",
)
WORDS = (
    *PIECES,
    b"<think>",
    b"</think>",
    b"<tool_call>",
    b"```",
    b'"index"',
    b'"error"',
    b'"detail"',
    b"data:",
    b"\xe2\x80\xa8",
)


def stream(data: bytes) -> None:
    """The body of a reply, as it comes from the network: in pieces of a length that the data says."""
    step = 1 + len(data) % 700
    lines, reply = Lines(), StreamedReply()
    try:
        for at in range(0, len(data), step):
            for event in lines.feed(data[at : at + step]):
                reply.take(event)
        list(reply.rest())
    except EngineError as error:
        assert str(error)


def answer(data: bytes) -> None:
    """A body that is read as a whole: why a request was refused, or which models there are."""
    assert "\n" not in complaint(data)
    names(data)


def _seeds() -> list[bytes]:
    return [b"".join(PIECES[:8]), b"".join(PIECES), b"".join(PIECES[1:3] + PIECES[6:8])]


def _any_stream(random: Random) -> bytes:
    return b"".join(random.choice(PIECES) for _ in range(random.randint(1, 30)))


def _answers() -> list[bytes]:
    return [b'{"object":"list","data":[{"id":"nano","object":"model"}]}', b'{"error":{"message":"full","code":503}}',
            b'{"detail":[{"msg":"field required","loc":["body"]}]}', b"<html>502</html>"]  # fmt: skip


TARGETS = (
    Target("model-stream", "a language model's server's reply", stream, _seeds, _any_stream, WORDS, largest=16_384),
    Target("model-answer", "its refusals and its models", answer, _answers, words=WORDS, share=0.5, largest=8192),
)
