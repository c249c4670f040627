"""What was said and heard, and the prompt that comes of it."""

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.base.errors import ItemExists, ItemMismatch, ItemUnknown
from voicepipe.base.words import written
from voicepipe.conversation.events import Item
from voicepipe.conversation.history import ITEM_CHARS, History, Ids, cut_at, item_bytes
from voicepipe.conversation.prompt import Message, ToolCall


def history(*items: Item) -> History:
    made = History()
    for item in items:
        made.add(item)
    return made


def test_items_go_where_the_client_wants_them() -> None:
    made = history(Item("a"), Item("c"))
    assert made.add(Item("b"), "a") == "a"
    assert made.add(Item("first"), "root") is None
    assert [item.id for item in made.items] == ["first", "a", "b", "c"]
    with pytest.raises(ItemExists):
        made.add(Item("a"))
    with pytest.raises(ItemUnknown):
        made.add(Item("d"), "nowhere")
    made.delete("a")
    with pytest.raises(ItemUnknown):
        made.get("a")


def test_a_repaired_cut_in_makes_both_halves_one_message() -> None:
    made = history(
        Item("a", text="a table"), Item("b", role="assistant", text="Sure", audio_ms=90), Item("c", text="for two")
    )
    made.repair("b")
    assert made.messages("Be kind.") == (Message("system", "Be kind."), Message("user", "a table for two"))


WORDS, NONE = Item("w", text="a table", audio_ms=900), Item("n", audio_ms=700)
ANSWER = Item("a", role="assistant", text="Sure.", audio_ms=500)
CALL = Item("f", "function_call", "assistant", call_id="c1", name="book", arguments="{}")
RESULT = Item("o", "function_call_output", call_id="c1", output="done")


@pytest.mark.parametrize(
    ("items", "unintelligible"),
    [
        ((), False),
        ((NONE,), True),
        ((WORDS, ANSWER, NONE), True),
        ((WORDS, ANSWER, NONE, Item("cut", role="assistant", audio_ms=0)), True),
        ((WORDS, ANSWER, NONE, Item("t", text="typed")), False),
        ((WORDS, ANSWER, NONE, Item("s", role="system", text="They nod.")), False),
        ((WORDS, ANSWER, NONE, Item("n2", audio_ms=700)), True),
        ((WORDS, NONE), False),
        ((WORDS, CALL, NONE), True),
        ((WORDS, CALL, RESULT, NONE), False),
        ((WORDS, CALL, NONE, RESULT), False),
        ((WORDS, ANSWER, Item("e")), False),
    ],
)
def test_a_turn_without_words_is_one_that_nothing_else_can_be_answered_after(
    items: tuple[Item, ...], unintelligible: bool
) -> None:
    assert history(*items).unintelligible() is unintelligible


def test_turns_without_words_are_counted_from_the_last_words_on() -> None:
    items = (NONE, WORDS, ANSWER, Item("n2", audio_ms=700), Item("e", role="assistant", text="Pardon?"))
    assert history(*items, Item("n3", audio_ms=700)).wordless() == 2
    assert history(*items, Item("t", text="typed")).wordless() == 0


def test_only_an_assistants_audio_can_be_cut() -> None:
    made = history(
        Item("u", text="hi"), Item("t", role="assistant", text="hi"), Item("a", role="assistant", audio_ms=900)
    )
    made.heard("a", "We are", 300)
    assert (made.get("a").text, made.get("a").audio_ms, made.get("a").status) == ("We are", 300, "incomplete")
    for item_id in ("u", "t"):
        with pytest.raises(ItemMismatch):
            made.heard(item_id, "", 0)


