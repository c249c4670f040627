"""espeak-ng through ctypes: speech, and phonemes for other voices. Library and its voices are those of the
espeakng-loader wheel.

The library has one state, speaks one text at a time and cannot be initialised twice. So each user after the first
loads a copy (6 ms, 1.5 MB; where files of the temporary folder may be executed). One thread uses it, and ctypes
releases the GIL while it works. 4 s of speech take about 4 ms.
"""

import asyncio
import ctypes
import difflib
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import count

import numpy as np

from voicepipe.audio import Pcm
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.base.punctuation import in_latin
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import HELLO
from voicepipe.engines.hosting.supervised import IN_PROCESS, SupervisedEngine
from voicepipe.engines.hosting.threaded import ThreadedVoice, loaded
from voicepipe.engines.packages import INSTALLS
from voicepipe.engines.tts.english_sounds import for_espeak
from voicepipe.engines.tts.shaping import pieces, shape
from voicepipe.languages.pronunciation import BEGINS, ENDS, MARKED
from voicepipe.languages.tags import primary

# speak_lib.h
_SYNCHRONOUS = 2
_CHARS_UTF8 = 1
_PHONEMES = 0x100
_EVENT_END, _EVENT_WORD = 0, 1
_RATE, _VOLUME = 1, 2
_POS_CHARACTER = 1
_IPA = 2


class _Event(ctypes.Structure):
    """espeak-ng's structure espeak_EVENT; `id` stands for its union of 8 bytes."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    ]


class _EspeakVoice(ctypes.Structure):
    """espeak-ng's structure espeak_VOICE."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("languages", ctypes.c_void_p),
        ("identifier", ctypes.c_char_p),
        ("gender", ctypes.c_ubyte),
        ("age", ctypes.c_ubyte),
        ("variant", ctypes.c_ubyte),
        ("xx1", ctypes.c_ubyte),
        ("score", ctypes.c_int),
        ("spare", ctypes.c_void_p),
    ]


DEFAULT = "gmw/en-US"
OTHERWISE = {"en": "en-us", "no": "nb", "zh": "cmn"}
"""Languages that espeak-ng calls by a narrower name."""
STALL_S = 10.0
"""A piece of up to 300 letters takes some 20 ms; one that takes so long hangs."""
PUNCTUATION = re.compile(r"([;:,.!?¡¿—…\"«»“”]+(?=\s|$)|(?<=\s)[¡¿—…\"«»“”]+|^[¡¿—…\"«»“”]+)")
"""Punctuation that stays between the phonemes: signs beside a space, so that "3.5" and "10:30" stay whole."""
FLAG = re.compile(r"\([a-z-]{2,8}\)")
""" "(en)": espeak goes on by another language's rules."""

_Callback = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event))


@dataclass(slots=True)
class _SpokenText:
    """The sound and the words that espeak-ng's callback collects while one text is spoken."""

    chunks: list[Pcm] = field(default_factory=list)
    starts: list[tuple[int, int]] = field(default_factory=list)
    """(character of the text, sample) at which espeak begins a word."""


_loads = count()
"""Numbers the loads of this process: all but the first are of copies."""


class _LibraryCopy:
    """The library, or a copy of it, with a state of its own. Raises EngineMissing, EngineError."""

    def __init__(self) -> None:
        try:
            import espeakng_loader  # Not above: an extra, since it is GPL-3.0.
        except ImportError as error:
            way_out = f"pip install {INSTALLS['espeakng_loader']}"
            raise EngineMissing(f"espeak-ng is not installed ({error}): {way_out}") from None
        path, is_copy = espeakng_loader.get_library_path(), next(_loads) > 0
        try:
            with tempfile.TemporaryDirectory() if is_copy else nullcontext() as folder:
                self._lib = ctypes.CDLL(shutil.copy(path, folder) if folder else path)
        except OSError as error:
            advice = "reinstall espeakng-loader"
            if is_copy:
                path, advice = (
                    f"a copy in {tempfile.gettempdir()}",
                    "set TMPDIR to a folder whose files may be executed",
                )
            raise EngineMissing(f"espeak-ng could not be loaded from {path}: {advice}") from error
        self.rate: int = self._lib.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
        """The rate in Hz of its speech."""
        if self.rate <= 0:
            raise EngineError("espeak-ng found no voices: reinstall espeakng-loader")
        self.voices = self._listed()
        """Language tag -> the identifier that espeak_SetVoiceByName accepts for sure (it refuses "en-gb" itself)."""

    def _listed(self) -> dict[str, str]:
        self._lib.espeak_ListVoices.restype = ctypes.POINTER(ctypes.POINTER(_EspeakVoice))
        self._lib.espeak_ListVoices.argtypes = [ctypes.c_void_p]
        table = self._lib.espeak_ListVoices(None)
        voices: dict[str, str] = {}
        index = 0
        while table[index]:
            voice = table[index].contents
            # Byte 0 is a priority. Voices are found whatever case they are asked for in: one tag has capitals.
            tag = ctypes.string_at(voice.languages + 1).decode().lower()
            voices.setdefault(tag, voice.identifier.decode())
            index += 1
        return voices


