"""People's recordings with their texts: the telephone prompts of Debian's packages asterisk-core-sounds-*.

They are read from the installed packages and are no part of this one (CC-BY-SA 3.0). Only prompts whose names begin
with a to m are read, texts and sounds: the others are kept for checks of what was made with these.
"""

import gzip
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import msgspec

from voicepipe.base.errors import ProbeError

LANGUAGES = {
    "en": "en_US_f_Allison", "es": "es_MX_f_Allison", "fr": "fr_CA_f_June", "it": "it_IT_m_Carlo",
    "ru": "ru_RU_f_IvrvoiceRU",
}  # fmt: skip
"""Each language's folder of recordings."""
SHARE = Path("/usr/share")
PAUSES = Path(__file__).parent / "utterances" / "prompt_pauses.json"
WORDS = (5, 16)
LETTERS = r"[^\W\d_]+(?:['’-][^\W\d_]+)*"
PLAIN = re.compile(rf"{LETTERS}[.,;:!?]?(?:\s+{LETTERS}[.,;:!?]?)*")
LINE = re.compile(r"([a-mA-M][\w/-]*):\s*(.+)")
BYTES = 1600
"""Least for each word, 100 ms at 8 kHz: some recordings are empty."""


class Pause(msgspec.Struct, frozen=True):
    """Where somebody might pause in a prompt. Found by `python -m tests.latency_probes.prompt_pauses`."""

    cut_ms: int
    words: int
    """So many stand before it."""
    crc: int
    """Of the recording in which it was found, zlib's."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """`file`: WAV, 8 kHz, one channel."""

    name: str
    text: str
    file: Path

    @property
    def words(self) -> list[str]:
        return self.text.split()


@lru_cache
def read(language: str, share: Path = SHARE) -> tuple[Prompt, ...]:
    """The prompts of 5 to 16 plain words, by name. Raises ProbeError: the packages are not installed."""
    package = f"asterisk-core-sounds-{language}"
    texts = share / "doc" / package / f"core-sounds-{language}.txt.gz"
    folder = share / "asterisk" / "sounds" / LANGUAGES[language]
    if not texts.exists() or not folder.exists():
        raise ProbeError(f"people's recordings are not installed: apt install {package} {package}-wav")
    return tuple(sorted(_plain(gzip.decompress(texts.read_bytes()).decode(), folder), key=lambda each: each.name))


def _plain(lines: str, folder: Path) -> Iterator[Prompt]:
    for line in lines.splitlines():
        found = LINE.fullmatch(line.strip())
        if not found or not PLAIN.fullmatch(found[2]) or not WORDS[0] <= len(found[2].split()) <= WORDS[1]:
            continue
        prompt = Prompt(found[1], " ".join(found[2].split()), folder / f"{found[1]}.wav")
        if prompt.file.exists() and prompt.file.stat().st_size >= BYTES * len(prompt.words):
            yield prompt


@lru_cache
def pauses(language: str, share: Path = SHARE, table: Path = PAUSES) -> dict[Prompt, Pause]:
    """The prompts that have a place for a pause, with it. Raises ProbeError as `read`."""
    known = msgspec.json.decode(table.read_bytes(), type=dict[str, dict[str, Pause]]).get(language, {})
    placed = {prompt: known[prompt.name] for prompt in read(language, share) if prompt.name in known}
    # Another edition of the recordings has its words elsewhere.
    return {prompt: pause for prompt, pause in placed.items() if zlib.crc32(prompt.file.read_bytes()) == pause.crc}
