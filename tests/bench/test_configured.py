"""The engines of a configuration, and what calls ask of them."""

from typing import Literal

import numpy as np
import pytest

from tests.bench.instant import SOUND
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.agent import Agent
from voicepipe.audio import RATE, dbfs
from voicepipe.bench.configured import QUESTIONS, TOKENS_A_WORD, CallPrompts, played, speech
from voicepipe.bench.play import PlayedLoad, play
from voicepipe.config import Config, LadderConfig
from voicepipe.engines.base import Engines


@pytest.mark.virtual_time
@pytest.mark.usefixtures("virtual")
@pytest.mark.parametrize("first_phrase", ["clause", "short"])
async def test_first_phrases_are_cut_as_configured(first_phrase: Literal["clause", "short"]) -> None:
    tts, answer = ScriptedTts(), "We are open from noon to ten, on every day."
    llm = ScriptedLlm(dict.fromkeys(QUESTIONS, answer))
    config = Config(ladder=LadderConfig(first_phrase=first_phrase))
    await play(
        played(config, Engines(ScriptedVad(), ScriptedAsr(), llm, tts), Agent("desk"), 1, 0),
        PlayedLoad(1, 30.0, 1, True, SOUND),
    )
    assert {text.strip() for text in tts.firsts} == {
        {"clause": "We are open from noon to ten,", "short": "We are open"}[first_phrase]
    }


def test_each_call_has_a_history_of_its_own_and_as_much_of_it_as_the_prefix_cache_holds() -> None:
    conversations = CallPrompts(Agent("desk"), calls=2, history_tokens=1000)
    prompts = [conversations.prompt(call, call == 1) for call in (0, 1, 2)]
    words = [sum(len(message.text.split()) for message in prompt.messages[1:-1]) for prompt in prompts]
    assert all(1000 <= TOKENS_A_WORD * count < 1000 + 100 for count in words)
    histories = [prompt.messages[:-1] for prompt in prompts]
    assert histories[0] == histories[2] != histories[1], "a third call where there are two is the first again"
    assert [prompt.speculative for prompt in prompts] == [False, True, False]


@pytest.mark.engine
async def test_callers_say_their_question_at_16_khz() -> None:
    pcm = await speech()
    assert pcm.dtype == np.int16 and 3 * RATE < pcm.size < 7 * RATE
    assert dbfs(pcm) > -30
