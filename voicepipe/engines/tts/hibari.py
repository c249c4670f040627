"""Speech synthesis: hibari, a small natural voice, on a CPU. It speaks English.

A phrase is one run on one thread, as Kokoro's: its first sound comes with its last. A run releases the GIL.

The package has one voice inside, "heart", an American woman's, distilled from Kokoro-82M. It would fetch others from a
hub, which a PoP never does: they are not offered. Of the package the phonemes and the vocoder are used; the
model's graph is ours to run, since it tells when it says what only if it is asked to.
"""

import json
import re
import unicodedata
from collections.abc import AsyncGenerator, Iterator, Mapping
from difflib import SequenceMatcher
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import regex

from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.base.punctuation import in_latin
from voicepipe.base.words import WRITTEN
from voicepipe.base.worker import Worker
from voicepipe.engines import onnx_schema
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.failures import HELLO
from voicepipe.engines.hosting.supervised import IN_PROCESS, SupervisedEngine
from voicepipe.engines.hosting.threaded import ThreadedVoice, loaded
from voicepipe.engines.packages import INSTALLS
from voicepipe.engines.tts.english_sounds import for_hibari
from voicepipe.engines.tts.shaping import pieces, shape
from voicepipe.languages.pronunciation import MARKED

RATE = 24_000
VOICE, LANGUAGE = "heart", "en-us"
LENGTHS = "/Clip_output_0"
"""Inside the graph: how long each phoneme lasts, in units of UNIT samples, 25 ms."""
UNIT = 600
PAD = 0
"""Stands before the first phoneme and behind the last one."""
SEED = 0
"""Seed of the noise that breath and hiss are made of: the same text gives the same sound."""
LINKS = str.maketrans("[]", "  ")
"""hibari reads "[word](/phonemes/)" as an order; a model's text is only text, but for the IPA of an agent's file."""
_SMALL_DIGIT = regex.compile(r"\p{No}")
_LONG_NUMBER = re.compile(r"[0-9]{16,}")
"""Its tables end at 36 digits, and nobody follows a number of 16."""
WARMING = (HELLO, "A table for two, on Friday at seven.", "Zorgle.")
"""Short, long, and what no lexicon has."""
OTHER = "this hibari is built in another way: install hibari-tts as constraints.txt has it"
WORKERS = 2
"""Phrases that are spoken at a time."""
STALL_S = 10.0
"""A piece of up to 300 letters takes a quarter of a second; one that takes so long hangs."""


