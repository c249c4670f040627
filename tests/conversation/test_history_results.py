"""Results of tools in the prompt, however long they are: each with its call, and never the whole prompt away."""

import pytest

from voicepipe.base.errors import ItemUnknown
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import MAX_CHARS, History
from voicepipe.conversation.prompt import Message


def call(name: str, arguments: str = "{}") -> Item:
    return Item(f"call_{name}", "function_call", "assistant", call_id=name, name=name, arguments=arguments)


def result(name: str, chars: int = 10) -> Item:
    return Item(f"result_{name}", "function_call_output", call_id=name, output=name * chars)


def history(*items: Item) -> History:
    made = History()
    for item in items:
        made.add(item)
        made.messages("")
    return made


def read(made: History) -> list[str]:
    """What the prompt holds: beginnings of what was said, and names of tools."""
    return [told(message) for message in made.messages("")]


def told(message: Message) -> str:
    if message.call:
        return f"calls {message.call.call_id}"
    return f"-> {message.call_id}" if message.role == "tool" else message.text[:5]


def talk(chars: int) -> list[Item]:
    size = 500
    return [
        Item(f"talk_{n}", role="user" if n % 2 else "assistant", text=f"said{n:03} ".ljust(size, "."))
        for n in range(chars // size)
    ]


def test_a_long_result_is_read_with_its_call_and_the_question() -> None:
    made = history(Item("u", text="the menu please"), call("a"), result("a", 20_000))
    assert read(made) == ["the m", "calls a", "-> a"]
    made.add(Item("answer", role="assistant", text="There is soup."))
    assert read(made) == ["There"], "it has no room beside what comes after it"


@pytest.mark.parametrize("chars", [3000, 4600, 7000, 9000, 10_000, 17_000])
@pytest.mark.parametrize("said", [0, 5000, 9000, 16_000])
def test_results_of_parallel_tools_are_read_with_their_calls(chars: int, said: int) -> None:
    made = history(*talk(said), call("a"), call("b"), result("a", chars), result("b", chars))
    tools = [line for line in read(made) if line.startswith(("calls", "->"))]
    assert sorted(tools) == ["-> a", "-> b", "calls a", "calls b"]
    assert tools.index("calls a") < tools.index("-> a") and tools.index("calls b") < tools.index("-> b")
    assert sum(len(message.text) for message in made.messages("")) <= MAX_CHARS + chars


def test_a_result_whose_call_was_trimmed_meanwhile_brings_it_along() -> None:
    made = history(call("a"), *talk(40_000))
    assert "calls a" not in read(made)
    made.add(result("a"))
    assert read(made)[-2:] == ["calls a", "-> a"]
    assert len(read(made)) > 10, "nothing else had to go"


def test_a_result_without_a_call_is_left_out_and_drives_nothing_out() -> None:
    made = history(Item("u", text="hello"), result("nobody asked", 20_000))
    assert read(made) == ["hello"]
    made.add(call("a"))
    made.add(result("a"))
    made.delete("call_a")
    assert read(made) == ["hello"]


def test_a_turn_without_words_does_not_drive_out_what_came_before_it() -> None:
    made = history(call("a"), result("a", 20_000), Item("cut", role="assistant", audio_ms=0), Item("n", audio_ms=700))
    assert read(made) == ["calls a", "-> a"]


def test_what_short_results_bring_along_is_counted() -> None:
    calls = [call(f"c{n}", "x" * 5000) for n in range(40)]
    made = history(*calls, *(result(f"c{n}", 1) for n in range(40)))
    prompt = made.messages("")
    assert sum(len(message.call.arguments) for message in prompt if message.call) <= MAX_CHARS + 5000
    assert read(made)[-2:] == ["calls c39", "-> c39"]


def test_no_item_of_a_client_stands_behind_one_that_it_cannot_see() -> None:
    made = history(Item("u", text="hello"))
    made.add(call("a"), hidden=True)
    assert made.add(Item("next", text="are you there")) == "u"
    with pytest.raises(ItemUnknown):
        made.add(Item("guessed", text="between"), "call_a")
    assert "guessed" not in made
    assert made.add(result("a"), "call_a", hidden=True) == "u"


def test_a_call_of_ours_waits_for_our_result_also_where_a_client_has_guessed_its_id() -> None:
    made = history(Item("u", text="hello"))
    made.add(call("a"), hidden=True)
    made.add(result("a"))
    for item in talk(30_000):
        made.add(item)
        made.messages("")
    made.add(Item("ours", "function_call_output", call_id="a", output="done"), "call_a", hidden=True)
