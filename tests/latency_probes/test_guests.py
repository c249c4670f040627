"""Guests of the front desk: by their words alone, without sound, each gets what it wants of the agent that we ship."""

import json

import pytest

from latency_probes import clips
from latency_probes.guest_file import Guest, guests
from latency_probes.guests import Conversation, heard_back, question
from latency_probes.timeline import Event, Timeline
from tests.engines.llm.frontdesk.front_desk import FRONT_DESK, Caller, a_wednesday  # noqa: F401
from voicepipe.engines.llm.frontdesk.frontdesk_dialogue import FrontdeskDialogue

pytestmark = pytest.mark.usefixtures("a_wednesday")
BACK = "A table for 4, Friday at 7:30, for John Smith, telephone 5 5 5, 0 1 4 2. Is that right?"


@pytest.fixture(scope="module")
def desk() -> FrontdeskDialogue:
    return FrontdeskDialogue(FRONT_DESK)


def held(guest: Guest, caller: Caller) -> Conversation:
    """The whole conversation, in text."""
    line, conversation = Timeline(), Conversation(guest, "heart")
    replies, told = list[str](), 0
    while turn := conversation.next(replies, line):
        replies = [caller.say(turn.utterance.text)]
        if turn.over and turn.over.clip:
            replies.append(caller.say(turn.over.clip.text))
        results = [message.text for message in caller.messages if message.role == "tool"]
        for (name, arguments), result in list(zip(caller.calls, results, strict=True))[told:]:
            use = json.dumps({"name": name, "arguments": json.dumps(arguments), "result": result})
            line.add_event(
                Event("response.done", 0.0, {"response": {"id": "r", "metadata": {"voicepipe.tool.1": use}}})
            )
        told = len(results)
    conversation.end(line)
    return conversation


@pytest.mark.parametrize("guest", guests(), ids=lambda guest: guest.name)
def test_every_guest_gets_what_it_wants(desk: FrontdeskDialogue, guest: Guest) -> None:
    visit = held(guest, Caller(desk)).visit
    assert (visit.reached, visit.why_not, visit.impossible, visit.wrong_asides) == (True, "", [], [])


def test_an_agent_that_understands_nothing_is_left_after_a_while(desk: FrontdeskDialogue) -> None:
    conversation, turns = Conversation(guests()[0], "heart"), 0
    while conversation.next(["Sorry, I did not catch that."] if turns else [], Timeline()):
        turns += 1
    assert turns == 24 and conversation.visit.why_not.startswith("still talking after 24 turns")


def test_what_cannot_be_and_what_was_not_wanted_is_told(desk: FrontdeskDialogue) -> None:
    (guest,) = (guest for guest in guests() if guest.name == "comes on the closed day")
    line = Timeline()
    arguments = json.dumps({"people": 3, "day": "Monday", "time": "7 o'clock"})
    use = json.dumps({"name": "book_table", "arguments": arguments, "result": "It is booked."})
    line.add_event(Event("response.done", 0.0, {"response": {"id": "r", "metadata": {"voicepipe.tool.1": use}}}))
    conversation = Conversation(guest, "joe")
    conversation.next([], line)
    assert conversation.next(["It is booked."], line) is None
    visit = conversation.end(line)
    assert not visit.reached and visit.impossible == ["day Monday"]
    assert visit.why_not.startswith("book_table: day 'Monday', not 'Tuesday'; name None, not 'Peter Miller|")


@pytest.mark.parametrize(
    ("reply", "asked"),
    [
        ("With pleasure. For how many people?", "people"),
        ("On Mondays we are closed. For which day?", "day"),
        ("And your telephone number, please?", "phone"),
        (BACK, "right"),
        ("That is a table for 2. Shall I cancel it?", "right"),
        ("Of course.", ""),
        ("Which number?", "phone"),
    ],
)
def test_what_the_agent_asks_for(reply: str, asked: str) -> None:
    assert question(reply) == asked


def test_a_detail_that_is_read_back_wrong_is_noticed() -> None:
    right: dict[str, str | int] = {
        "people": 4,
        "day": "Friday",
        "time": "7:30",
        "name": "John Smith",
        "phone": "5550142",
    }
    assert all(heard_back(slot, value, BACK) for slot, value in right.items())
    assert heard_back("phone", "5550142", "That is a table for 2, Friday at 7. Shall I cancel it?")
    wrong: dict[str, str | int] = {
        "people": 5,
        "day": "Sunday",
        "time": "7 o'clock",
        "name": "Jon Smith",
        "phone": "5550143",
    }
    assert not any(heard_back(slot, value, BACK) for slot, value in wrong.items())


def test_every_text_has_a_clip_in_every_voice() -> None:
    spoken = {(clip.kind, clip.text, clip.voice) for clip in clips.load(clips.GUEST_KINDS)}
    texts = {found for guest in guests() for act in guest.acts for found in act.texts()}
    assert spoken == {(kind, text, voice) for kind, text in texts for voice in clips.VOICES}
