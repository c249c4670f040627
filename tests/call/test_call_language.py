"""What follows from the language that a caller speaks; tests/scenarios/language_*.toml have whole conversations."""

from typing import Any

import msgspec
import pytest

from tests.support.scenario import Recording, load, play
from tests.support.scripted import ScriptedAsrStream, ScriptedTts
from voicepipe.agent import Agent
from voicepipe.call.speech import voice_in
from voicepipe.call.tts_cache import TtsCache
from voicepipe.conversation.events import ItemAdded, LanguageChanged, ReplyDone, ReplyStarted
from voicepipe.conversation.prompt import SPEAKS
from voicepipe.engines.base import Hypothesis
from voicepipe.languages.known import language_of
from voicepipe.languages.loading import load_languages
from voicepipe.languages.written_language import LikelyLanguage

pytestmark = pytest.mark.virtual_time
TWO = Agent("desk", languages=("en", "fr"))


@pytest.fixture(scope="module", autouse=True)
def languages_are_known() -> None:
    """As a PoP does it before its first call: it reads a file."""
    load_languages([TWO])


async def in_french(**changes: Any) -> Recording:
    """A call whose caller has spoken French once."""
    scenario = load("language_changes")
    shorter = {
        "says": scenario.says[1:2],
        "hears": scenario.hears[1:2],
        "tells": scenario.tells[1:2],
        "length_ms": 20_000,
    }
    return await play(msgspec.structs.replace(scenario, **{**shorter, **changes}))


async def test_a_silent_caller_is_asked_in_their_language() -> None:
    agent = {"languages": ["en", "fr"], "no_input": ["Are you still there?", *TWO.no_input[1:]]}
    recording = await in_french(agent=agent)
    texts = language_of("fr").texts
    assert texts and ("claire", texts.no_input[0]) in [(voice, text.strip()) for voice, text in recording.tts.voiced]


async def test_what_was_heard_is_told_with_its_language_before_the_call_s_is_another() -> None:
    recording = await in_french()
    told = [event for _, event in recording.events if isinstance(event, ItemAdded | LanguageChanged | ReplyStarted)]
    heard = next(event for event in told if isinstance(event, ItemAdded) and event.spoken)
    assert heard.languages == ("fr",)
    assert isinstance(told[told.index(heard) + 1], LanguageChanged)
    assert isinstance(told[told.index(heard) + 2], ReplyStarted)


@pytest.mark.parametrize(("tells", "languages"), [("fr 0.4", ()), ("fr 0.7", ("fr",))])
async def test_an_unsure_recogniser_tells_no_language(tells: str, languages: tuple[str, ...]) -> None:
    recording = await in_french(tells=[tells])
    assert [event.languages for _, event in recording.events if isinstance(event, ItemAdded)] == [languages]
    assert not any(isinstance(event, LanguageChanged) for _, event in recording.events)


async def test_of_an_agent_with_one_language_none_is_told() -> None:
    recording = await in_french(agent={})
    assert [event.languages for _, event in recording.events if isinstance(event, ItemAdded)] == [None]


async def test_a_guess_is_in_the_language_of_its_words() -> None:
    """So the reply to the first words in another language is as early as any: nothing that was prepared is dropped."""
    recording = await in_french()
    (reply,) = [event for _, event in recording.events if isinstance(event, ReplyDone)]
    assert (reply.record.speculation, reply.record.discarded) == ("hit", 0)
    (prompt,) = recording.llm.prompts
    assert f"{SPEAKS}French" in prompt.messages[0].text


async def test_a_guess_in_another_language_than_the_final_words_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    settle = ScriptedAsrStream.settle

    async def settles(stream: ScriptedAsrStream) -> Hypothesis:
        stream.language = LikelyLanguage("en", 0.95)
        return await settle(stream)

    monkeypatch.setattr(ScriptedAsrStream, "settle", settles)
    recording = await in_french(tells=["fr 0.95"])
    assert not any(isinstance(event, LanguageChanged) for _, event in recording.events)
    told = [prompt.messages[0].text.partition(SPEAKS)[2].partition(" ")[0] for prompt in recording.llm.prompts]
    assert told == ["French", "English"] and {voice for voice, _ in recording.tts.voiced[-1:]} == {"scripted"}


async def test_a_text_of_the_agent_s_own_stays() -> None:
    recording = await in_french(agent={"languages": ["en", "fr"], "no_input": ["Anybody there?"]})
    assert ("claire", "Anybody there?") in recording.tts.voiced


async def test_what_fails_is_excused_in_their_language() -> None:
    recording = await in_french(agent={"languages": ["en", "fr"]}, replies={"je voudrais une table pour ce soir": ""})
    texts = language_of("fr").texts
    assert texts and f"agent (completed): {texts.fallback}" in recording.story


@pytest.mark.parametrize(
    ("agent", "asked", "voice"),
    [
        (TWO, "", "scripted"),
        (TWO, "anna", "anna"),
        (msgspec.structs.replace(TWO, language="fr"), "anna", "claire"),
        (msgspec.structs.replace(TWO, language="fr", voice="anna", voices={"fr": "bert"}), "anna", "bert"),
        (msgspec.structs.replace(TWO, language="fr", voices={"fr": "bert"}), "claire", "claire"),
        (Agent("one", language="fr"), "anna", "anna"),
    ],
)
def test_a_voice_that_speaks_the_language_is_taken(agent: Agent, asked: str, voice: str) -> None:
    assert voice_in(ScriptedTts(), agent, asked) == voice


async def test_fixed_phrases_are_made_ahead_in_each_language() -> None:
    tts = ScriptedTts()
    tts_cache = TtsCache(tts)
    tts_cache.learn([TWO])
    french = language_of("fr").texts
    assert french
    assert {(sound[0], sound[1]) for sound in tts_cache._vital} >= {
        ("One moment.", "scripted"), (french.acknowledgement, "claire"),
    }  # fmt: skip


async def test_a_cough_has_no_language() -> None:
    """A recogniser tells one of what is no word, too."""
    recording = await in_french(hears=[""], tells=["fr 0.9"])
    assert not any(event.languages for _, event in recording.events if isinstance(event, ItemAdded))