def test_tools_are_rendered_and_server_tools_stay_hidden() -> None:
    made = history(Item("u", text="book"))
    made.add(Item("f", "function_call", call_id="c1", name="book", arguments="{}"), hidden=True)
    made.add(Item("o", "function_call_output", call_id="c1", output="done"), hidden=True)
    assert [item.id for item in made.visible()] == ["u"]
    assert made.last_visible() == "u"
    assert made.messages("")[1:] == (
        Message("assistant", call=ToolCall("c1", "book", "{}")),
        Message("tool", "done", call_id="c1"),
    )


def test_a_result_that_comes_after_its_call_was_trimmed_is_left_out() -> None:
    made = History(max_chars=200)
    made.add(Item("f", "function_call", call_id="c1", name="book"))
    for n in range(6):
        made.add(Item(f"u{n}", text=f"{n} " * 20))
        made.messages("")
    made.add(Item("o", "function_call_output", call_id="c1", output="done"), "f")
    made.add(Item("u", text="hello"))
    assert all(message.role == "user" for message in made.messages(""))


def test_a_result_longer_than_the_prompt_keeps_its_call_and_what_was_asked() -> None:
    """Nothing was left but the instructions: the agent greeted anew and had forgotten everything."""
    made = History(max_chars=200)
    made.add(Item("a", role="assistant", text="Good evening."))
    made.add(Item("u", text="look it up"))
    made.add(Item("f", "function_call", "assistant", call_id="c1", name="look"))
    made.add(Item("o", "function_call_output", call_id="c1", output="x" * 1000))
    for _ in range(2):
        assert [message.role for message in made.messages("Be kind.")][-3:] == ["user", "assistant", "tool"]
    made.add(Item("b", role="assistant", text="Found."))
    assert [message.text for message in made.messages("")] == ["Found."], "it goes as soon as something follows"


@pytest.mark.parametrize("length", [10, 60, 80, 95, 120, 300])
def test_no_result_of_parallel_calls_stands_without_its_call(length: int) -> None:
    made = History(max_chars=400)
    for n in range(6):
        made.add(Item(f"u{n}", role="user" if n % 2 else "assistant", text="so " * 10))
    for n in range(3):
        made.add(Item(f"f{n}", "function_call", "assistant", call_id=f"c{n}", name="look"))
    for n in range(3):
        made.add(Item(f"o{n}", "function_call_output", call_id=f"c{n}", output="x" * length))
    messages = made.messages("")
    calls = [message.call.call_id for message in messages if message.call]
    assert [message.call_id for message in messages if message.role == "tool"] == calls
    assert calls and calls[-1] == "c2"
    assert any(message.role == "user" for message in messages)


def test_calls_too_long_for_the_prompt_are_not_all_kept_for_their_results() -> None:
    made = History(max_chars=400)
    made.add(Item("u", text="look"))
    for n in range(20):
        arguments = "x" * 1000
        made.add(Item(f"f{n}", "function_call", "assistant", call_id=f"c{n}", name="look", arguments=arguments))
    for n in range(20):
        made.add(Item(f"o{n}", "function_call_output", call_id=f"c{n}", output="done"))
    messages = made.messages("")
    assert [message.call.call_id for message in messages if message.call] == ["c19"]
    assert [message.call_id for message in messages if message.role == "tool"] == ["c19"]


def test_what_is_hidden_goes_once_no_prompt_will_hold_it() -> None:
    """But no call whose result is still to come, and nothing that the client sees."""
    made = History(max_chars=400)
    kept: dict[str, str] = {}
    for n in range(30):
        made.add(Item(f"u{n}", text=f"say {n}. {'so ' * 20}"))
        made.add(Item(f"f{n}", "function_call", call_id=f"c{n}", name="look"), hidden=True)
        if n != 7:
            result = Item(f"o{n}", "function_call_output", call_id=f"c{n}", output=f"saw {n}.")
            made.add(result, f"f{n}", hidden=True)
        prompt = " ".join(message.text for message in made.messages(""))
        assert f"say {n}." in prompt and (f"saw {n}." in prompt or n == 7)
        kept = {item.id: item.output for item in made.items if item.id[0] != "u"}
        assert len(kept) <= 14 and all(made.get(item_id) for item_id in kept)
    assert "f7" in kept and "f6" not in kept and "o6" not in made and "f8" not in made
    assert made.count == 30 == len(made.visible())
    assert made.bytes == sum(map(item_bytes, made.visible()))
    made.add(Item("o7", "function_call_output", call_id="c7", output="saw 7."), "f7", hidden=True)
    assert "saw 29." in " ".join(message.text for message in made.messages(""))


