"""Nobody is asked whether they are there, or bidden goodbye, while a tool of ours works for them. In virtual time."""

import pytest

from tests.support.scenario import Does, Recording, Says, play
from tests.support.tools import ASKED, BOOKED, LATE, SPEAKS, Slow, Uses, scenario
from voicepipe.conversation.events import ReplyText

pytestmark = pytest.mark.virtual_time

QUESTION, GOODBYE = "Are you there?", "I hear nobody. Goodbye."

OKAY = Says(4000, 1000)
"""It cuts the reply that waits for the tool."""


def agent(*texts: str, **more: object) -> dict[str, object]:
    tool = {"name": "book", "function": "m:f", "while_running": texts}
    return {"tools": [tool], "acknowledgement": "", "no_input": [QUESTION, GOODBYE], **more}


REPLIES = {ASKED: "call:book {}", "okay": "I am on it.", BOOKED: "It is booked."}


def said(recording: Recording) -> list[str]:
    """What the caller heard to its end, in order."""
    begins = "agent (completed): "
    return [line.removeprefix(begins).strip() for line in recording.story if line.startswith(begins)]


async def test_who_waits_for_a_tool_is_asked_for_nothing_until_they_were_told() -> None:
    uses = Uses(30.0)
    recording = await play(
        scenario(hears=[ASKED, "okay"], says=[SPEAKS, OKAY], replies=REPLIES, agent=agent(), length_ms=45_000), uses
    )
    assert "reply cancelled turn_detected" in recording.story
    assert said(recording) == ["I am on it.", "It is booked.", QUESTION]
    assert uses.names == uses.done == ["book {}"]
    told, asked = (next(at for at, event in recording.events if isinstance(event, ReplyText) and event.delta.startswith(
        text)) for text in ("It is", "Are"))  # fmt: skip
    assert asked - told > 8000, "their silence begins when they were told"


async def test_the_tool_s_texts_go_on_after_the_reply_that_waited_was_cut() -> None:
    uses = Uses(30.0)
    talks = agent("I am looking.", "Still looking.")
    recording = await play(
        scenario(hears=[ASKED, "okay"], says=[SPEAKS, OKAY], replies=REPLIES, agent=talks, length_ms=35_000), uses
    )
    assert said(recording)[0] == "I am on it." and said(recording)[-1] == "It is booked."
    between = said(recording)[1:-1]
    assert 4 <= len(between) <= 7 and set(between) == {"Still looking."}
    ends = max(at for at, event in recording.events if isinstance(event, ReplyText) and event.delta.startswith("Still"))
    assert ends < 32_000, "none begins once the result is there"


async def test_a_client_that_wants_no_sound_or_asks_itself_hears_no_such_texts() -> None:
    for settings in ({"modality": "text"}, {"create_response": False}):
        uses = Uses(15.0)
        recording = await play(
            scenario(agent=agent("Looking."), settings=settings, does=[Does(2300, "respond"), Does(2800, "cancel")],
                     replies=REPLIES, length_ms=20_000), uses
        )  # fmt: skip
        assert uses.names == ["book {}"] and not {"Looking.", QUESTION} & set(said(recording))


async def test_what_comes_of_a_tool_during_the_goodbye_is_told_before_the_call_ends() -> None:
    goodbye = "I cannot hear you, so I will say goodbye now, and thank you very much for having called us tonight."
    replies = REPLIES | {f"Error: {LATE}": "I do not know."}
    leaves = agent(no_input=[QUESTION, goodbye], no_input_ms=4000)
    recording = await play(scenario(agent=leaves, replies=replies, length_ms=60_000), Slow(15.0))
    assert said(recording) == ["I do not know.", QUESTION, goodbye, "It is booked."]
    assert recording.story[-2:] == ["reply completed", "ended: no_input"]


@pytest.mark.parametrize("texts", [(), ("I am looking.",)])
async def test_the_model_does_not_hang_up_on_who_has_not_been_told(texts: tuple[str, ...]) -> None:
    replies = REPLIES | {"okay": "Goodbye. call:end_call {}"}
    leaves = agent(*texts, end_call=True)
    recording = await play(
        scenario(hears=[ASKED, "okay"], says=[SPEAKS, OKAY], replies=replies, agent=leaves, length_ms=60_000),
        Uses(12.0),
    )
    heard = [text for text in said(recording) if "looking" not in text]
    assert heard == ["Goodbye.", "It is booked.", QUESTION, GOODBYE]
    assert recording.story[-1] == "ended: no_input"
