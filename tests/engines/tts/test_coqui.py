"""The parent's half of `coqui`: what a process said becomes speech. The processes are a stand-in."""

import threading
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from tests.engines.contract import tone
from voicepipe.config.engine_config import CoquiConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.tts import coqui
from voicepipe.engines.tts.coqui import CoquiTts
from voicepipe.engines.tts.shaping import shape


class FakePool:
    about = {"voices": {"anna": "en"}}

    async def ask(self, asked: dict[str, Any], *, first: bool) -> AsyncGenerator[tuple[dict[str, Any], bytes], None]:
        yield {"symbols": "hi yu", "begins": [0, 1000, 4000, 5000, 6000]}, tone(1.0).tobytes()


async def test_what_was_said_is_shaped_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    threads: list[threading.Thread] = []

    def seen(*args: Any) -> Speech:
        threads.append(threading.current_thread())
        return shape(*args)

    monkeypatch.setattr(coqui, "shape", seen)
    engine = CoquiTts(CoquiConfig())
    engine._pool = FakePool()  # type: ignore[assignment]
    (speech,) = [speech async for speech in engine.speak("Hi you.")]
    assert speech.pcm.size and [word.text for word in speech.words] == ["Hi", "you."]
    assert threads and threading.main_thread() not in threads
