"""Streams as vLLM's parsers give them become words and whole tool calls."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.engines.base import Delta, ToolCall
from voicepipe.engines.llm.vllm.reading import CompletionOutput, ReplyReading


@dataclass
class Piece:
    text: str
    token_ids: Sequence[int] = (1,)
    finish_reason: str | None = None


@dataclass
class Function:
    name: str | None = None
    arguments: str | None = None


@dataclass
class Fragment:
    index: int
    id: str | None = None
    function: Function | None = None


@dataclass
class Message:
    content: str | None = None
    tool_calls: list[Fragment] = field(default_factory=list)


def read(reading: ReplyReading, *outputs: CompletionOutput) -> list[Delta]:
    return [delta for output in outputs for delta in reading.take(output)]


def test_a_piece_for_each_token() -> None:
    pieces = read(ReplyReading(()), Piece("Hel"), Piece("lo,", (2, 3)), Piece("", (4,)), Piece(" you\n", (5,), "stop"))
    assert pieces == ["Hel", "lo,", "", "", " you"]


def test_a_step_that_only_reads_the_prompt_adds_nothing() -> None:
    assert read(ReplyReading(()), Piece("", ())) == []


def test_what_might_have_been_a_thought_is_said_at_the_end() -> None:
    assert read(ReplyReading(()), Piece("<"), Piece("", (), "stop")) == ["", "<"]


def test_a_tool_call_as_the_hermes_parser_streams_it() -> None:
    """Recorded: a word before the call, the call in fragments, nothing for the tokens of its frame."""
    parsed: Iterator[Message | None] = iter([
        Message("Well."),
        None,
        Message(None, [Fragment(0, "call_1", Function("add"))]),
        Message(None, [Fragment(0, None, Function(None, '{"a": '))]),
        Message(None, [Fragment(0, None, Function(None, "2}"))]),
        None,
    ])  # fmt: skip
    outputs = [Piece("?") for _ in range(5)] + [Piece("?", (9,), "stop")]
    pieces = read(ReplyReading(["add"], lambda output: next(parsed)), *outputs)
    assert pieces == ["Well.", *[""] * 5, ToolCall("call_1", "add", '{"a": 2}')]


def test_a_name_with_what_a_parser_left_around_it_or_in_pieces() -> None:
    """By the tools that the model was offered."""
    message = Message(None, [
        Fragment(0, "a", Function("functions.add<|channel|>json", "{}")),
        Fragment(1, "b", Function("add")), Fragment(1, None, Function("_all")), Fragment(1, None, Function(None, "{}")),
    ])  # fmt: skip
    names = ["add", "add_all"]
    _, *calls = read(ReplyReading(names, lambda output: message), Piece("?", (1,), "stop"))
    assert calls == [ToolCall("a", "add", "{}"), ToolCall("b", "add_all", "{}")]


def test_two_calls_at_once() -> None:
    both = Message(None, [Fragment(0, None, Function("one", "{}")), Fragment(1, "call_2", Function("two", "{}"))])
    _, first, second = read(ReplyReading(["one", "two"], lambda output: both), Piece("?", (1,), "stop"))
    assert isinstance(first, ToolCall) and first.call_id.startswith("call_") and first.name == "one"
    assert second == ToolCall("call_2", "two", "{}")


@pytest.mark.parametrize("numbered", [True, False])
def test_three_calls_in_pieces_come_in_their_order(numbered: bool) -> None:
    """Also by a parser that numbers all calls 0, and then one after the other."""
    names = ["rain", "wind", "rain"]
    begin = [Fragment(n * numbered, f"call_{n}", Function(name, "")) for n, name in enumerate(names)]
    pieces = [[Fragment(n * numbered, None, Function(None, piece)) for piece in ('{"a"', f": {n}}}")] for n in range(3)]
    if numbered:
        fragments = [*begin, *(two[0] for two in pieces), *(two[1] for two in reversed(pieces))]
    else:
        fragments = [one for first, two in zip(begin, pieces, strict=True) for one in (first, *two)]
    parsed = iter([*(Message(None, [one]) for one in fragments), None])
    outputs = [Piece("?") for _ in fragments] + [Piece("", (9,), "stop")]
    calls = [
        delta
        for delta in read(ReplyReading(names, lambda output: next(parsed)), *outputs)
        if isinstance(delta, ToolCall)
    ]
    assert calls == [ToolCall(f"call_{n}", name, f'{{"a": {n}}}') for n, name in enumerate(names)]


@pytest.mark.parametrize("reason", ["error", "abort"])
def test_a_reply_that_vllm_gives_up(reason: str) -> None:
    with pytest.raises(EngineError, match="gave a reply up"):
        read(ReplyReading(()), Piece("", (), reason))
