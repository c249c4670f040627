"""Who follows a call: nobody, clients from its beginning, and clients that join in the middle of a reply."""

from typing import Any

import msgspec

from tests.ingress.fake_pop import FakePop
from voicepipe.call_settings import CallSettings
from voicepipe.conversation.events import (
    CallEvent,
    Item,
    ItemDeleted,
    ReplyDone,
    ReplyItemAdded,
    ReplyItemDone,
    ReplyStarted,
    ReplyText,
)
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat, Session
from voicepipe.ingress.socket_sender import Outbox

Happens = tuple[CallEvent | float, ...]
"""Events, and milliseconds of sound that is sent."""


def spoken(number: int, **details: Any) -> tuple[CallEvent | float, ...]:
    """A reply: a message and a tool call."""
    reply, said = f"resp_{number}", Item(f"item_{number}", role="assistant", text="We open at nine.", audio_ms=60)
    tool = Item(f"call_{number}", "function_call", "assistant", name="look", arguments="{}", call_id="c")
    return (
        ReplyStarted(reply, f"turn_{number}", **details), ReplyItemAdded(reply, said, "before"), 20.0,
        ReplyText(reply, said.id, "We open "), 40.0, ReplyText(reply, said.id, "at nine."), ReplyItemDone(reply, said),
        ReplyItemAdded(reply, tool, said.id), ReplyItemDone(reply, tool),
        ReplyDone(reply, "completed", items=(said, tool)),
    )  # fmt: skip


def hosted() -> tuple[HostedCall, Session]:
    pop = FakePop()
    settings = CallSettings.of(pop.agent(None))
    call = HostedCall(WebSocketLine(PcmFormat(), PcmFormat()), pop, settings, pop.config.limits)
    return call, Session.of(settings, id="sess_1")


def happen(call: HostedCall, happens: Happens) -> None:
    for one in happens:
        if isinstance(one, float):
            call._on_audio(b"", one)
        else:
            call._on_event(one)


async def told(outbox: Outbox) -> list[dict[str, Any]]:
    """What a client was told, but for the ids that its convention makes up. Its call is over."""
    events = []
    while (message := await outbox.get()) is not None:
        event = msgspec.json.decode(message)
        del event["event_id"]
        event.get("response", {}).pop("conversation_id", None)
        events.append(event)
    return events


async def test_what_was_sent_of_an_item_is_known_to_who_joins_later() -> None:
    call, _ = hosted()
    happen(call, spoken(1))
    assert call.sent_ms("item_1") == 60 and not call.sent_ms("call_1")
    call._on_audio(b"", 20)
    assert call.sent_ms("item_1") == 60, "it belongs to no item"
    happen(call, (ItemDeleted("item_1"),))
    assert not call.sent_ms("item_1")
    call.close()


async def test_the_pop_is_told_why_its_door_ended_a_call() -> None:
    pop = FakePop()
    for reason, told in (("max_length", "max_length"), ("", "not_begun")):
        call = HostedCall(
            WebSocketLine(PcmFormat(), PcmFormat()), pop, CallSettings.of(pop.agent(None)), pop.config.limits
        )
        if reason:
            call.end(reason)
        call.close()
        call.close()
        assert pop.ends == [told]
        pop.ends.clear()
