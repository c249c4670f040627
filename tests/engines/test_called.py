"""Tool calls put together from their fragments: what no model sends is refused, and costs little."""

from time import thread_time

import pytest

from voicepipe.engines.base import ToolCall
from voicepipe.engines.called import LONGEST, MOST_CALLS, Called
from voicepipe.errors import EngineError

SMALL_S = 0.6
"""Generous: these take a tenth of it, and took up to 15 s where they were not bounded."""


def test_as_many_calls_as_may_be_and_one_more() -> None:
    called = Called()
    for index in range(MOST_CALLS):
        called.add(index, f"c{index}", "add", "{}")
    called.add(0, None, None, "")
    assert [call.call_id for call in called] == [f"c{index}" for index in range(MOST_CALLS)]
    with pytest.raises(EngineError, match="more than 64 tools"):
        called.add(MOST_CALLS, "one more", "add", None)


@pytest.mark.parametrize("part", ["id", "name", "arguments"])
def test_a_call_as_long_as_may_be_and_a_longer_one(part: str) -> None:
    called = Called()
    text = "x" * (LONGEST - 10)
    called.add(0, text if part == "id" else "i", text if part == "name" else "n", text if part == "arguments" else "")
    with pytest.raises(EngineError, match="do not end"):
        called.add(0, None, None, "y" * 11)


def test_interleaved_calls_with_the_same_number_belong_to_the_latest() -> None:
    called = Called()
    called.add(0, "a", "add", '{"a": 1}')
    called.add(1, "b", "end", "")
    called.add(0, "c", "add", '{"a"')
    called.add(1, None, None, "{}")
    called.add(0, None, None, ": 2}")
    assert list(called) == [
        ToolCall("a", "add", '{"a": 1}'), ToolCall("b", "end", "{}"), ToolCall("c", "add", '{"a": 2}')
    ]  # fmt: skip


@pytest.mark.parametrize("space", ["", " \n"])
def test_white_space_after_the_arguments_leaves_them_complete(space: str) -> None:
    called = Called()
    called.add(0, "a", "add", '{"a": "}"')
    called.add(0, "b", "add", "}")
    called.add(0, None, None, space)
    called.add(0, "c", "add", "{}")
    assert [call.arguments for call in called] == ['{"a": "}"}' + space, "{}"]


@pytest.mark.parametrize("piece", ["x", "}", ""])
def test_a_new_id_for_each_piece_of_long_arguments(piece: str) -> None:
    """They were read again at each."""
    called = Called()
    called.add(0, "i", "n", '{"a":"' + "}" * 60_000)
    began = thread_time()
    try:
        for number in range(16_000):
            called.add(0, f"i{number}", "n", piece)
    except EngineError:
        pass
    assert thread_time() - began < SMALL_S
