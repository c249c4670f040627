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
from voicepipe.engines.threaded_voice import ThreadedVoice
from voicepipe.engines.worker import Worker
from voicepipe.errors import EngineDead, EngineError

WORKERS = 2
"""Phrases that are spoken at a time."""
STALL_S = 10.0
"""A piece of up to 300 letters takes a quarter of a second; one that takes so long hangs."""
WARMING = (HELLO, "A table for two, on Friday at seven.", "Zorgle.")
"""Short, long, and what no lexicon has."""
ENDED = "hibari failed and is being loaded again: see the log."


class HibariVoice(ThreadedVoice):
    """A loaded model and its threads. Implements `life.Core`."""

    def __init__(self, worker: Worker, model: HibariModel) -> None:
        super().__init__("hibari", worker, partial(model.speak, HELLO, 1.0), STALL_S)
        self.model: HibariModel | None = model

    async def speak(self, piece: str, speed: float, first: bool) -> Speech:
        if self.model is None:
            raise EngineDead(ENDED)
        return await self.ask(partial(self.model.speak, piece, speed), first=first, within_s=STALL_S)

    async def close(self) -> None:
        if self.model is not None:
            self.model.unload()
        self.model = None
        self.worker.close(EngineDead(ENDED))


class HibariTts:
    """hibari. The one voice is "heart". Implements `base.Tts` and `base.Mortal`."""

    rate = RATE

    def __init__(self) -> None:
        self._life: Life[HibariVoice] = Life("speech synthesis", _load, IN_PROCESS)
        self._voices: Mapping[str, str] = {}

    @property
    def alive(self) -> bool:
        return self._life.alive

    @property
    def restarts(self) -> int:
        return self._life.restarts

    async def start(self) -> None:
        """Load the model and speak a little. Raises EngineMissing: the package is not there; EngineError."""
        await self._life.start()
        self._voices = {VOICE: LANGUAGE}

    async def close(self) -> None:
        """Forget the model; phrases that wait are dropped."""
        await self._life.close()
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
        speaker = self._life.core
        for piece in pieces(text):
            speech = await speaker.speak(piece, min(2.0, max(0.5, speed)), first)
            if speech.pcm.size:
                yield speech


async def _load() -> HibariVoice:
    worker = Worker("hibari", WORKERS)
    try:
        model = await worker.submit(HibariModel)
        for text in WARMING:
            await worker.submit(model.speak, text, 1.0)
    except BaseException:
        worker.close()
        raise
    return HibariVoice(worker, model)
