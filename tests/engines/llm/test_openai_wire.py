"""Replies of servers that write a little differently, byte for byte: what is said and called, however they are cut."""

import json
from typing import Any

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.engines.base import ToolCall
from voicepipe.engines.llm.event_stream import EventStream
from voicepipe.engines.llm.openai_wire import StreamedReply, model_names

WORDS = "We are open until ten."


def chunk(delta: Any = None, finish: Any = None, **more: Any) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish} | more],
    }


def body(*events: Any, end: str = "\n\n") -> bytes:
    return b"".join(
        event if isinstance(event, bytes) else f"data: {json.dumps(event, ensure_ascii=False)}{end}".encode()
        for event in events
    )


def said(text: str) -> list[Any]:
    return [chunk({"content": text[:8]}), chunk({"content": text[8:]})]


def read(raw: bytes, step: int = 1 << 20) -> tuple[str, list[tuple[str, str]], bool]:
    """The words, the calls, and whether the server said that it is complete."""
    stream, reply, words, calls = EventStream(), StreamedReply(names=["weather"]), "", []
    events = [event for at in range(0, len(raw), step) for event in stream.feed(raw[at : at + step])]
    deltas = [delta for event in [*events, *stream.rest()] for delta in reply.take(event)]
    for delta in [*deltas, *reply.rest()]:
        if isinstance(delta, str):
            words += delta
        elif isinstance(delta, ToolCall):
            calls.append((delta.name, delta.arguments))
    return words, calls, reply.over


STOP, DONE = chunk({}, "stop"), b"data: [DONE]\n\n"
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
PRETTY = json.dumps(chunk({"content": WORDS}), indent=1).replace("\n", "\ndata: ").encode()
WHOLE = {
    "object": "chat.completion",
    "choices": [{"message": {"role": "assistant", "content": WORDS}, "finish_reason": "stop"}],
}

