"""What a caller hears who waits for a tool of ours: its texts, and neither a question whether they are there nor a
goodbye. In virtual time."""

import pytest

from tests.support.scenario import Does, Presses, Recording, Says, play
from tests.support.tools import ASKED, BOOKED, LATE, SPEAKS, TOLD, Slow, Uses, scenario
from voicepipe.conversation.events import ReplyDone, ReplyText

pytestmark = pytest.mark.virtual_time


# --- the tool's texts

TALKING = {
    "acknowledgement": "",
    "tools": [{"name": "book", "function": "m:f", "while_running": ["I am looking.", "Still looking."],
               "while_running_every_ms": 1500}],
}  # fmt: skip


def heard(recording: Recording) -> list[tuple[float, float]]:
    """When the caller heard something: from, to, in ms; silences above 100 ms divide."""
    spans: list[tuple[float, float]] = []
    for at, level in recording.line.sent:
        if level > -45:
            if spans and at - spans[-1][1] <= 100:
                spans[-1] = (spans[-1][0], at + 20)
            else:
                spans.append((at, at + 20))
    return spans


async def test_a_tool_that_takes_two_seconds_does_not_leave_the_caller_in_silence() -> None:
    uses = Uses(2.0)
    recording = await play(scenario(agent=TALKING), uses)
    (begin, looking), (answer, _) = heard(recording)
    assert 700 <= begin - 1900 < 800, "of the caller's own silence"
    assert answer > looking, "the result follows"
    assert "agent (completed): I am looking. It is booked." in recording.story
    record = next(event.record for _, event in recording.events if isinstance(event, ReplyDone))
    assert record.playout and record.playout > 1900, "a stand-in is not the answer"


async def test_the_texts_follow_one_another_and_the_last_one_comes_again() -> None:
    recording = await play(scenario(agent=TALKING, length_ms=20_000), Uses(9.0))
    spans = heard(recording)
    gaps = [round(b[0] - a[1]) for a, b in zip(spans, spans[1:], strict=False)][:-1]
    assert len(spans) >= 4 and all(1490 <= gap <= 1560 for gap in gaps), gaps
    assert "I am looking. Still looking. Still looking. " in recording.story[-3]


async def test_also_where_the_turn_s_end_was_unsure() -> None:
    """It is committed after 850 ms; a tool that is done at once needs no words all the same."""
    late = {"turn_detection": "server", "silence_ms": 850}
    recording = await play(scenario(agent=TALKING, settings=late), Uses(2.0))
    assert 900 < heard(recording)[0][0] - 1900 < 1000
    recording = await play(scenario(agent=TALKING, settings=late), Uses(0.09))
    assert TOLD in recording.story


@pytest.mark.parametrize("takes_s", [0.4, 0.5, 0.6, 0.9, 1.2])
async def test_no_text_is_said_over_the_result_or_cut_by_it(takes_s: float) -> None:
    recording = await play(scenario(agent=TALKING), Uses(takes_s))
    said = "It is booked." if takes_s < 0.55 else "I am looking. It is booked."
    assert f"agent (completed): {said}" in recording.story
    assert "Still" not in "".join(recording.story)


async def test_no_text_is_said_over_what_the_model_said_before() -> None:
    replies = {ASKED: "Let me look into the book for you now. call:book {}", BOOKED: "It is booked."}
    recording = await play(scenario(agent=TALKING, replies=replies), Uses(5.0))
    spans = heard(recording)
    assert 700 <= spans[1][0] - spans[0][1] <= 760


async def test_no_text_is_said_while_the_caller_speaks() -> None:
    """The second text is due at 4.8 s, into a cough that holds the reply."""
    says = [SPEAKS, Says(4600, 400)]
    recording = await play(scenario(agent=TALKING, says=says, hears=[ASKED, ""]), Uses(5.0))
    assert "reply cancelled turn_detected" not in recording.story
    assert 5000 < heard(recording)[1][0] < 5500


async def test_a_text_reply_says_nothing_meanwhile() -> None:
    recording = await play(scenario(agent=TALKING, settings={"modality": "text"}), Uses(2.0))
    assert TOLD in recording.story


async def test_keys_while_a_text_is_said_end_it_and_not_the_tool() -> None:
    uses = Uses(4.0)
    agent = TALKING | {"keys": {"1": "hello"}}
    replies = {ASKED: "call:book {}", "hello": "Hello!", BOOKED: "It is booked."}
    recording = await play(scenario(agent=agent, replies=replies, keys=[Presses(3000, "1")]), uses)
    assert uses.names == uses.done == ["book {}"]
    told = [line for line in recording.story if line.startswith("agent (completed)")]
    assert told == ["agent (completed): Hello!", "agent (completed): Still looking.", TOLD]


# --- silence

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
    assert len(between) >= 4 and set(between) == {"Still looking."}
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
