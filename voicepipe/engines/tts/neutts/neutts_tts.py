"""Speech synthesis by NeuTTS-Air. It streams: sound comes while the rest of a phrase is still being made."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from functools import partial

from voicepipe.config.engine_config import NeuttsConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.life import IN_PROCESS, Life
from voicepipe.engines.tts.neutts.voice import WARMING, NeuttsVoice, load

RATE = 24_000


class NeuTts(Life[NeuttsVoice]):
    """The voice engine `neutts`. Implements `base.Tts`. Voices are those of `[neutts.voices]`."""

    rate = RATE

    def __init__(self, config: NeuttsConfig) -> None:
        super().__init__("speech synthesis", partial(load, config, _ready), IN_PROCESS, start_s=None)
        self._default = config.voice

    async def start(self) -> None:
        """Load both models, read the recordings and speak a little. Raises EngineMissing: vLLM, a model or a recording
        is not there; EngineError."""
        await super().start()
        self.rate = self.core.rate

    def voices(self) -> Mapping[str, str]:
        return self.last.languages if self.last else {}

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked if asked in self.voices() else self._default or next(iter(self.voices()), "")

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, as it is made: 0.16 s at first, then more at a time; `speed` 0.5..2. Raises EngineError,
        EngineDead while it is loaded again."""
        async with aclosing(self.core.speak(text, voice, min(2.0, max(0.5, speed)), first=first)) as said:
            async for speech in said:
                yield speech


async def _ready(voice: NeuttsVoice) -> None:
    for text in WARMING:
        async with aclosing(voice.speak(text, "", 1.0, first=True)) as said:
            async for _ in said:
                pass
