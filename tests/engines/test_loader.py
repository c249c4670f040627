"""The configured engines, loaded together."""

import asyncio
import gc

import pytest

from voicepipe.config import Config
from voicepipe.engine_config import EnginesConfig
from voicepipe.engines import loader
from voicepipe.engines.scripted import ScriptedTts

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
