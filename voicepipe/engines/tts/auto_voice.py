"""The voice `auto`: hibari speaks English, espeak-ng what hibari cannot, and all where hibari is not to be had."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from voicepipe.base.errors import EngineError
from voicepipe.config.engine_config import EspeakConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.tts.conversion import Conversion, converter
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.hibari import HibariTts

log = logging.getLogger(__name__)


class AutoTts:
    """The voice `auto`: hibari for English, espeak-ng for everything else. Implements `base.Tts`, `base.CanBreak`,
    `base.Restarts` and `base.LacksPart`.

    It has the voices of both: "heart", and espeak-ng's "de", "en-gb". Without a name the callers' language decides. If
    hibari is lacking, "en-us" speaks for "heart".
    """

    rate = HibariTts.rate

    def __init__(self, espeak: EspeakConfig) -> None:
        self._espeak = EspeakTts(espeak.voice, espeak.words_per_minute)
        self._hibari = HibariTts()
        self._voices: Mapping[str, str] = {}
        self.lacks = ""
        """Why hibari does not speak; empty: it does."""

    @property
    def alive(self) -> bool:
        return self._espeak.alive and (bool(self.lacks) or self._hibari.alive)

    @property
    def restarts(self) -> int:
        return self._espeak.restarts + self._hibari.restarts

    async def start(self) -> None:
        """Load both. Raises EngineError: there is no espeak-ng."""
        await self._espeak.start()
        try:
            await self._hibari.start()
            self.lacks = ""
        except EngineError as error:
            self.lacks = str(error)
            log.warning("espeak-ng speaks English, too: %s", error)
        self.rate = self._espeak.rate if self.lacks else self._hibari.rate
        self._voices = {**self._hibari.voices(), **self._espeak.voices()}

    async def close(self) -> None:
        self._voices = {}
        await self._hibari.close()
        await self._espeak.close()

    def voices(self) -> Mapping[str, str]:
        return self._voices

    def voice_for(self, asked: str, language: str = "") -> str:
        """English of any country without a name: "heart"."""
        if asked in self._hibari.voices() or self._espeak.voice_for(asked) == asked:
            return asked
        english = language.lower().partition("-")[0] in ("", "en")
        if english and not self.lacks:
            return self._hibari.voice_for("")
        return self._espeak.voice_for("", language)

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """As both do. Raises EngineError before `start`, EngineDead while the voice is loaded again."""
        name = self.voice_for(voice)
        if name in self._hibari.voices():
            silent = True
            async with aclosing(self._hibari.speak(text, speed=speed, first=first)) as pieces:
                async for speech in pieces:
                    silent = False
                    yield speech
            if not silent:
                return
            name = ""  # None of it was in Latin letters: better read by a machine than not at all.
        convert = Conversion(self._espeak.rate, self.rate)
        async with aclosing(self._espeak.speak(text, voice=name, speed=speed, first=first)) as pieces:
            async for speech in pieces:
                yield speech if self.lacks else await converter.submit(convert, speech)