class _Library(_LibraryCopy):
    """A copy that speaks. Everything here runs in the worker thread."""

    def __init__(self) -> None:
        super().__init__()
        self._take = _SpokenText()
        self._callback = _Callback(self._collect)  # kept: ctypes does not own it
        self._lib.espeak_SetSynthCallback(self._callback)
        self.languages = {tag: tag for tag in sorted(self.voices)}
        """Voices are named by the language that they speak."""
        self._settings: tuple[str, int] = ("", 0)

    def _collect(self, wav: "ctypes._Pointer[ctypes.c_short]", count: int, events: "ctypes._Pointer[_Event]") -> int:
        if wav and count > 0:
            # Not np.ctypeslib.as_array: ctypes makes a type for every length it meets, and keeps them all.
            self._take.chunks.append(np.frombuffer(ctypes.string_at(wav, 2 * count), np.int16))
        index = 0
        while events[index].type != _EVENT_END:
            event = events[index]
            if event.type == _EVENT_WORD:
                self._take.starts.append((event.text_position - 1, event.sample))
            index += 1
        return 0

    def speak(self, text: str, voice: str, words_per_minute: int) -> Speech:
        pcm, starts = self.synthesize(text, voice, words_per_minute)
        return shape(pcm, starts, text, self.rate)

    def warm(self) -> None:
        """Say a word."""
        self.speak(HELLO, DEFAULT, 165)

    def unload(self) -> None:
        """A library stays."""

    def synthesize(self, text: str, voice: str, words_per_minute: int) -> tuple[Pcm, list[tuple[int, int]]]:
        """Raw speech and the (character, sample) starts of its words."""
        if (voice, words_per_minute) != self._settings:
            self._lib.espeak_SetVoiceByName(voice.encode())
            self._lib.espeak_SetParameter(_RATE, words_per_minute, 0)
            self._lib.espeak_SetParameter(_VOLUME, 100, 0)
            self._settings = (voice, words_per_minute)
        self._take = _SpokenText()
        # Without the SSML and PHONEMES flags "<break/>" and "[[h@]]" are text like any other.
        flags = _CHARS_UTF8
        if MARKED.search(text):
            flags, (text, places) = flags | _PHONEMES, _with_mnemonics(text)
        else:
            places = list(range(len(text)))
        data = text.encode() + b"\0"
        status = self._lib.espeak_Synth(
            ctypes.c_char_p(data), ctypes.c_size_t(len(data)), 0, _POS_CHARACTER, 0, flags, None, None
        )
        if status != 0:
            raise EngineError(f"espeak-ng could not speak (status {status})")
        chunks = self._take.chunks
        starts = [(places[at], sample) for at, sample in self._take.starts if at < len(places)]
        return (np.concatenate(chunks) if chunks else np.empty(0, np.int16)), starts


def _with_mnemonics(text: str) -> tuple[str, list[int]]:
    """The text with IPA as espeak-ng takes it, and where in `text` each of its characters comes from."""
    said, places, at = "", list[int](), 0
    for index, part in enumerate(MARKED.split(text)):
        if index % 2:
            sounds = f"[[{for_espeak(part)}]]"
            said, places, at = said + sounds, places + [at] * len(sounds), at + len(f"{BEGINS}{part}{ENDS}")
        else:
            said, places, at = said + part.replace("[[", "(("), [*places, *range(at, at + len(part))], at + len(part)
    return said, places


async def _load() -> ThreadedVoice[_Library]:
    worker = Worker("espeak", nice=0)
    try:
        async with asyncio.timeout(STALL_S):
            library = await loaded(worker, _Library)
    except TimeoutError:
        raise TimeoutError(f"espeak-ng did not say a word within {STALL_S:g} s.") from None
    return ThreadedVoice("espeak-ng", worker, library, library.warm, STALL_S)