def test_what_stands_before_an_item() -> None:
    made = history(Item("a", text="a"), Item("b", text="b"))
    assert [made.before("a"), made.before("b")] == ["root", "a"]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=80))
def test_the_prompt_stays_small_and_its_beginning_stands_still(lengths: list[int]) -> None:
    made = History(max_chars=1200)
    firsts = []
    for n, length in enumerate(lengths):
        made.add(Item(f"u{n}", role="user" if n % 2 else "assistant", text=f"{n:05} " * length))
        messages = made.messages("")
        assert messages[-1].text.startswith(f"{n:05} ")
        assert sum(len(message.text) for message in messages) <= 1200 + 240
        firsts.append(messages[0].text.split()[0])
    moves = sum(a != b for a, b in zip(firsts, firsts[1:], strict=False))
    assert moves <= 1 + sum(6 * length + ITEM_CHARS for length in lengths) // 540, "the cut moves rarely and far"


class Counted(str):
    """Text that knows how often somebody read all of it."""

    reads = 0

    def split(self, *args: Any) -> list[str]:
        Counted.reads += 1
        return super().split(*args)

    def encode(self, *args: Any) -> bytes:
        Counted.reads += 1
        return super().encode(*args)


@pytest.mark.parametrize("text", ["a" * 100_000, "a " * 50_000, "ä" * 50_000])
def test_a_prompt_costs_what_fits_into_it_however_long_the_conversation_is(text: str) -> None:
    made = history(*(Item(f"u{n}", role="user" if n % 2 else "assistant", text=Counted(text)) for n in range(40)))
    Counted.reads = 0
    sizes = [sum(len(message.text) for message in made.messages("")) for _ in range(100)]
    assert set(sizes) == {len(text)}, "the newest item alone"
    assert Counted.reads == 0, "no prompt reads the items' words"
    assert made.bytes == 40 * len(text.encode())
    assert Counted.reads <= 40, "each item is measured once"
    assert made.bytes == made.bytes and Counted.reads <= 40


def test_the_conversation_is_measured_as_it_grows_and_shrinks() -> None:
    reply = Item("a", role="assistant", status="in_progress", audio_ms=0)
    made = history(Item("u", text="häst"), reply)
    assert made.bytes == 5
    reply.text = "Sure."
    assert made.bytes == 10
    reply.status = "completed"
    assert made.bytes == 10
    made.delete("u")
    assert made.bytes == 5
    made.delete("a")
    assert made.bytes == 0


def test_a_client_cannot_take_the_ids_that_we_give() -> None:
    ids = Ids("abc")
    made = History(ids=ids)
    made.check_theirs(Item("mine"))
    ours = ids.new("item")
    for taken in (ours, "item_abc_99"):
        with pytest.raises(ItemExists, match="given by the server"):
            made.check_theirs(Item(taken))
    made.add(Item(ours))
    made.delete(ours)
    made.check_theirs(Item(ours))  # Some clients mend an item by making it anew.
    made.add(Item(ours))
    with pytest.raises(ItemExists):
        made.check_theirs(Item(ours))


def test_a_client_writes_no_result_of_a_tool_that_runs_on_the_server() -> None:
    made = History()
    made.add(Item("f", "function_call", call_id="c1", name="book"), hidden=True)
    made.add(Item("g", "function_call", call_id="c2", name="show"))
    for kind in ("function_call", "function_call_output"):
        with pytest.raises(ItemMismatch, match="the server's own"):
            made.check_theirs(Item("o", kind, call_id="c1"))
    made.check_theirs(Item("o", "function_call_output", call_id="c2"))


