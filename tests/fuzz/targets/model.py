"""What a language model's server answers: its stream of events, its refusals, its list of models."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

from tests.engines.written import CALLS, THOUGHTS
from tests.fuzz.target import Target
from voicepipe.base.errors import EngineError, ToolError
from voicepipe.engines.base import StreamCorrection, ToolCall
from voicepipe.engines.llm.event_stream import EventStream
from voicepipe.engines.llm.markup import ENDS, HEADERS
from voicepipe.engines.llm.openai_request import refused_field
from voicepipe.engines.llm.openai_wire import StreamedReply, complaint, model_names
from voicepipe.engines.llm.spoken_text import Habits
from voicepipe.tools.tool_arguments import fitting, parse


def _event(delta: Any, finish: Any = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish} | more
    return b"data: " + json.dumps({"object": "chat.completion.chunk", "choices": [choice]}).encode() + b"\n\n"


def _call(index: Any, call_id: Any = "", **function: Any) -> bytes:
    return _event({"tool_calls": [{"index": index, "id": call_id or f"c{index}", "function": function}]})


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
    b"\xef\xbb\xbf",
    b'data: {"choices":\ndata: [{"delta": {"content": "two lines"}}]}\n\n',
    b'{"choices": [{"message": {"content": "All at once."}, "finish_reason": "stop"}]}',
)
MARKS = (*THOUGHTS, *THOUGHTS.values(), *CALLS, *CALLS.values(), *ENDS, *HEADERS, "<|channel|>analysis<|message|>",
         "<|channel|>final<|message|>", "<|end|>", "<|start|>assistant", "assistantfinal",
         "<|channel|>commentary to=functions.look<|message|>", '{"name": "look", "parameters": {"a": 1}}', "```json\n",
         '{"answer": 1}', '[look(a="1")]')  # fmt: skip
TEXTS = ("We open ", "at noon.", " If x < 5,", " [laughs]", "{name}", "\n", "", " Ab", "a", "<", "[", "`")
WORDS = (
    *PIECES, *(mark.encode() for mark in MARKS), b'"index"', b'"error"', b'"detail"', b'"message"', b'"text"', b"data:",
    b"event: error", b"\xe2\x80\xa8", b'"finish_reason":"stop"',
)  # fmt: skip


def stream(data: bytes) -> None:
    """The body of a reply, as it comes from the network: in pieces of a length that the data says. However it is cut,
    the same is said and called."""
    step, thinks = 1 + len(data) % 700, len(data) % 3 == 0
    assert _read(data, step, thinks) == _read(data, len(data) + 1, thinks), "said by how the network cuts it"


def _read(data: bytes, step: int, thinks: bool) -> tuple[str, list[tuple[str, str]], bool]:
    """What is said, what is called, and whether it failed."""
    events = EventStream()
    reply = StreamedReply(habits=Habits("A model", "", "", thinks_first=thinks), names=("look", "book"))
    said: list[str] = []
    calls: list[tuple[str, str]] = []
    failed = False

    def take(deltas: Any) -> None:
        for delta in deltas:
            if isinstance(delta, str):
                said.append(delta)
            elif isinstance(delta, ToolCall):
                assert delta.name
                calls.append((delta.name, delta.arguments))
            elif delta is StreamCorrection.WITHDRAWN:
                said.clear()

    try:
        for at in range(0, len(data), step):
            for event in events.feed(data[at : at + step]):
                take(reply.take(event))
        for event in events.rest():
            take(reply.take(event))
        take(reply.rest())
    except EngineError as error:
        assert str(error)
        failed = True
    for _, arguments in calls:
        try:
            fitting(SCHEMA, parse(arguments))
        except ToolError as error:
            assert str(error)
    return "".join(said), calls, failed


SCHEMA = {
    "required": ["a"], "additionalProperties": False,
    "properties": {"a": {"type": "integer"}, "b": {"pattern": "^(x+)+$"}, "c": {"type": "array", "uniqueItems": True}},
}  # fmt: skip


def answer(data: bytes) -> None:
    """A body that is read as a whole: why a request was refused, or which models there are."""
    assert "\n" not in complaint(data)
    assert refused_field({"model": "m", "messages": [], "temperature": 0, "max_tokens": 5}, data) not in (
        "model",
        "messages",
    )
    model_names(data)


def _seeds() -> list[bytes]:
    return [b"".join(PIECES[:8]), b"".join(PIECES), b"".join(PIECES[1:3] + PIECES[6:8])]


def _text(random: Random) -> bytes:
    """A text with marks in it, cut anywhere into events."""
    text = "".join(random.choice(TEXTS if random.random() < 0.6 else MARKS) for _ in range(random.randint(1, 12)))
    pieces = []
    while text:
        size = random.choice((1, 2, 5, len(text)))
        pieces.append(_event({"content": text[:size]}))
        text = text[size:]
    return b"".join(pieces)


ARGUMENTS = (
    '{"a": 1}', '{"a": 1, "b": "' + "x" * 30 + '!"}', '{"a": ', "", "null", "[1]", '{"c": [[], []]}'
)  # fmt: skip


def _any_call(random: Random) -> bytes:
    """Fragments of two or three calls, by all that servers do with number, id and name."""
    fragments = []
    for number in range(random.randint(1, 3)):
        arguments = random.choice(
            ('{"a": 1}', '{"a": 1, "b": "' + "x" * 30 + '!"}', '{"a": ', "", "null", "[1]", '{"c": [[], []]}')
        )
        cut = random.randint(0, len(arguments))
        index = random.choice((number, number, 0, None, str(number), 0.0))
        call_id = random.choice((f"c{number}", f"c{number}", "", None, "c0", number))
        name = random.choice(("look", "book", "look", "lo", "", None, "functions.look"))
        fragments += [
            {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments[:cut]}},
            {"index": random.choice((index, number, None)), "id": random.choice((None, "", call_id)),
             "function": {"name": random.choice((None, name)),
                          "arguments": random.choice((arguments[cut:], arguments, {"a": 1}))}},
        ]  # fmt: skip
    if random.random() < 0.3:
        random.shuffle(fragments)
    return b"".join(_event({"tool_calls": [fragment]}) for fragment in fragments)


def _odd(random: Random) -> bytes:
    """An event of another shape."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    content = random.choice((None, 5, True, [], {}, [{"type": "text", "text": "Yes."}], {"text": "No."}, "Well.",
                             [thought, {"text": None}, "a"]))  # fmt: skip
    delta: Any = random.choice((None, [], "Hi.", {"content": content}, {"refusal": "I cannot."}, {"tool_calls": None},
                           {"function_call": {"name": "look", "arguments": "{}"}}))  # fmt: skip
    finish = random.choice((None, None, "", "stop", "length", "tool_calls", "error", 5, "null"))
    other = random.choice(({}, {"message": {"content": content}}, {"text": "Old."}, {"delta": delta, "index": 1}))
    choice = {"delta": delta, "finish_reason": finish} | other
    choices = random.choice(([choice], [choice], [None, choice], choice, None, [], "x", 5))
    whole = random.choice(
        ({"choices": choices}, {"choices": choices}, {"choices": choices, "error": None}, [choice], "ping")
    )
    end = random.choice((b"\n\n", b"\r\n\r\n", b"\n", b"\r\r", b""))
    return random.choice((b"data: ", b"data:", b"event: x\ndata: ", b"")) + json.dumps(whole).encode() + end


MAKERS: tuple[Callable[[Random], bytes], ...] = (
    lambda random: random.choice(PIECES), _text, _text, _any_call, _odd,
)  # fmt: skip


def _any_stream(random: Random) -> bytes:
    return b"".join(random.choice(MAKERS)(random) for _ in range(random.randint(1, 8)))


def _answers() -> list[bytes]:
    return [b'{"object":"list","data":[{"id":"nano","object":"model"}]}', b'{"error":{"message":"full","code":503}}',
            b'{"detail":[{"msg":"field required","loc":["body"]}]}', b"<html>502</html>",
            b'{"error":{"message":"Unsupported parameter: \'max_tokens\'","param":"max_tokens"}}']  # fmt: skip


TARGETS = (
    Target("model-stream", "a language model's server's reply", stream, _seeds, _any_stream, WORDS, largest=16_384),
    Target("model-answer", "its refusals and its models", answer, _answers, words=WORDS, share=0.5, largest=8192),
)
