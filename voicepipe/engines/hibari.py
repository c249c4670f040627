"""Speech synthesis: hibari, a small natural voice, on a CPU. It speaks English.

A phrase is one run on one thread, as Kokoro's: its first sound comes with its last. A run releases the GIL.
"""

from collections.abc import AsyncGenerator, Mapping
from functools import partial

from voicepipe.engines.base import Speech
from voicepipe.engines.failures import HELLO
from voicepipe.engines.hibari_model import LANGUAGE, RATE, VOICE, HibariModel
from voicepipe.engines.life import IN_PROCESS, Life
from voicepipe.engines.shaping import pieces
from voicepipe.engines.threaded import ThreadedVoice, loaded
from voicepipe.engines.worker import Worker
from voicepipe.errors import EngineError

WORKERS = 2
"""Phrases that are spoken at a time."""
STALL_S = 10.0
"""A piece of up to 300 letters takes a quarter of a second; one that takes so long hangs."""


class HibariTts(Life[ThreadedVoice[HibariModel]]):
    """hibari. The one voice is "heart". Implements `base.Tts`."""

    rate = RATE

    def __init__(self) -> None:
        super().__init__("speech synthesis", _load, IN_PROCESS)
        self._voices: Mapping[str, str] = {}

    async def start(self) -> None:
        """Load the model and speak a little. Raises EngineMissing: the package is not there; EngineError."""
        await super().start()
        self._voices = {VOICE: LANGUAGE}

    async def close(self) -> None:
        """Forget the model; phrases that wait are dropped."""
        await super().close()
        self._voices = {}

    def voices(self) -> Mapping[str, str]:
        return self._voices

    def voice_for(self, asked: str, language: str = "") -> str:
        return VOICE

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, one piece for each 300 letters; `speed` 0.5..2. Raises EngineError before `start`."""
        if not self._voices:
            raise EngineError("HibariTts has not been started")
        core = self.core
        for piece in pieces(text):
            speak = partial(core.model.speak, piece, min(2.0, max(0.5, speed)))
            speech = await core.ask(speak, first=first, within_s=STALL_S)
            if speech.pcm.size:
                yield speech


async def _load() -> ThreadedVoice[HibariModel]:
    worker = Worker("hibari", WORKERS)
    model = await loaded(worker, HibariModel)
    return ThreadedVoice("hibari", worker, model, partial(model.speak, HELLO, 1.0), STALL_S)
