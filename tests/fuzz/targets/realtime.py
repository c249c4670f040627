"""Events of the Realtime protocol: one message, and whole calls whose client says odd things in odd order."""

import asyncio
import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Any

from tests.fuzz.target import Target
from tests.support import virtual_time
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.agent import Agent, Tool
from voicepipe.call.call import Call
from voicepipe.call.call_context import CallServices
from voicepipe.call_api import CallControl, HookRun, Observer
from voicepipe.call_settings import CallSettings
from voicepipe.config import Config, LimitsConfig
from voicepipe.engines.base import Delta, Engines, ToolCall
from voicepipe.ingress.hosted_call import HostedCall
from voicepipe.ingress.realtime import client_events
from voicepipe.ingress.realtime.clients import RealtimeClients
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import Session
from voicepipe.ingress.socket_sender import Outbox
from voicepipe.ingress.wire_errors import WireError
from voicepipe.line import Line
from voicepipe.tools.progress import Tell

AGENT = Agent("fuzzed", greeting="Hello.", instructions="Be brief.", tools=(Tool("look"),), no_input=())
REPLIES: dict[str, Delta | Sequence[Delta]] = {
    "look": (ToolCall("c1", "look", "{}"), ToolCall("c2", "there is none", "[")),
    "hi": "One. Two, three. Four!",
}
MOST_MESSAGES = 20
MOST_VIRTUAL_S = 2.5
"""That an input may wait in all, so that no input is slow because its call is long."""
LASTS_S = 120.0
"""Virtual seconds in which a call is over whose client is gone."""
LOUD = b"\x00\x40\x00\xc0"