def test_text_is_cut_at_the_last_word_that_was_heard() -> None:
    words = [("We ", 100), ("are ", 200), ("open", 300)]
    assert cut_at(words, 250) == "We are"
    assert cut_at(words, 0) == ""
    assert cut_at(words, 300) == "We are open"


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (["您", "好，", "欢", "迎"], ["", "您", "您好，", "您好，欢", "您好，欢迎"]),
        (["用 ", "iPhone ", "手", "机"], ["", "用", "用 iPhone", "用 iPhone 手", "用 iPhone 手机"]),
        (["दो\n", "\n", "तीन।", " चार"], ["", "दो", "दो", "दो\n\nतीन।", "दो\n\nतीन। चार"]),
    ],
)
def test_what_was_heard_stands_as_it_was_written(words: list[str], kept: list[str]) -> None:
    timed = [(word, 100 * end) for end, word in enumerate(words, 1)]
    assert [cut_at(timed, 100 * heard) for heard in range(len(words) + 1)] == kept


def test_what_the_caller_says_in_pieces_is_joined_as_their_script_does() -> None:
    history = History()
    for text in ("我想订位", "明天晚上"):
        history.add(Item(text, role="user", text=text))
    assert [message.text for message in history.messages("")] == ["我想订位明天晚上"]


def test_ids_are_unlike() -> None:
    ids = Ids("abc")
    assert ids.new("item") != ids.new("item")
    assert ids.new("item").startswith("item_abc_")


def test_what_the_agent_said_last() -> None:
    def said(number: str, text: str) -> Item:
        return Item(number, role="assistant", text=text, audio_ms=90)

    assert history().said_last() == ""
    call = Item("c", kind="function_call", call_id="1", name="book")
    result = Item("r", kind="function_call_output", call_id="1", output="yes")
    made = history(Item("a", text="a table"), said("b", "One moment."), call, result, said("d", "For how many?"))
    assert made.said_last() == "One moment. For how many?"
    made.repair("d")
    assert made.said_last() == "One moment."
    made.add(Item("e", text="four"))
    assert made.said_last() == "", "that waits for an answer"


def test_prompts_begin_at_the_caller_s_last_words_also_around_a_repaired_cut_in() -> None:
    made = history(
        Item("a", text="hello"), Item("b", role="assistant", text="Hello."), Item("c", text="my invoice 4711"),
        Item("d", role="assistant", text="Yes", audio_ms=90), Item("e", text="is wrong"), CALL, RESULT,
    )  # fmt: skip
    made.repair("d")
    assert made.begin_at_last_words() == "a"
    texts = [message.text for message in made.messages("")]
    assert texts == ["my invoice 4711 is wrong", "", "done"]
    assert [item.id for item in made.visible()][:2] == ["a", "b"], "clients still see all"
    made.begin_at("a")
    assert [message.text for message in made.messages("")][:2] == ["hello", "Hello."]


@pytest.mark.parametrize(
    "text",
    [
        "أُرِيدُ حَجْزَ طاولةٍ.",
        "שָׁלוֹם, מָה שְּׁלוֹמֵךְ?",
        "मैं शुक्रवार को मेज़ चाहता हूँ।",
        "ฉันต้องการจองโต๊ะ",
        "テーブルを予約したいのですが。",
    ],
)
def test_what_was_heard_of_a_reply_is_cut_between_characters_of_any_script(text: str) -> None:
    words = list(written(text))
    for heard in range(len(words) + 1):
        cut = cut_at(zip(words, range(1, len(words) + 1), strict=True), heard)
        assert text.startswith(cut) and len(words) > 1
        rest = text[len(cut) :].lstrip()
        assert not rest or unicodedata.category(rest[0])[0] != "M", "a mark stays on its letter"
