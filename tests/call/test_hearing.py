"""The caller's side of a call. In virtual time."""

from collections.abc import AsyncGenerator

import msgspec
import pytest

from tests.support.scenario import Says, Scenario, play
from tests.support.scripted_opinions import ScriptedReader
from voicepipe.call.control import Control
from voicepipe.call.utterance import Reads, Utterance
from voicepipe.conversation.events import SpeechStarted, SpeechStopped, WordsHeard
from voicepipe.engines.base import Prompt
from voicepipe.engines.scripted import FAILS
from voicepipe.turn.endpoint import Evidence

pytestmark = pytest.mark.virtual_time

SPOKEN = Scenario(about="A turn, in the middle of which the client asks.", hears=["hello there"], length_ms=6000,
                  says=[Says(1000, 800)])  # fmt: skip


async def test_while_the_words_are_settled_whether_they_end_is_asked_with_the_settings_of_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    controls: list[Control] = []
    asked: list[str] = []

    async def ends(reader: ScriptedReader, prompt: Prompt) -> float:
        asked.append(prompt.messages[0].text)
        return 0.9

    async def settle(utterance: Utterance, reads: Reads) -> AsyncGenerator[Evidence, None]:
        for _ in range(2):
            await reads("hello there")
            controls[0].configure(msgspec.structs.replace(controls[0].settings, instructions="Be short."))
        yield Evidence("hello there")

    monkeypatch.setattr(ScriptedReader, "ends", ends)
    monkeypatch.setattr(Utterance, "settle", settle)

    async def watches(control: Control) -> None:
        controls.append(control)
        control.configure(msgspec.structs.replace(control.settings, instructions="Be polite."))

    await play(msgspec.structs.replace(SPOKEN, turn_ends=0.9), asks=watches)
    assert asked[:2] == ["Be polite.", "Be short."]


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


@pytest.mark.parametrize(("turn_ends", "settings"), [(None, {}), (0.9, {"turn_detection": "server"}), (-1.0, {})])
async def test_the_model_has_no_say_where_it_is_not_asked_or_fails(
    turn_ends: float | None, settings: dict[str, str]
) -> None:
    recording = await play(msgspec.structs.replace(SPOKEN, turn_ends=turn_ends, settings=settings))
    assert "user: hello there" in recording.story