SHAPES = {
    "choices null, empty, missing, of no shape": body({"choices": None}, {"choices": []}, {}, {"choices": "x"},
                                                      {"choices": [None]}, {"choices": {}}, *said(WORDS), STOP),
    "delta null, missing, a list": body(chunk(None), {"choices": [{"index": 0}]}, chunk([]), *said(WORDS), STOP),
    "delta is the text": body(chunk(WORDS[:8]), chunk(WORDS[8:]), STOP),
    "choices an object": body({"choices": {"delta": {"content": WORDS}, "finish_reason": "stop"}}),
    "parts": body(chunk({"content": [{"type": "text", "text": WORDS[:8]}, THOUGHT]}),
                  chunk({"content": [WORDS[8:]]}), STOP),
    "parts without a type, or with another": body(chunk({"content": [{"text": WORDS[:8]}, {"type": "output_text",
                                                  "text": WORDS[8:]}, {"type": "image_url"}, None, False]}), STOP),
    "an object": body(chunk({"content": {"type": "text", "text": {"value": WORDS}}}), STOP),
    "parts in parts": body(chunk({"content": {"parts": [{"text": WORDS}]}}), STOP),
    "reasoning beside it": body(chunk({"reasoning_content": "Hm.", "content": None}), chunk({"reasoning": "Hm.",
                                "thinking": "Hm."}), *said(WORDS), STOP),
    "a refusal": body(chunk({"content": None, "refusal": WORDS}), STOP),
    "message in place of delta": body({"choices": [{"message": {"content": WORDS[:8]}}]},
                                      {"choices": [{"message": {"content": WORDS[8:]}, "finish_reason": "stop"}]}),
    "message that grows": body({"choices": [{"message": {"content": WORDS[:8]}}]}, WHOLE),
    "all of it once more at the end": body(*said(WORDS), WHOLE),
    "once more without thoughts": body(chunk({"content": "<think>Hm.</think>"}), *said(WORDS), WHOLE),
    "once more with other spaces": body(chunk({"content": " We  are"}), chunk({"content": " open until ten."}),
                                        WHOLE).replace(b" We  are", b"We are")
    .replace(b'"We are open', b'"We  are open'),
    "parts of other types": body(chunk({"content": [{"type": "text_delta", "text": WORDS[:3]},
        {"type": "input_text", "text": WORDS[3:5]}, {"type": "TEXT", "text": WORDS[5:8]},
        {"type": "markdown", "markdown": WORDS[8:10]}, {"type": "refusal", "refusal": WORDS[10:]},
        {"type": "reasoning_text", "text": "Hm."}, {"type": "tool_use", "text": "Hm."}, {"type": "text", "text": "Hm.",
         "thought": True}, {"type": "type"}, {"type": "input_image", "text": "Hm."}]}), STOP),
    "done in small letters": body(*said(WORDS), b"data: [done]\n\n"),
    "text in brackets": body(b"data: [begin]\n\n", *said(WORDS), b"data: [note] x\n\n", STOP),
    "a tab in a text": body(chunk({"content": WORDS, "note": "TAB"}), STOP).replace(b"TAB", b"\t"),
    "completions of old": body({"choices": [{"text": WORDS, "finish_reason": "stop"}]}),
    "not streamed": json.dumps(WHOLE).encode(),
    "not streamed, on lines": json.dumps(WHOLE, indent=2).encode() + b"\n",
    "an object a line": body(*said(WORDS), STOP).replace(b"data: ", b"").replace(b"\n\n", b"\n"),
    "content in numbers": body(*said("We are open until "), chunk({"content": 10}), STOP).replace(b"10", b'"ten."'),
    "the end beside the text": body(chunk({"content": WORDS}, "stop"), DONE),
    "odd reasons": body(chunk({"content": WORDS[:8]}, ""), chunk({"content": WORDS[8:]}, "null"),
                        chunk({}, "eos_token")),
    "usage null, more behind the end": body(*said(WORDS), STOP, {"choices": [], "usage": None}, DONE, b"data: x\n\n"),
    "an error behind the end": body(*said(WORDS), STOP, {"error": {"message": "late"}}, b'data: {"cut\n\n'),
    "error null": body({"error": None, **chunk({"content": WORDS})}, STOP),
    "roles": body(chunk({"role": "assistant"}), *said(WORDS), chunk({"role": "tool"}), STOP),
    "several replies": body(chunk({"content": WORDS[:8]}), chunk({"content": "No."}, index=1),
                            {"choices": [{"index": 1, "delta": {"content": "No"}},
                                         {"index": 0, "delta": {"content": WORDS[8:]}}]}, STOP),
    "comments, events, ids": body(b": PROCESSING\n\n", b"event: message\nid: 1\nretry: 5\n", *said(WORDS), STOP,
                                  b": bye"),
    "CRLF": body(*said(WORDS), STOP, end="\r\n\r\n"),
    "CR": body(*said(WORDS), STOP, end="\r\r"),
    "no empty lines": body(*said(WORDS), STOP, end="\n"),
    "no space": body(*said(WORDS), STOP).replace(b"data: ", b"data:"),
    "BOM": b"\xef\xbb\xbf" + body(*said(WORDS), STOP),
    "several lines an event": b"data: " + PRETTY + b"\n\n" + body(STOP),
    "no end of the last line": body(*said(WORDS), STOP)[:-2],
    "what is no JSON": body(b"data: ping\n\n", b"data: null\n\n", b"data: 5\n\n", b"data:\n\n", b"data\n\n",
                            *said(WORDS), STOP),
    "zeros": body(b"\0\0data: null\n\n", chunk({"content": "\0" + WORDS}), STOP),
    "NaN": body(*said(WORDS), STOP).replace(b'"index": 0', b'"logprobs": NaN, "index": 0'),
}  # fmt: skip


@pytest.mark.parametrize("raw", SHAPES.values(), ids=SHAPES)
def test_the_words_and_nothing_else_however_they_are_cut(raw: bytes) -> None:
    assert {read(raw, step)[0] for step in (1, 2, 3, 7, 64, 1 << 20)} == {WORDS}
    assert read(raw)[2], "it is complete"


OTHER = {"index": 0, "id": "b", "function": {"name": "weather", "arguments": "{}"}}


