"""Tool calls put together from their fragments: what no model sends is refused, and costs little."""

from time import thread_time

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.engines.base import ToolCall
from voicepipe.engines.llm.tool_call_fragments import LONGEST, MOST_CALLS, ToolCallFragments, index_of, text_of

SMALL_S = 0.6
"""Generous: these take a tenth of it, and took up to 15 s where they were not bounded."""


def test_as_many_calls_as_may_be_and_one_more() -> None:
    called = ToolCallFragments(())
    for index in range(MOST_CALLS):
        called.add(index, f"c{index}", "add", "{}")
    called.add(0, None, None, "")
    assert [call.call_id for call in called] == [f"c{index}" for index in range(MOST_CALLS)]
    with pytest.raises(EngineError, match="more than 64 tools"):
        called.add(MOST_CALLS, "one more", "add", None)


@pytest.mark.parametrize("part", ["id", "name", "arguments"])
def test_a_call_as_long_as_may_be_and_a_longer_one(part: str) -> None:
    called = ToolCallFragments(())
    text = "x" * (LONGEST - 10)
    called.add(0, text if part == "id" else "i", text if part == "name" else "n", text if part == "arguments" else "")
    with pytest.raises(EngineError, match="do not end"):
        called.add(0, None, None, "y" * 11)


def test_interleaved_calls_with_the_same_number_belong_to_the_latest() -> None:
    called = ToolCallFragments(())
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
    called = ToolCallFragments(())
    called.add(0, "a", "add", '{"a": "}"')
    called.add(0, "b", "add", "}")
    called.add(0, None, None, space)
    called.add(0, "c", "add", "{}")
    assert [call.arguments for call in called] == ['{"a": "}"}' + space, "{}"]


@pytest.mark.parametrize("piece", ["x", "}", ""])
def test_a_new_id_for_each_piece_of_long_arguments(piece: str) -> None:
    """They were read again at each."""
    called = ToolCallFragments(())
    called.add(0, "i", "n", '{"a":"' + "}" * 60_000)
    began = thread_time()
    try:
        for number in range(16_000):
            called.add(0, f"i{number}", "n", piece)
    except EngineError:
        pass
    assert thread_time() - began < SMALL_S


# --- what servers do with number, id and name -----------------------------------------------------------------------

ROME, OSLO = '{"city":"Rome"}', '{"city":"Oslo"}'
BOTH = [("weather", ROME), ("weather", OSLO)]
Fragments = list[tuple[int | None, str | None, str | None, str | None]]


