"""The caller's side of a call. In virtual time."""

import msgspec
import pytest

from tests.support.scenario import Says, Scenario, play
from tests.support.scripted import FAILS
from voicepipe.conversation.events import SpeechStarted, SpeechStopped, WordsHeard

pytestmark = pytest.mark.virtual_time

SPOKEN = Scenario(about="A turn, in the middle of which the client asks.", hears=["hello there"], length_ms=6000,
                  says=[Says(1000, 800)])  # fmt: skip


async def test_clients_are_told_where_a_voice_starts_and_stops_and_its_words_as_they_grow() -> None:
    recording = await play(msgspec.structs.replace(SPOKEN, hears=["hello there my friend"], says=[Says(1000, 1600)]))
    events = [event for _, event in recording.events]
    [started] = [event for event in events if isinstance(event, SpeechStarted)]
    [stopped] = [event for event in events if isinstance(event, SpeechStopped)]
    assert 500 <= started.at_ms <= 1000 and stopped.at_ms == pytest.approx(2600, abs=40)
    told = "".join(event.delta for event in events if isinstance(event, WordsHeard))
    assert told.strip() and "hello there my friend".startswith(told.strip())
    assert {event.item_id for event in events if isinstance(event, WordsHeard)} == {started.item_id}


async def test_a_recogniser_that_fails_costs_the_caller_no_answer() -> None:
    scenario = msgspec.structs.replace(SPOKEN, hears=[FAILS], agent={"not_understood": ["Pardon?"]})
    recording = await play(scenario)
    assert "agent (completed): Pardon?" in recording.story


async def test_the_recogniser_is_told_which_words_callers_of_this_agent_say() -> None:
    names = ["Siobhan", "Okonkwo"]
    recording = await play(msgspec.structs.replace(SPOKEN, agent={"vocabulary": names}))
    assert recording.asr.vocabularies == {tuple(names)}