@pytest.mark.parametrize("grows", [True, False])
def test_calls_in_messages_in_place_of_pieces(grows: bool) -> None:
    messages = [[FRAGMENT], [FRAGMENT, OTHER] if grows else [OTHER]]
    raw = body(*({"choices": [{"message": {"tool_calls": each}}]} for each in messages), STOP)
    assert read(raw)[1] == [CALL, ("weather", "{}")]


def test_letters_that_are_cut_in_the_middle_stay_whole() -> None:
    raw = body(chunk({"content": "Grüße, 您好 – नमस्ते"}), STOP)
    assert {read(raw, step)[0] for step in range(1, len(raw))} == {"Grüße, 您好 – नमस्ते"}


def test_halves_of_characters_are_left_out() -> None:
    half = body(chunk({"content": "Yes"})).replace(b"Yes", b"Yes\xf0\x9f")
    assert read(half + body(b'data: {"choices":[{"delta":{"content":"\\ud83d."}}]}\n\n', STOP))[0] == "Yes."


FRAGMENT = {"index": 0, "id": "a", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}
CALL = ("weather", '{"city": "Rome"}')
AS_OBJECT = {**FRAGMENT, "function": {"name": "weather", "arguments": {"city": "Rome"}}}
AGAIN = {"choices": [{"message": {"content": None, "tool_calls": [FRAGMENT]}, "finish_reason": "tool_calls"}]}
NO_FRAGMENTS = [None, 5, {}, {"function": None}, {"index": 7, "function": {"arguments": None}}]
CALLS = {
    "beside empty text": body(chunk({"content": "", "tool_calls": [FRAGMENT]}),
                              chunk({"tool_calls": None}, "tool_calls")),
    "in the last event": body(chunk({"tool_calls": [FRAGMENT]}, "stop"), DONE),
    "arguments are an object": body(chunk({"tool_calls": [AS_OBJECT]}), STOP),
    "arguments are parameters": body(
        chunk({"tool_calls": [{"name": "weather", "parameters": {"city": "Rome"}}]}), STOP),
    "index null, id null": body(chunk({"tool_calls": [{**FRAGMENT, "index": None, "id": None}]}), STOP),
    "index is text": body(chunk({"tool_calls": [{**FRAGMENT, "index": "0"}]}), STOP),
    "not in a list": body(chunk({"tool_calls": FRAGMENT}), STOP),
    "of old": body(chunk({"function_call": {"name": "weather", "arguments": ""}}),
                   chunk({"function_call": {"arguments": '{"city": "Rome"}'}}), chunk({}, "function_call")),
    "not streamed": json.dumps(AGAIN).encode(),
    "all of it once more at the end": body(chunk({"tool_calls": [FRAGMENT]}), AGAIN),
    "of no shape": body(chunk({"tool_calls": [*NO_FRAGMENTS, FRAGMENT]}), STOP),
}  # fmt: skip


@pytest.mark.parametrize("raw", CALLS.values(), ids=CALLS)
def test_the_call_and_nothing_else_however_it_is_cut(raw: bytes) -> None:
    for step in (1, 2, 3, 7, 64, 1 << 20):
        assert read(raw, step) == ("", [CALL], True)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (body({"error": {"message": "CUDA out of memory"}}), "CUDA out of memory"),
        (body({"error": "overloaded", "choices": []}), "overloaded"),
        (body({"type": "error", "message": "no"}), "no"),
        (body(chunk({}, "error")), "gave a reply up"),
        (b'data: {"choices": [{"delta": {"content": "We are op\n\n', "no chat completion"),
    ],
)
def test_what_a_server_reports_and_what_may_have_been_words_fail(raw: bytes, says: str) -> None:
    with pytest.raises(EngineError, match=says):
        read(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"data": [{"id": "a"}, {"id": 5}, null, {"id": "b", "owned_by": "voicepipe"}]}',
        b'[{"id": "a", "object": "model"}]',
    ],
)
def test_the_models_that_a_server_lists(raw: bytes) -> None:
    assert model_names(raw) == ["a"]