def _events() -> dict[str, dict[str, Any]]:
    """An event of each kind, with all that it may say."""
    turn_detection = {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 200, "idle_timeout_ms": 5000}
    tool = {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}}
    audio = {
        "input": {"format": {"type": "audio/pcmu"}, "turn_detection": turn_detection, "transcription": {"model": "a"}},
        "output": {"format": {"type": "audio/pcma"}, "voice": "scripted", "speed": 1.5},
    }
    session = {"type": "realtime", "instructions": "Rhyme.", "output_modalities": ["audio"], "audio": audio,
               "tools": [tool], "tool_choice": {"type": "function", "name": "a"}, "max_output_tokens": 9}  # fmt: skip
    message = {"type": "message", "id": "a", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
    called = {"type": "function_call", "id": "b", "name": "look", "arguments": "{}", "call_id": "c1"}
    output = {"type": "function_call_output", "id": "c", "call_id": "c1", "output": "done"}
    heard = {"type": "message", "role": "assistant", "content": [{"type": "output_audio", "transcript": "I say"}]}
    response = {"instructions": "Sing.", "output_modalities": ["text"], "conversation": "none", "metadata": {"a": "b"},
                "input": [{"type": "item_reference", "id": "a"}, message], "tools": [tool], "tool_choice": "required",
                "max_output_tokens": "inf", "audio": {"output": {"voice": {"id": "scripted"}}}}  # fmt: skip
    look = [{"type": "input_text", "text": "look"}]
    semantic = {"turn_detection": {"type": "semantic_vad"}}
    sound = base64.b64encode(LOUD * 2400).decode()
    return {
        "update": {"type": "session.update", "session": session},
        "unset": {"type": "session.update", "session": {"audio": {"input": {"turn_detection": None}}}},
        "semantic": {"type": "session.update", "session": {"audio": {"input": semantic}}},
        "loud": {"type": "input_audio_buffer.append", "audio": sound},
        "quiet": {"type": "input_audio_buffer.append", "audio": base64.b64encode(bytes(9600)).decode()},
        "commit": {"type": "input_audio_buffer.commit", "event_id": "mine"},
        "clear": {"type": "input_audio_buffer.clear"},
        "output_clear": {"type": "output_audio_buffer.clear"},
        "message": {"type": "conversation.item.create", "item": message, "previous_item_id": "root"},
        "say": {"type": "conversation.item.create", "item": {**message, "id": None}},
        "look": {"type": "conversation.item.create", "item": {**message, "content": look}},
        "called": {"type": "conversation.item.create", "item": called, "previous_item_id": "a"},
        "output": {"type": "conversation.item.create", "item": output},
        "heard": {"type": "conversation.item.create", "item": heard},
        "retrieve": {"type": "conversation.item.retrieve", "item_id": "$ITEM"},
        "truncate": {"type": "conversation.item.truncate", "item_id": "$ITEM", "content_index": 0, "audio_end_ms": 300},
        "delete": {"type": "conversation.item.delete", "item_id": "$ITEM"},
        "respond": {"type": "response.create"},
        "respond_as": {"type": "response.create", "response": response},
        "cancel": {"type": "response.cancel"},
        "cancel_this": {"type": "response.cancel", "response_id": "$RESPONSE"},
    }  # fmt: skip


EVENTS = {name: json.dumps(event).encode() for name, event in _events().items()}
STORIES = (
    "say respond ~700 truncate cancel ~300 respond ~2000",
    "unset loud loud commit ~100 respond ~50 output_clear ~500 retrieve delete",
    "loud loud quiet quiet quiet quiet ~900 loud loud quiet quiet ~1500",
    "update look respond ~200 output respond ~900 respond_as ~400 cancel_this",
    "semantic loud quiet loud clear ~300 message called output heard respond ~1000",
    "respond respond cancel cancel respond ~30 cancel respond ~3000 truncate truncate delete",
)
"""Events by name; ~N lets N ms pass."""


def _story(names: Iterable[str]) -> bytes:
    return b"\n".join(name.encode() if name[0] == "~" else EVENTS[name] for name in names)


def _seeds() -> list[bytes]:
    return [_story(story.split()) for story in STORIES]


def _any_order(random: Random) -> bytes:
    pauses = ["~0", "~10", "~100", "~1000"]
    return _story(random.choice([*EVENTS, *pauses]) for _ in range(random.randint(1, 30)))


def decode(data: bytes) -> None:
    """What each message means, in bytes and as text."""
    for raw in (data, data.decode(errors="surrogatepass") if data.isascii() else data):
        for most in (1 << 20, 64):
            try:
                client_events.decode(raw, most)
            except WireError as error:
                assert error.message
                client_events.event_id(raw, most)


class _Seat:
    """A place for one call with scripted engines, on the loop's own clock."""

    owner = "local"
    call_id = "rtc_fuzz"

    def hook_has_run(self, run: HookRun) -> None:
        """It keeps no records."""

    def ended(self, reason: str) -> None:
        """The call is over."""

    def open(self, line: Line, settings: CallSettings, observer: Observer) -> CallControl:
        engines = Engines(ScriptedVad(), ScriptedAsr(("hi", "look")), ScriptedLlm(REPLIES, 20, 5), ScriptedTts())
        clock = asyncio.get_running_loop().time
        return Call(self.call_id, line, settings, engines, Config(), CallServices(_tool), observer, clock)


def _tool(tool: Tool, call: ToolCall, about: Mapping[str, Any], key: str, tell: Tell) -> "asyncio.Task[str]":
    async def use() -> str:
        await asyncio.sleep(0.2)
        return "looked"

    return asyncio.ensure_future(use())


async def _converse(messages: list[bytes]) -> None:
    clock = asyncio.get_running_loop().time
    settings = CallSettings.of(AGENT)
    session = Session.of(settings, id="sess_fuzz")
    line = WebSocketLine(session.audio.input.format, session.audio.output.format, clock)
    call = HostedCall(line, _Seat(), settings, LimitsConfig())
    clients = RealtimeClients(call, session)
    outbox = clients.join(lambda: call.end("caller"))
    running = asyncio.ensure_future(call.run())
    await call.running.wait()
    told: list[bytes] = []
    waited = 0.0
    for message in messages[:MOST_MESSAGES]:
        if pause := re.fullmatch(rb"~(\d{1,4})", message):
            seconds = min(int(pause[1]) / 1000, MOST_VIRTUAL_S - waited)
            waited += seconds
            await asyncio.sleep(seconds)
        else:
            await clients.handle(_named(message, told), clock(), outbox)
            await asyncio.sleep(0)
        _take(outbox, told)
    call.end("caller")
    async with asyncio.timeout(LASTS_S):
        await running
    _take(outbox, told)
    assert call.reason == "caller", f"the call ended with {call.reason!r}"
    assert not [message for message in told if b'"server_error"' in message], "the server failed on an event"
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        await asyncio.wait(left, timeout=LASTS_S)  # tools are finished beside the call
    assert not asyncio.all_tasks() - {asyncio.current_task()}, "tasks stay behind"


def _take(outbox: Outbox, told: list[bytes]) -> None:
    """What the client was told, as its socket would take it."""
    while outbox._messages:
        told.append(outbox._messages.popleft())
    outbox._bytes = 0


def _named(message: bytes, told: list[bytes]) -> bytes:
    """With the last item's and the last response's id, which a client knows from what it was told."""
    for word, pattern in ((b"$ITEM", rb'"item_id":"([^"]+)"'), (b"$RESPONSE", rb'"response_id":"([^"]+)"')):
        if word in message:
            known = next((found[1] for event in reversed(told) if (found := re.search(pattern, event))), b"none")
            message = message.replace(word, known)
    return message


def converse(data: bytes) -> None:
    """A whole call in virtual time: a message a line."""
    virtual_time.run(_converse(data.split(b"\n")))


WORDS = tuple(
    b'"type" null "audio" "item" $ITEM $RESPONSE "root" "" {} [] "none" "inf" ~0 ~50 ~1500 -1 9e303 9e-310 true'.split()
)
TARGETS = (
    Target(
        "realtime-message", "one event of a client", decode, lambda: list(EVENTS.values()), words=WORDS, largest=32_768
    ),
    Target(
        "realtime-call",
        "a whole call and its client's events",
        converse,
        _seeds,
        _any_order,
        WORDS,
        share=0.2,
        largest=16_384,
    ),
)
