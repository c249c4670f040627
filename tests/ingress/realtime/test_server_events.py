"""What we say has the names and fields of OpenAI's SDK."""

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest
from openai.types.realtime import RealtimeServerEvent
from pydantic import BaseModel

from voicepipe.ingress.realtime import server_events as wire
from voicepipe.ingress.realtime.server_events import ErrorEvent, InContent, InItem, ServerEvent
from voicepipe.ingress.wire_errors import LONGEST, WireError

THEIRS: dict[str, type[BaseModel]] = {
    name: model
    for model in get_args(get_args(RealtimeServerEvent)[0])
    if issubclass(model, BaseModel)
    for name in get_args(model.model_fields["type"].annotation)
}


def ours(base: type[ServerEvent] = ServerEvent) -> Iterator[type[ServerEvent]]:
    for kind in base.__subclasses__():
        yield from ours(kind)
        if kind not in (InItem, InContent):
            yield kind


@pytest.mark.parametrize("kind", list(ours()), ids=lambda kind: kind.__name__)
def test_an_event_has_the_name_and_fields_of_theirs(kind: type[ServerEvent]) -> None:
    theirs = THEIRS[str(kind.__struct_config__.tag)]
    named = {field.encode_name for field in msgspec.structs.fields(kind)}
    assert named - {"event_id"} <= theirs.model_fields.keys(), "each of ours is numbered"
    needed = {name for name, field in theirs.model_fields.items() if field.is_required()} - {"type"}
    assert needed <= named


def body(error: WireError, event_id: str | None = None) -> dict[str, Any]:
    said = msgspec.json.decode(wire.encode(ErrorEvent.of(error, event_id)))
    assert (said["type"], said["event_id"]) == ("error", "")
    return dict(said["error"])


def test_an_error_names_the_clients_event() -> None:
    assert body(WireError("invalid_value", "No.", "item.id"), "evt_1") == {
        "type": "invalid_request_error", "code": "invalid_value", "message": "No.", "param": "item.id",
        "event_id": "evt_1",
    }  # fmt: skip
    assert body(WireError("server_error", "Oh.", kind="server_error"))["event_id"] is None


def test_an_absurdly_long_id_does_not_come_back() -> None:
    error = WireError("invalid_value", "No.")
    assert body(error, "x" * LONGEST)["event_id"] == "x" * LONGEST
    assert body(error, "x" * (LONGEST + 1))["event_id"] is body(error, "")["event_id"] is None


def test_sound_travels_in_base64() -> None:
    event = wire.AudioDelta(response_id="r", item_id="i", output_index=0, delta=b"\0\xff")
    assert msgspec.json.decode(wire.encode(event))["delta"] == "AP8="