class HibariTts(SupervisedEngine[ThreadedVoice["HibariModel"]]):
    """The voice engine hibari, with its one voice, "heart". Implements `base.Tts` and `base.ReadsIpa`."""

    rate = RATE

    def __init__(self) -> None:
        super().__init__("speech synthesis", _load, IN_PROCESS)

    def voices(self) -> Mapping[str, str]:
        return {VOICE: LANGUAGE} if self.last else {}

    def voice_for(self, asked: str, language: str = "") -> str:
        return VOICE

    def reads_ipa(self, voice: str) -> bool:
        return True

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, one piece for each 300 letters; `speed` 0.5..2. Raises EngineError, EngineDead."""
        core = self.core
        for piece in pieces(text):
            speak = partial(core.model.speak, piece, min(2.0, max(0.5, speed)))
            speech = await core.ask(speak, first=first, within_s=STALL_S)
            if speech.pcm.size:
                yield speech


async def _load() -> ThreadedVoice["HibariModel"]:
    """Raises EngineMissing: the package is not there; EngineError."""
    worker = Worker("hibari", WORKERS)
    model = await loaded(worker, HibariModel)
    return ThreadedVoice("hibari", worker, model, partial(model.speak, HELLO, 1.0), STALL_S)


class HibariModel:
    """A loaded hibari model. All threads use one session, so that the weights are in memory once; a run takes one
    thread."""

    def __init__(self) -> None:
        """Takes most of a second. Raises EngineMissing: the package is not there, broken, or another than we know."""
        try:
            # Not above: nobody pays for it who has another voice.
            from hibari import dsp
            from hibari.g2p import ASSETS, G2P
            from hibari.g2p.normalize import normalize
        except ImportError as error:
            raise EngineMissing(f"hibari is not installed ({error}): pip install {INSTALLS['hibari']}") from None
        assets = Path(ASSETS)
        try:
            self._symbols: dict[str, int] = json.loads((assets / "vocab.json").read_text("utf-8"))
            self._phonemizer: Any = G2P()
            self._session: Any = _session(timed(assets / "hibari.onnx"))
        except EngineError:
            raise
        except Exception as error:  # protobuf's, json's, onnxruntime's: whatever a broken file is to them
            raise EngineMissing(f"hibari cannot be loaded ({error!r}): reinstall hibari-tts") from None
        self._normalize, self._vocoder = normalize, dsp.synth

    def warm(self) -> None:
        """Speak a little. Raises EngineError."""
        for text in WARMING:
            self.speak(text, 1.0)

    def unload(self) -> None:
        """Give its memory back, at once: errors of phrases may hold the model for long. It speaks no more."""
        self._session = self._phonemizer = None

    def speak(self, text: str, speed: float) -> Speech:
        """Speak one piece of at most 300 letters, as a whole; silent if nothing in it is English. Raises
        EngineError."""
        session = self._session
        if session is None or self._phonemizer is None:
            raise EngineDead("hibari's model was unloaded")
        try:
            phonemes, words = self.read(text)
            if not any(map(str.isalpha, phonemes)):  # The model makes a breath of marks alone.
                return Speech(np.empty(0, np.int16))
            ids = [PAD, *(self._symbols[sign] for sign in phonemes), PAD]
            *spectrum, lengths = session.run(
                None, {"ids": np.asarray([ids], np.int64), "speed": np.asarray([speed], np.float32)}
            )
            sound = self._vocoder(*(part[0] for part in spectrum), np.random.default_rng(SEED))
        except Exception as error:  # onnxruntime's own classes share no root but this
            raise EngineError(f"hibari failed: {error!r}") from error
        begins = np.cumsum(lengths.ravel()) * UNIT  # begins[i]: of the phoneme i, which stands behind the pad
        starts = [(at, round(float(begins[phoneme]))) for at, phoneme in words]
        return shape((np.clip(sound, -1.0, 1.0) * 32767).astype(np.int16), starts, text, RATE)

    def read(self, text: str) -> tuple[str, list[tuple[int, int]]]:
        """The phonemes of `text` that the model knows, and (character of `text`, phoneme) at which words begin."""
        said, read, begins = "", list[str](), list[int]()
        whole = True
        clean = self._normalize(_readable(text))
        for token in self._phonemizer.phonemize_tokens(self._phonemizer.tokenize(clean)):
            if whole:
                read.append("")
                begins.append(len(said))
            read[-1] += token.text
            said += "".join(sign for sign in token.phonemes or "" if sign in self._symbols)
            whole = bool(token.whitespace)
            if whole and said and said[-1] != " ":
                said += " "
        said = said.rstrip()
        written = list(WRITTEN.finditer(text))
        matched = _matched([word.group() for word in written], read)
        return said, [(written[word].start(), min(begins[its], len(said))) for word, its in matched]


def _readable(text: str) -> str:
    """Without what hibari's phonemizer cannot take: it raises at "(¹", and at a number that is too long."""
    between = MARKED.split(text)  # IPA is every second
    return "".join(_order(part) if index % 2 else _text(part) for index, part in enumerate(between))


def _order(ipa: str) -> str:
    """Says hibari's phonemizer what a word's phonemes are."""
    sounds = for_hibari(ipa)
    return f"[word](/{sounds}/)" if sounds else ""


def _text(text: str) -> str:
    text = in_latin(text).translate(LINKS)
    text = _SMALL_DIGIT.sub(lambda found: str(unicodedata.digit(found[0], found[0])), text)
    return _LONG_NUMBER.sub(lambda found: " ".join(found[0]), text)


def _matched(written: list[str], read: list[str]) -> Iterator[tuple[int, int]]:
    """(which word as it is written, which as it is read) that begin together: "Dr." is read as "Doctor", "7:30" as
    several."""
    if len(written) == len(read):
        yield from ((at, at) for at in range(len(written)))
        return
    for _, begin, end, its, until in SequenceMatcher(None, written, read, autojunk=False).get_opcodes():
        for at in range(begin, end):
            if its < until:
                yield at, its + (at - begin) * (until - its) // (end - begin)


def timed(path: Path) -> bytes:
    """The model with its phonemes' lengths as its last output. Raises EngineMissing."""
    model = onnx_schema.load(path)
    if not any(LENGTHS in node.output and node.op_type == "Clip" for node in model.graph.node):
        raise EngineMissing(OTHER)
    model.graph.output.append(onnx_schema.output(LENGTHS))
    return bytes(model.SerializeToString())


def _session(model: bytes) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.enable_cpu_mem_arena = False  # It would keep 80 MB of the longest phrase, and saves no time.
    options.log_severity_level = 4
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
