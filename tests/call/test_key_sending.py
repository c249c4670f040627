"""Keys that the model presses for another system's menu. In virtual time."""

import asyncio
from typing import Any

import pytest

from tests.support.scenario import Delays, Does, Recording, Says, Scenario, play
from tests.support.tools import last_prompt
from voicepipe.call.call import Call
from voicepipe.conversation.events import ReplyDone, ToolUse

pytestmark = pytest.mark.virtual_time

MENU = "press one for sales or two for service"
PRESS = 'call:send_keys {"keys": "1w2#"}'


def menu(replies: dict[str, str], hears: list[str] | None = None, **changes: Any) -> Scenario:
    told: dict[str, Any] = {
        "about": "",
        "hears": hears or [MENU],
        "says": [Says(500, 1600)],
        "length_ms": 12_000,
    } | changes
    return Scenario(**told, takes_keys=True, agent={"send_keys": True}, replies=replies)


def pressed(recording: Recording) -> str:
    return "".join(key for _, key in recording.line.pressed)


def uses(recording: Recording) -> list[tuple[ToolUse, ...]]:
    return [event.tools for _, event in recording.events if isinstance(event, ReplyDone)]


async def test_keys_follow_the_words_before_them_and_keep_their_pauses() -> None:
    recording = await play(menu({MENU: f"I press one. {PRESS}", "sent": ""}))
    ends_ms = recording.silent(recording.audible(0) or 0)
    times = [at for at, _ in recording.line.pressed]
    assert pressed(recording) == "1w2#" and times[0] - 240 >= ends_ms - 20
    assert [round(b - a) for a, b in zip(times, times[1:], strict=False)] == [500, 240, 240]


async def test_a_model_that_has_nothing_to_say_after_keys_says_nothing() -> None:
    recording = await play(menu({MENU: PRESS, "sent": ""}))
    assert last_prompt(recording) == [f"user: {MENU}", "calls send_keys", "tool: sent"]
    assert recording.audible(0) is None and recording.story.count("reply completed") == 2
    assert recording.story[-1] == "ended: caller"


async def test_what_came_of_keys_is_shown_with_the_next_reply() -> None:
    first, second = uses(await play(menu({MENU: PRESS, "sent": ""})))
    assert first == ()
    [use] = second
    assert (use.name, use.failed, use.arguments, use.result) == ("send_keys", False, '{"keys": "1w2#"}', "sent")
    assert use.took == pytest.approx(1220, abs=20)


async def test_nobody_is_told_to_wait_for_an_answer_that_may_be_silence() -> None:
    scenario = menu({MENU: PRESS, "sent": "Here I am."}, delays=Delays(first_token_ms=1500))
    story = (await play(scenario)).story
    said = [line for line in story if line.startswith("agent")]
    assert said == ["agent (completed): One moment. ", "agent (completed): Here I am."], "before the keys alone"


async def test_the_model_may_go_on_in_words() -> None:
    recording = await play(menu({MENU: PRESS, "sent": "I am waiting."}))
    assert "agent (completed): I am waiting." in recording.story


async def test_a_model_need_not_answer_while_a_menu_talks_on() -> None:
    hears = [MENU, "thank you please hold the line"]
    says = [Says(500, 1600), Says(6000, 1400)]
    recording = await play(menu({MENU: PRESS, "sent": "", hears[1]: ""}, hears, says=says))
    assert f"user: {hears[1]}" in recording.story and recording.audible(0) is None


async def test_an_answer_without_words_is_an_error_where_no_keys_were_pressed() -> None:
    recording = await play(menu({MENU: ""}))
    assert any(line.startswith("agent (completed): Sorry") for line in recording.story)


