"""The configured engines, loaded together."""

import asyncio
import gc

import pytest

from voicepipe.base.errors import EngineError
from voicepipe.config import Config
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.engines import loader
from voicepipe.engines.scripted import ScriptedTts
from voicepipe.engines.tts.neutts.neutts import NeuTts

SCRIPTED = Config(engines=EnginesConfig(vad="scripted", asr="scripted", llm="scripted", tts="scripted"))


class LateTts(ScriptedTts):
    """Makes something when the other engines have started."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[object] = []

    async def start(self) -> None:
        await asyncio.sleep(0.01)
        self.made = [self]


def collected(thing: object) -> bool:
    """The garbage collector looks at it."""
    return any(found is thing for found in gc.get_objects())


async def test_what_loading_made_is_left_out_of_garbage_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    late = LateTts()
    monkeypatch.setattr(loader, "_tts", lambda config: late)
    async with loader.loaded(SCRIPTED):
        assert not collected(late.made)
        made_by_a_call = [late]
        assert collected(made_by_a_call)
    assert collected(late.made)


class BrokenTts(ScriptedTts):
    async def start(self) -> None:
        raise EngineError("no voice")


async def test_why_an_engine_does_not_start_is_said_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_tts", lambda config: BrokenTts())
    with pytest.raises(EngineError, match="no voice"):
        async with loader.loaded(SCRIPTED):
            pass


async def test_a_voice_that_streams_is_chosen_without_its_libraries() -> None:
    """torch, transformers and vLLM are imported when it starts, for they are not on every machine."""
    engines = loader.choose(Config(engines=EnginesConfig(vad="scripted", asr="scripted", llm="scripted", tts="neutts")))
    assert isinstance(engines.tts, NeuTts) and not engines.tts.alive
    with pytest.raises(EngineError, match="NeuTTS has no voice"):
        await engines.tts.start()
    with pytest.raises(EngineError, match="has not been started"):
        await anext(engines.tts.speak("Hello."))
    await engines.tts.close()