@pytest.mark.parametrize(
    ("fragments", "calls"),
    [
        ([(0, "a", "weather", ""), (0, None, None, ROME), (0, "b", "weather", ""), (1, None, None, OSLO)], BOTH),
        ([(0, "a", "weather", ""), (1, None, None, ROME), (1, "b", "weather", ""), (2, None, None, OSLO)], BOTH),
        ([(0, "a", "weather", ROME), (0, "b", "weather", OSLO)], BOTH),
        ([(0, "", "weather", ROME), (0, "", "weather", OSLO)], BOTH),
        ([(None, "a", "weather", ""), (None, None, None, ROME), (None, "b", "weather", OSLO)], BOTH),
        ([(None, None, "weather", ROME), (None, None, "weather", OSLO)], BOTH),
        ([(0, "c", "weather", ROME), (1, "c", "weather", OSLO)], BOTH),
        ([(0, "c", "weather", ROME), (0, "c", "weather", OSLO)], BOTH),
        ([(0, "a", "weather", ROME[:4]), (0, "a", "weather", ROME[4:]), (1, "b", "weather", OSLO)], BOTH),
        ([(None, "a", "weather", ROME[:4]), (None, "b", "weather", OSLO), (None, "a", None, ROME[4:])], BOTH),
        ([(0, "a", "weather", ROME), (0, "a", "weather", ROME)], BOTH[:1]),
        ([(0, "a", "weather", ROME), (0, "a", "weather", "")], BOTH[:1]),
        ([(0, "a", "weather", piece) for piece in (ROME[:3], ROME[:8], ROME)], BOTH[:1]),
        ([(0, "a", "weather", ROME[:6]), (0, None, None, ROME[6:]), (0, None, None, ROME)], BOTH[:1]),
        ([(0, "a", "wea", None), (0, None, "ther", None), (0, None, None, ROME)], BOTH[:1]),
        ([(0, "a", "wea", None), (0, "a", "weather", None), (0, None, None, ROME)], BOTH[:1]),
        ([(0, "a", "functions.weather<|channel|>json", ROME)], BOTH[:1]),
        ([(0, "a", "end", None), (0, "b", "weather", ROME)], [("end", "{}"), ("weather", ROME)]),
        ([(0, None, "end", None), (0, None, "weather", ROME)], [("end", "{}"), ("weather", ROME)]),
        ([(0, None, None, OSLO)], []),
        ([(0, "a", None, ROME)], []),
        ([(0, "a", " ", ROME)], []),
        ([(0, None, None, None), (3, None, None, "")], []),
        ([(0, "a", "weather", "{}"), (0, None, None, ROME)], BOTH[:1]),
        ([(0, "a", "weather", "null"), (0, None, None, ROME[:5]), (0, None, None, ROME[5:])], BOTH[:1]),
        ([(0, "a", "weather", "{}"), (0, None, None, " "), (0, "a", "weather", ROME)], BOTH[:1]),
        ([(0, "a", "weather", "{}"), (1, "b", "weather", "{}"), (0, "a", None, ROME), (1, "b", None, OSLO)], BOTH),
        ([(0, "a", "end", "null")], [("end", "{}")]),
        ([(0, "a", "end", "{}"), (0, "b", "end", "{}")], [("end", "{}")] * 2),
        ([(0, "a", "book", None), (0, None, "_table", None), (0, None, None, ROME)], [("book_table", ROME)]),
        ([(0, "a", "book", None), (0, "b", "weather", ROME)], [("book", "{}"), ("weather", ROME)]),
        ([(0, "a", None, None), (0, None, "weather", None), (0, None, None, ROME),
          (0, "b", None, None), (0, None, "weather", None), (0, None, None, OSLO)], BOTH),
        ([(0, "c", "weather", ""), (0, None, None, ROME), (0, "c", "weather", ""), (0, None, None, OSLO)], BOTH),
        ([(0, "c", "weather", ""), (0, None, None, ROME), (0, "c", "weather", ""),
          (0, "c", "weather", ROME)], BOTH[:1]),
        ([(0, "a", "weather", ROME[:4]), (0, "b", None, ROME[4:]), (0, "c", None, "")], BOTH[:1]),
        ([(0, "a", "weather", ""), (0, "b", "weather", ""), (0, None, None, OSLO), (1, None, None, ROME)], BOTH),
        ([(0, "a", "weather", '{"city":"Ro')], [("weather", '{"city":"Ro')]),
    ],
)  # fmt: skip
def test_fragments_go_to_the_call_that_they_belong_to(fragments: Fragments, calls: list[tuple[str, str]]) -> None:
    called = ToolCallFragments(["weather", "end", "book", "book_table"])
    for fragment in fragments:
        called.add(*fragment)
    found = list(called)
    assert [(call.name, call.arguments) for call in found] == calls
    assert all(call.call_id for call in found) and bool(called) == bool(calls)


@pytest.mark.parametrize(
    ("said", "index"), [(1, 1), ("2", 2), (0.0, 0), (None, None), ("x", None), (True, None), ([], None), (0.5, None)]
)
def test_a_number_as_servers_write_it(said: object, index: int | None) -> None:
    assert index_of(said) == index


@pytest.mark.parametrize(
    ("said", "text"),
    [("a", "a"), ({"a": "é"}, '{"a": "é"}'), (7, "7"), (None, ""), (False, ""), (["Rome"], '["Rome"]')],
)
def test_what_may_be_text_as_servers_write_it(said: object, text: str) -> None:
    assert text_of(said) == text
