"""A client commits the caller's sound and asks for a reply before its words are recognised: in virtual time."""

import asyncio
from typing import Any

import pytest

from tests.support.scenario import Delays, Recording, Says, Scenario, TellingAsr, play
from tests.support.scripted import ScriptedAsrStream
from voicepipe.base.errors import ItemUnknown, ReplyActive
from voicepipe.call.call import Call
from voicepipe.call_api import ReplyRequest
from voicepipe.conversation.events import ReplyDone, ReplyStarted

pytestmark = pytest.mark.virtual_time

SLOW = Delays(settle_ms=2000)
PUSHED = Scenario(about="A client that ends turns itself.", hears=["hello there"], says=[Says(500, 500)],
                  length_ms=6000, settings={"turn_detection": "none"}, delays=SLOW)  # fmt: skip


def replies(recording: Recording) -> list[str]:
    """What became of each that began."""
    assert sum(isinstance(event, ReplyStarted) for _, event in recording.events) == sum(
        isinstance(event, ReplyDone) for _, event in recording.events
    )
    return [event.status for _, event in recording.events if isinstance(event, ReplyDone)]


async def test_a_call_that_ends_as_its_sound_is_committed_leaves_no_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever would have asked for the words never runs: the recogniser would keep a decoder, or a slot, for ever."""
    streams: list[ScriptedAsrStream] = []
    make = TellingAsr.stream

    def stream(*args: Any, **options: Any) -> ScriptedAsrStream:
        streams.append(make(*args, **options))
        return streams[-1]

    async def commits_and_ends(call: Call) -> None:
        await asyncio.sleep(0.8)
        call.commit_input()
        call._tasks.cancel()

    monkeypatch.setattr(TellingAsr, "stream", stream)
    await play(PUSHED, asks=commits_and_ends)
    assert [stream._over for stream in streams] == [True]


async def test_one_reply_is_asked_for_at_a_time() -> None:
    async def asks_twice(call: Call) -> None:
        await asyncio.sleep(1.2)
        call.commit_input()
        call.respond(ReplyRequest())
        with pytest.raises(ReplyActive):
            call.respond(ReplyRequest())

    recording = await play(PUSHED, asks=asks_twice)
    assert replies(recording) == ["completed"]
    assert [message.text for message in recording.llm.prompts[-1].messages] == ["hello there"]


async def test_a_reply_that_waits_for_the_words_can_be_cancelled() -> None:
    async def changes_its_mind(call: Call) -> None:
        await asyncio.sleep(1.2)
        call.commit_input()
        call.respond(ReplyRequest())
        call.cancel_reply(None)

    recording = await play(PUSHED, asks=changes_its_mind)
    assert replies(recording) == [] and "user: hello there" in recording.story


async def test_and_another_may_then_be_asked_for() -> None:
    async def asks_again(call: Call) -> None:
        await asyncio.sleep(1.2)
        call.commit_input()
        call.respond(ReplyRequest())
        call.cancel_reply(None)
        call.respond(ReplyRequest())

    assert replies(await play(PUSHED, asks=asks_again)) == ["completed"]


async def test_a_short_answer_behind_a_greeting_that_the_client_ended_is_a_turn() -> None:
    """Nothing sounds that it could be over: the greeting was ended, and the reply waits for the words."""
    greeted = Scenario(
        about="", hears=["hello there", "yes"], says=[Says(1000, 200)], length_ms=9000, delays=SLOW,
        agent={"greeting": "Good day. This is a greeting that lasts for quite some seconds, as some people like it."},
    )  # fmt: skip

    async def asks(call: Call) -> None:
        await asyncio.sleep(0.3)
        call.commit_input()
        call.respond(ReplyRequest())

    recording = await play(greeted, asks=asks)
    assert "user: yes" in recording.story


async def test_a_reply_whose_item_the_client_has_deleted_is_not_cut_by_an_attempt_to_truncate_it() -> None:
    spoken = Scenario(about="", hears=["hello there"], says=[Says(500, 500)], length_ms=9000)

    async def truncates(call: Call) -> None:
        while not (said := [item for item in call.items() if item.role == "assistant"]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        call.delete_item(said[0].id)
        with pytest.raises(ItemUnknown):
            call.truncate(said[0].id, 0)

    assert replies(await play(spoken, asks=truncates)) == ["completed"]
