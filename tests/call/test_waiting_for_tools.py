"""What a caller hears who waits for a tool of ours: the texts that it has for that. In virtual time."""

import pytest

from tests.support.scenario import Presses, Recording, Says, play
from tests.support.tools import ASKED, BOOKED, SPEAKS, TOLD, Uses, scenario
from voicepipe.conversation.events import ReplyDone

pytestmark = pytest.mark.virtual_time


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