class EspeakTts(SupervisedEngine[ThreadedVoice[_Library]]):
    """The voice engine `espeak`: espeak-ng. Implements `base.Tts` and `base.ReadsIpa`. Voices are language tags with an
    optional variant: "en-us", "en-gb-x-rp+Annie"."""

    rate = 22050

    def __init__(self, voice: str = "en-us", words_per_minute: int = 165) -> None:
        super().__init__("speech synthesis", _load, IN_PROCESS)
        self._default = voice
        self._words_per_minute = words_per_minute

    async def start(self) -> None:
        """Load the library and the default voice (about 10 ms). Raises EngineMissing or EngineError."""
        await super().start()
        library = self.core.model
        if not self._identifier(library, self._default):
            close = difflib.get_close_matches(self._default, library.voices, 3) or ["en-us"]
            raise EngineError(
                f"espeak.voice is {self._default!r}, and espeak-ng has none of that name: "
                f"choose another, such as {', '.join(close)}."
            )
        self.rate = library.rate

    def voices(self) -> Mapping[str, str]:
        return self.last.model.languages if self.last else {}

    def voice_for(self, asked: str, language: str = "") -> str:
        """The default voice speaks also other countries' forms of its language."""
        (tag, _, _), voices = asked.partition("+"), self.voices()
        if tag.lower() in voices:
            return asked
        spoken, general = language.lower(), primary(language)
        if general in ("", primary(self._default)):
            return self._default
        tags = (spoken, general, f"{general}-{general}", OTHERWISE.get(general, ""))
        return next((tag for tag in tags if tag in voices), self._default)

    def reads_ipa(self, voice: str) -> bool:
        """Its own signs for sounds differ from language to language: English voices alone read IPA."""
        return (voice or self._default).lower().startswith("en")

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, one piece for each 300 letters. `speed` 0.5..2 scales the rate of speaking.

        Raises EngineError before `start`, EngineDead while it is loaded again.
        """
        core, library = self.core, self.core.model
        name = self._identifier(library, voice) or self._identifier(library, self._default)
        rate = round(self._words_per_minute * min(2.0, max(0.5, speed)))
        for piece in pieces(text):
            speak = partial(library.speak, piece, name, min(450, max(80, rate)))
            speech = await core.ask(speak, first=first, within_s=STALL_S)
            if speech.pcm.size:
                yield speech

    @staticmethod
    def _identifier(library: _Library, voice: str) -> str:
        """espeak-ng's name of this voice; "" for one that it does not have. It ignores an unknown variant by itself."""
        tag, plus, variant = voice.partition("+")
        known = library.voices.get(tag.lower(), "")
        return f"{known}+{variant}" if known and plus and variant.isalnum() else known


class Phonemizer(_LibraryCopy):
    """Turns text into phonemes (IPA), by a copy of espeak-ng. For one thread at a time; a call takes less than a
    millisecond."""

    def __init__(self) -> None:
        """Raises EngineMissing, EngineError."""
        super().__init__()
        self._lib.espeak_TextToPhonemes.restype = ctypes.c_char_p
        self._language = ""

    def phonemes(self, text: str, language: str) -> str:
        """`text` in the IPA, with its stresses and its punctuation. Raises EngineError: espeak-ng has no such
        language."""
        if language != self._language:
            name = self.voices.get(language.lower(), language)  # "en", "fr" are in no list, and espeak knows them
            if self._lib.espeak_SetVoiceByName(name.encode()) != 0:
                near = difflib.get_close_matches(language.lower(), self.voices, 3) or ["en-us"]
                raise EngineError(f"espeak-ng has no voice {language!r}: write a language such as {', '.join(near)}.")
            self._language = language
        between = MARKED.split(text)  # IPA that stands in the text already is every second
        spoken = "".join(part if index % 2 else self._read(part) for index, part in enumerate(between))
        return " ".join(spoken.split())

    def _read(self, text: str) -> str:
        parts = PUNCTUATION.split(in_latin(text))
        return "".join(sign if index % 2 else self._spoken(sign) for index, sign in enumerate(parts))

    def _spoken(self, text: str) -> str:
        """Words without punctuation around them, with the spaces around them."""
        if not any(sign.isalnum() for sign in text):
            return " " if text else ""
        buffer = ctypes.create_string_buffer(text.encode())  # kept: espeak reads it clause by clause
        rest = ctypes.c_void_p(ctypes.addressof(buffer))
        clauses: list[str] = []
        while rest.value:
            said = self._lib.espeak_TextToPhonemes(ctypes.byref(rest), _CHARS_UTF8, _IPA)
            clauses.append(FLAG.sub("", (said or b"").decode(errors="ignore")).strip())
        before, after = (" " if end.isspace() else "" for end in (text[0], text[-1]))
        return before + " ".join(filter(None, clauses)) + after
