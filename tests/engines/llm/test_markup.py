"""What models write beside their words: what begins it, and where it ends."""

import pytest

from tests.engines.written import CALLS, THOUGHTS
from voicepipe.engines.llm.markup import ENDS, MARKS, MAY_BEGIN, JsonText, closing

CALL = '{"name": "weather", "arguments": {"note": "a } and a \\" in it"}}'


@pytest.mark.parametrize(("opens", "closes"), [*THOUGHTS.items(), *CALLS.items()])
def test_each_mark_is_closed_by_its_own_name(opens: str, closes: str) -> None:
    found = MARKS.match(opens)
    assert found and (found["thought"] or found["call"])
    within = closing(found[0])
    assert within.search("words < 5 [x]") is None
    assert not closes or within.search(f"words {closes}")


@pytest.mark.parametrize("mark", [*THOUGHTS, *CALLS, *ENDS, CALL])
def test_where_a_mark_begins_it_may_begin_in_any_piece(mark: str) -> None:
    for size in range(1, len(mark) + 1):
        assert MAY_BEGIN.match(mark[:size]), mark[:size]


@pytest.mark.parametrize("text", ["We are open.", "x > 5", "3<5", "a tools> here", "function"])
def test_most_text_has_none(text: str) -> None:
    assert MARKS.search(text) is None


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_json_ends_with_its_last_bracket_however_it_is_cut(size: int) -> None:
    json, text, behind = JsonText(), f"{CALL} and more", None
    at = 0
    while behind is None:
        behind = json.push(text[at : at + size])
        at += size
    assert json.text == CALL and behind + text[at:] == " and more"


def test_json_that_has_not_ended_says_so() -> None:
    json = JsonText()
    assert json.push('{"a": "}') is None
    assert json.push('\\"}"') is None
    assert json.push("}") == ""


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (CALL, True),
        (f"[{CALL}, {CALL}]", True),
        ('{"type": "function", "function": {"name": "weather", "arguments": "{}"}}', True),
        ('{"tool_calls": [{"name": "weather"}]}', True),
        ('{"name": "weather", "parameters": {"ci', True),
        ('{"name": "Ann", "arguments": "two guests"}', False),
        ('{"answer": "yes"}', False),
        (f"[{CALL}, 5]", False),
        ("[]", False),
    ],
)
def test_json_that_names_a_tool_and_its_arguments_is_a_call(text: str, calls: bool) -> None:
    json = JsonText()
    json.push(text)
    assert json.calls == calls
