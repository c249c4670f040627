"""Conversation items on the wire, both ways."""

import msgspec
import pytest

from voicepipe.conversation.events import Item
from voicepipe.ingress.realtime.items import ItemIn, content_part, fresh_id, item_of, wire_item
from voicepipe.ingress.wire_errors import WireError


def read(text: str) -> Item:
    return item_of(msgspec.json.decode(text, type=ItemIn))


def told(item: Item, audio: bool | None = None) -> dict[str, object]:
    said = msgspec.to_builtins(wire_item(item, audio=audio))
    assert said.pop("object") == "realtime.item"
    return dict(said)


def test_a_message_is_its_parts_a_line_each_and_audio_counts_by_its_transcript() -> None:
    item = read(
        '{"type":"message","id":"item_1","role":"user","content":[{"type":"input_text","text":"When are"},'
        '{"type":"input_audio","transcript":"you open?","text":"no"}]}'
    )
    assert item == Item("item_1", role="user", text="When are\nyou open?")


def test_a_call_of_a_tool_and_its_output() -> None:
    call = read('{"type":"function_call","id":"i","name":"look","arguments":"{}","call_id":"c"}')
    assert call == Item("i", "function_call", "assistant", name="look", arguments="{}", call_id="c")
    output = read('{"type":"function_call_output","id":"o","call_id":"c","output":"noon"}')
    assert output == Item("o", "function_call_output", "user", call_id="c", output="noon")


def test_what_has_no_id_gets_one() -> None:
    texts = ['{"type":"function_call","name":"look","arguments":"{}"}'] * 2
    first, second = map(read, texts)
    assert first.id.startswith("item_") and first.call_id.startswith("call_")
    assert first.id != second.id and first.call_id != second.call_id
    assert len({fresh_id("x") for _ in range(100)}) == 100


@pytest.mark.parametrize(
    ("text", "code", "param"),
    [
        ('{"type":"message","role":"user","content":[{"type":"input_audio"}]}', "invalid_value",
         "item.content[0].transcript"),
        ('{"type":"message","role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text"}]}',
         "missing_required_parameter", "item.content[1].text"),
        ('{"type":"item_reference","id":"item_1"}', "invalid_value", "item.type"),
    ],
)  # fmt: skip
def test_what_cannot_be_understood_names_its_place(text: str, code: str, param: str) -> None:
    with pytest.raises(WireError) as caught:
        read(text)
    assert (caught.value.code, caught.value.param) == (code, param)


@pytest.mark.parametrize(
    ("item", "part"),
    [
        (Item("i", role="user", text="hello"), {"type": "input_text", "text": "hello"}),
        (Item("i", role="user", text="hello", audio_ms=400), {"type": "input_audio", "transcript": "hello"}),
        (Item("i", role="assistant", text="hello"), {"type": "output_text", "text": "hello"}),
        (Item("i", role="assistant", text="", audio_ms=0), {"type": "output_audio", "transcript": ""}),
        (Item("i", role="system", text="be kind"), {"type": "input_text", "text": "be kind"}),
    ],
)
def test_a_message_has_one_part_by_its_side_and_its_kind(item: Item, part: dict[str, str]) -> None:
    said = told(item)
    assert said["content"] == [part] and (said["type"], said["role"]) == ("message", item.role)


def test_the_response_knows_better_than_the_item_whether_it_is_speech() -> None:
    item = Item("i", role="assistant", text="hello")
    assert told(item, audio=True)["content"] == [{"type": "output_audio", "transcript": "hello"}]
    assert content_part(item, audio=False).type == "text" and content_part(item, audio=True).type == "audio"


def test_of_a_message_in_progress_nothing_is_told_yet() -> None:
    assert told(Item("i", role="assistant", text="hel", status="in_progress"))["content"] == []


def test_tools_are_told_as_they_were_read() -> None:
    call = Item("i", "function_call", "assistant", name="look", arguments='{"a":1}', call_id="c")
    assert told(call) == {"type": "function_call", "id": "i", "status": "completed", "name": "look", "call_id": "c",
                          "arguments": '{"a":1}'}  # fmt: skip
    output = Item("o", "function_call_output", "user", call_id="c", output="noon")
    assert told(output) == {
        "type": "function_call_output", "id": "o", "status": "completed", "call_id": "c", "output": "noon",
    }  # fmt: skip


def test_a_snapshot_does_not_go_on_changing() -> None:
    item = Item("i", role="assistant", text="hel")
    snapshot = wire_item(item)
    item.text += "lo"
    assert msgspec.to_builtins(snapshot)["content"] == [{"type": "output_text", "text": "hel"}]