async def test_who_interrupts_the_words_before_keys_stops_the_keys() -> None:
    hears = [MENU, "no wait i am a person"]
    says = [Says(500, 1600), Says(3200, 1600)]
    words = "I take the first entry of this menu, since it sounds right to me. "
    recording = await play(menu({MENU: words + PRESS}, hears, says=says))
    assert pressed(recording) == ""
    assert last_prompt(recording)[-2:] == [
        "tool: Error: not sent: the other side interrupted what you said before", f"user: {hears[1]}",
    ]  # fmt: skip
    [use] = [use for tools in uses(recording) for use in tools]
    assert use.failed


async def test_a_menu_that_talks_on_does_not_stop_keys_and_is_answered_after_them() -> None:
    hears = [MENU, "now enter your number"]
    keys = 'call:send_keys {"keys": "1WWWW2"}'
    says = [Says(500, 1600), Says(3500, 1400)]
    recording = await play(menu({MENU: keys, hears[1]: ""}, hears, says=says, length_ms=14_000))
    assert pressed(recording) == "1WWWW2"
    assert last_prompt(recording) == [f"user: {MENU}", "calls send_keys", "tool: sent", f"user: {hears[1]}"]
    assert recording.audible(0) is None


async def test_a_program_that_wants_silence_stops_keys() -> None:
    keys = 'call:send_keys {"keys": "1WWWW2"}'
    recording = await play(menu({MENU: keys}, does=[Does(5000, "cancel")]))
    assert pressed(recording).startswith("1W") and not pressed(recording).endswith("2") and recording.refused == []
    left = "1WWWW2".removeprefix(pressed(recording))
    assert (
        last_prompt(recording)[-1] == f'tool: Error: interrupted: "{pressed(recording)}" was sent, and "{left}" was not'
    )


async def test_keys_that_are_none_are_refused_at_once() -> None:
    replies = {MENU: 'call:send_keys {"keys": "one"}'}
    recording = await play(menu(replies))
    assert pressed(recording) == "" and "`keys` must be a text of 1 to 32 of" in last_prompt(recording)[2]


async def test_keys_beside_another_tool_are_not_sent() -> None:
    twice = 'call:send_keys {"keys": "1"} call:send_keys {"keys": "2"}'
    recording = await play(menu({MENU: twice}))
    assert pressed(recording) == ""
    assert last_prompt(recording)[-1] == (
        "tool: Error: not sent, since other tools were called with it: call send_keys alone, once, with all keys"
    )


async def test_a_menu_that_repeats_itself_is_left(caplog: pytest.LogCaptureFixture) -> None:
    hears = ["for sales press one for service press two", "for sales press 1. for service, press 2.",
             "sorry that is no choice for sails press one for service press two"]  # fmt: skip
    replies = dict.fromkeys(hears, 'call:send_keys {"keys": "2"}') | {"sent": ""}
    says = [Says(500, 1800), Says(6000, 1800), Says(12_000, 3000)]
    recording = await play(menu(replies, hears, says=says, length_ms=20_000))
    assert pressed(recording) == "22" and "the menu has said the same 3 times" in caplog.text
    assert "say that you cannot go on" in last_prompt(recording)[-1]


async def test_a_model_that_presses_on_by_itself_is_stopped() -> None:
    press = 'call:send_keys {"keys": "9"}'
    recording = await play(menu({MENU: press, "sent": press}, length_ms=20_000))
    assert pressed(recording) == "999"
    assert "the other side has said nothing since the last keys" in last_prompt(recording)[-1]


async def test_a_browser_is_sent_no_keys() -> None:
    recording = await play(Scenario("", [MENU], [Says(500, 1600)], 6000, agent={"send_keys": True}))
    assert [tool.name for tool in recording.llm.prompts[-1].tools] == []


async def test_a_call_that_ends_meanwhile_ends() -> None:
    async def hangs_up(call: Call) -> None:
        await asyncio.sleep(4)
        await call.hang_up("agent")

    recording = await play(menu({MENU: 'call:send_keys {"keys": "1WWWWWWWW2"}'}), asks=hangs_up)
    assert recording.story[-1] == "ended: agent" and not pressed(recording).endswith("2")
