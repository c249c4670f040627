"""What agents say in trouble is there before there is any."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.support.faulty import Fault, FaultyTts
from tests.support.scripted import ScriptedTts
from voicepipe.agent import Agent, Intent, Pronunciation, Tool
from voicepipe.audio import RATE
from voicepipe.base.errors import EngineError
from voicepipe.call.speech import PhraseSpeaker
from voicepipe.call.tts_cache import AGAIN_S, TtsCache
from voicepipe.engines.base import Speech
from voicepipe.languages.pronunciation import BEGINS, ENDS

pytestmark = pytest.mark.virtual_time
AGENT = Agent(
    "desk", greeting="Hello. How can I help?", voice="anna", speed=1.2, acknowledgement="One moment.",
    fallback="I have a problem.", no_input=("Are you there?",), not_understood=("Pardon?",), goodbye="Goodbye.",
    tools=(Tool("book", while_running=("Still at it.",)),),
)  # fmt: skip


class Voices(ScriptedTts):
    """It has a voice of every name."""

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked or language


async def made(tts_cache: TtsCache, seconds: float = 0.1) -> None:
    running = asyncio.create_task(tts_cache.run())
    await asyncio.sleep(seconds)
    running.cancel()


async def test_what_agents_say_word_by_word_is_made_once_trouble_first() -> None:
    tts = Voices()
    tts_cache = TtsCache(tts)
    tts_cache.learn([AGENT, Agent("night", acknowledgement="One moment.", fallback="I have a problem.", no_input=())])
    await made(tts_cache)
    assert tts.spoken[:4] == ["One moment.", "I have a problem."] * 2, "in two voices"
    assert set(tts.spoken[4:]) >= {"Hello.", "How can I help?", "Are you there?", "Pardon?", "Goodbye.", "Still at it."}
    assert len(tts.spoken) == len(set(tts.spoken[4:])) + 4 and not tts.firsts, "each once, behind what callers wait for"


async def test_every_call_has_it_at_its_own_rate_though_the_voice_hangs() -> None:
    fault = Fault()
    tts = FaultyTts(fault)
    tts_cache = TtsCache(tts)
    tts_cache.learn([AGENT])
    await made(tts_cache)
    fault.begin()
    for rate in (8000, RATE):
        speaker = PhraseSpeaker(tts, rate, made_ahead=tts_cache)
        assert speaker.has("One moment. ", voice="anna", speed=1.2)
        (phrase,) = [phrase async for phrase in speaker.say("One moment. ", voice="anna", speed=1.2)]
        assert phrase.text == "One moment. "
        assert phrase.words[-1][1] == pytest.approx(phrase.pcm.size, rel=0.1)
        assert not speaker.has("One moment. ", voice="anna", speed=1.0)


async def test_agents_without_a_voice_s_name_are_made_ahead_by_their_language() -> None:
    tts = Voices()
    tts_cache = TtsCache(tts)
    tts_cache.learn([Agent("desk", fallback="Oh."), Agent("pult", language="de", fallback="Oh.")])
    await made(tts_cache)
    assert tts.spoken.count("Oh.") == 2
    for language in ("en", "de"):
        assert PhraseSpeaker(tts, RATE, Agent("a", language=language), made_ahead=tts_cache).has(
            "Oh.", voice="", speed=1.0
        )
    assert not PhraseSpeaker(tts, RATE, Agent("a", language="fr"), made_ahead=tts_cache).has("Oh.", voice="", speed=1.0)


@pytest.mark.parametrize(("reads", "spoken"), [(True, f"Ask {BEGINS}ʃɪvˈɔːn{ENDS}."), (False, "Ask Shivawn.")])
async def test_what_is_made_ahead_is_said_as_the_agent_says_it(reads: bool, spoken: str) -> None:
    class Reads(Voices):
        def reads_ipa(self, voice: str) -> bool:
            return reads

    own: dict[str, str | Pronunciation] = {"Siobhan": Pronunciation("ʃɪˈvɔːn", "Shivawn")}
    tts = Reads()
    tts_cache = TtsCache(tts)
    tts_cache.learn([Agent("desk", fallback="Ask Siobhan.", pronounce=own), Agent("other", fallback="Ask Siobhan.")])
    await made(tts_cache)
    assert {spoken, "Ask Siobhan."} <= {*tts.spoken}
    speaker = PhraseSpeaker(tts, RATE, Agent("a", pronounce=own), made_ahead=tts_cache)
    tts.spoken.clear()
    (phrase,) = [phrase async for phrase in speaker.say("Ask Siobhan.", voice="", speed=1.0)]
    assert (
        not tts.spoken and phrase.text == "Ask Siobhan." and [word for word, _ in phrase.words] == ["Ask ", "Siobhan."]
    )


async def test_an_agent_that_is_edited_is_made_ahead_anew_and_the_old_one_forgotten() -> None:
    tts = Voices()
    tts_cache = TtsCache(tts)
    tts_cache.learn([AGENT])
    running = asyncio.create_task(tts_cache.run())
    await asyncio.sleep(0.1)
    tts_cache.learn([Agent("desk", voice="anna", speed=1.2, acknowledgement="One moment.", fallback="Oh dear.")])
    assert tts_cache.get("One moment.", "anna", 1.2, RATE), "still the same"
    assert not tts_cache.get("I have a problem.", "anna", 1.2, RATE)
    await asyncio.sleep(0.1)
    running.cancel()
    assert tts_cache.get("Oh dear.", "anna", 1.2, RATE) and tts.spoken.count("One moment.") == 1


async def test_what_could_not_be_made_is_made_once_the_voice_is_back() -> None:
    class Mute(Voices):
        broken = True

        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            if self.broken:
                raise EngineError("it is broken")
            async for speech in super().speak(text):
                yield speech

    tts = Mute()
    tts_cache = TtsCache(tts)
    tts_cache.learn([AGENT])
    running = asyncio.create_task(tts_cache.run())
    await asyncio.sleep(1)
    tts.broken = False
    assert not tts_cache.get("One moment.", "anna", 1.2, RATE)
    await asyncio.sleep(AGAIN_S)
    assert tts_cache.get("One moment.", "anna", 1.2, RATE)
    running.cancel()


async def test_a_phrase_that_cannot_be_said_keeps_none_behind_it_from_being_made() -> None:
    class Picky(Voices):
        asked = 0

        async def speak(
            self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
        ) -> AsyncGenerator[Speech, None]:
            if text.startswith("One moment"):
                self.asked += 1
                raise EngineError("no such sound")
            async for speech in super().speak(text):
                yield speech

    tts = Picky()
    tts_cache = TtsCache(tts)
    tts_cache.learn([AGENT])
    running = asyncio.create_task(tts_cache.run())
    await asyncio.sleep(1)
    assert tts_cache.get("I have a problem.", "anna", 1.2, RATE)
    await asyncio.sleep(3600)
    assert tts.asked < 20, "and the voice is not asked for it every few seconds"
    running.cancel()


async def test_greetings_have_so_much_room_and_what_is_said_in_trouble_is_kept_beyond_it() -> None:
    agents = [Agent(f"a{n}", greeting="Good morning.", voice=f"voice{n}") for n in range(50)]
    tts_cache = TtsCache(Voices(), room=200_000)
    for _ in range(3):
        tts_cache.learn(agents)
        await made(tts_cache)
    greetings = [tts_cache.get("Good morning.", agent.voice, 1.0, RATE) for agent in agents]
    kept = sum(speech.pcm.nbytes for made in greetings for speech in made)
    assert kept < 300_000 and any(greetings) and not all(greetings)
    assert all(tts_cache.get("One moment.", agent.voice, 1.0, RATE) for agent in agents)


@pytest.mark.parametrize(
    ("short", "begins"), [(False, "We sell vouchers all the week long,"), (True, "We sell vouchers all the week")]
)
async def test_the_beginnings_of_answers_are_made_as_replies_are_cut(short: bool, begins: str) -> None:
    tts = Voices()
    tts_cache = TtsCache(tts, short=short)
    vouchers = Intent(
        "vouchers", ("do you sell vouchers",), reply="We sell vouchers all the week long, and also send them."
    )
    table = Intent(
        "table", ("a table",), slots={"people": "With pleasure. For how many?"}, confirm="A table for {people}?"
    )
    tts_cache.learn([Agent("desk", intents=(vouchers, table))])
    await made(tts_cache)
    assert {begins, "With pleasure.", "What should be different?"} <= set(tts.spoken)
    assert not [text for text in tts.spoken if "{" in text or "send" in text or "how many" in text]
    assert PhraseSpeaker(tts, RATE, made_ahead=tts_cache).has(f"{begins} ", voice="", speed=1.0)


async def test_every_agent_s_greeting_has_room_before_the_answers_of_any() -> None:
    answers = tuple(Intent(f"i{n}", ("well",), reply=f"This is answer number {n}.") for n in range(50))
    tts_cache = TtsCache(Voices(), room=300_000)
    tts_cache.learn(
        Agent(f"a{n}", greeting="Good morning.", voice=f"voice{n}", no_input=(), not_understood=(), intents=answers)
        for n in range(2)
    )
    await made(tts_cache)
    assert all(tts_cache.get("Good morning.", f"voice{n}", 1.0, RATE) for n in range(2))
    assert not tts_cache.get("This is answer number 49.", "voice1", 1.0, RATE)


async def test_sentences_with_variables_are_left_to_the_calls() -> None:
    tts = Voices()
    tts_cache = TtsCache(tts)
    agent = Agent("desk", greeting="Good morning. You call from {{caller}}.", acknowledgement="A moment, {{name}}.",
                  no_input=(), not_understood=(), fallback="I have a problem.",
                  intents=(Intent("hours", ("when",), "We are open, {{name}}. From noon."),))  # fmt: skip
    tts_cache.learn([agent])
    await made(tts_cache)
    assert set(tts.spoken) == {"I have a problem.", "Good morning.", "What should be different?"}
