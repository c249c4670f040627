"""The voice `auto`: hibari speaks English, espeak-ng every other language; where one is not to be had, the other speaks
for both."""

import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config.engine_config import EspeakConfig
from voicepipe.engines.base import Speech
from voicepipe.engines.tts.conversion import Conversion, converter
from voicepipe.engines.tts.espeak import EspeakTts
from voicepipe.engines.tts.hibari import HibariTts
from voicepipe.languages.tags import primary

log = logging.getLogger(__name__)


class AutoTts:
    """The voice `auto`: hibari for English, espeak-ng for everything else. Implements `base.Tts`, `base.CanBreak`,
    `base.Restarts`, `base.LacksPart` and `base.ReadsIpa`.

    It has the voices of both: "heart", and espeak-ng's "de", "en-gb". Without a name the callers' language decides. If
    hibari is lacking, "en-us" speaks for "heart"; without espeak-ng, which is optional, "heart" reads all languages.
    """

    rate = HibariTts.rate

    def __init__(self, espeak: EspeakConfig) -> None:
        self._espeak = EspeakTts(espeak.voice, espeak.words_per_minute)
        self._hibari = HibariTts()
        self._present: tuple[EspeakTts | HibariTts, ...] = ()
        self.lacks = ""

    @property
    def alive(self) -> bool:
        return bool(self._present) and all(voice.alive for voice in self._present)

    @property
    def restarts(self) -> int:
        return self._espeak.restarts + self._hibari.restarts

    async def start(self) -> None:
        """Load both, or one. Raises EngineError: neither is to be had, or espeak-ng has no voice as configured."""
        self.lacks, present = "", list[EspeakTts | HibariTts]()
        try:
            await self._espeak.start()
            present.append(self._espeak)
        except EngineMissing as error:
            self.lacks = f"hibari reads all languages as English: {error}"
        try:
            await self._hibari.start()
            present.append(self._hibari)
        except EngineError as error:
            if not present:
                raise
            self.lacks = f"espeak-ng speaks English, too: {error}"
        if self.lacks:
            log.warning(self.lacks)
        self._present = tuple(present)
        self.rate = present[-1].rate

    async def close(self) -> None:
        self._present = ()
        await self._hibari.close()
        await self._espeak.close()

    def voices(self) -> Mapping[str, str]:
        return {name: language for voice in reversed(self._present) for name, language in voice.voices().items()}

    def voice_for(self, asked: str, language: str = "") -> str:
        """English of any country without a name: "heart"."""
        if asked in self._hibari.voices() or self._espeak.voice_for(asked) == asked:
            return asked
        english = primary(language) in ("", "en")
        if self._hibari in self._present and (english or self._espeak not in self._present):
            return self._hibari.voice_for("")
        return self._espeak.voice_for("", language)

    def reads_ipa(self, voice: str) -> bool:
        name = self.voice_for(voice)
        return self._hibari in self._present if name in self._hibari.voices() else self._espeak.reads_ipa(name)

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
            if not silent or self._espeak not in self._present:
                return
            name = ""  # None of it was in Latin letters: better read by a machine than not at all.
        convert = Conversion(self._espeak.rate, self.rate)
        async with aclosing(self._espeak.speak(text, voice=name, speed=speed, first=first)) as pieces:
            async for speech in pieces:
                yield speech if self.rate == self._espeak.rate else await converter.submit(convert, speech)
