"""Finds where people might pause in the recorded prompts, once:
`python -m tests.latency_probes.prompt_pauses WHISPER LANGUAGE ...`.

WHISPER is a folder with faster-whisper's tiny.en, or base for other languages. Writes their part of
latency_probes/utterances/prompt_pauses.json: for each prompt the quietest place between two words of a phrase, behind
the second word and before the last but one. Whisper says where words end, and reads both halves again: where they are
not heard as their words, no word was cut but one.
"""

import argparse
import difflib
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
from faster_whisper import WhisperModel

from latency_probes import clips, prompts
from latency_probes.prompts import PAUSES, Pause, Prompt
from latency_probes.timeline import WIRE_RATE, frame_levels, voiced_span
from latency_probes.transcripts import errors, words
from tests.latency_probes.read_back import Reader, Word
from voicepipe.audio import Pcm, dbfs

INSIDE = 2
"""Words that stand before a pause and behind it, at least."""
NEAR_MS = 120
"""Whisper's times are wrong by so much."""
QUIET_MS = 40
QUIET_DB = 18
"""A place between words is so much quieter than the whole, for so long."""
FRAME_MS = 10


def main() -> None:
    cli = argparse.ArgumentParser(prog="python -m tests.latency_probes.prompt_pauses")
    cli.add_argument("whisper", type=Path)
    cli.add_argument("languages", nargs="+", choices=prompts.LANGUAGES)
    options = cli.parse_args()
    model = WhisperModel(str(options.whisper), device="cpu", compute_type="int8", cpu_threads=1)
    table = msgspec.json.decode(PAUSES.read_bytes(), type=dict[str, dict[str, Pause]])
    for language in options.languages:
        table[language] = found = placed(Reader(model, language), language)
        PAUSES.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
        print(f"{language}: {len(found)} of {len(prompts.read(language))} prompts")


def placed(reader: Reader, language: str) -> dict[str, Pause]:
    """A place for a pause in each prompt that has a good one."""
    found = {}
    for prompt in prompts.read(language):
        pause = next(good_places(reader, prompt, clips.decode(prompt.file)), None)
        print(f"{prompt.name}: {shown(prompt, pause)}", flush=True)
        if pause:
            found[prompt.name] = pause
    return found


def shown(prompt: Prompt, pause: Pause | None) -> str:
    if pause is None:
        return "none"
    return f"{' '.join(prompt.words[: pause.words])} | {' '.join(prompt.words[pause.words :])}, {pause.cut_ms} ms"


def good_places(reader: Reader, prompt: Prompt, clip: Pcm) -> Iterator[Pause]:
    """Places for a pause, the quietest first, whose halves are heard as their words."""
    crc = zlib.crc32(prompt.file.read_bytes())
    for cut_ms, count in places(reader.words(clip), prompt, clip):
        halves = np.split(clip, [cut_ms * WIRE_RATE // 1000])
        said = [" ".join(part) for part in (prompt.words[:count], prompt.words[count:])]
        if all(same(text, reader.read(half)) for text, half in zip(said, halves, strict=True)):
            yield Pause(cut_ms, count, crc)


def same(text: str, heard: str) -> bool:
    """Whether half a phrase is understood: the words at the cut, where only one of the others may be wrong."""
    return errors(words(text), words(heard)) <= 1


def places(heard: list[Word], prompt: Prompt, clip: Pcm) -> list[tuple[int, int]]:
    """Milliseconds of cuts, and the words before each, the quietest first."""
    said, read = (["".join(words(word)) for word in each] for each in (prompt.words, [word.text for word in heard]))
    matcher = difflib.SequenceMatcher(None, said, read)
    known = {block.a + at: heard[block.b + at] for block in matcher.get_matching_blocks() for at in range(block.size)}
    levels = frame_levels(clip)
    width = QUIET_MS // FRAME_MS
    smooth = 10 * np.log10(np.convolve(10 ** (levels / 10), np.ones(width) / width, "valid"))
    first, last = voiced_span(clip)
    limit = dbfs(clip[first:last]) - QUIET_DB
    found = []
    for count in range(INSIDE, len(prompt.words) - INSIDE + 1):
        if prompt.words[count - 1][-1] in ".,;:!?" or not {count - 1, count} <= known.keys():
            continue  # Not inside a phrase, or it is not known which word is which.
        left, right = known[count - 1], known[count]
        low = max(left.end_ms - NEAR_MS, left.start_ms + NEAR_MS / 2)
        high = min(right.start_ms + NEAR_MS, right.end_ms - NEAR_MS / 2)
        frames = range(int(low) // FRAME_MS, max(int(low), int(high)) // FRAME_MS + 1)
        level, frame = min((float(smooth[at]), at) for at in frames if at < smooth.size)
        if level < limit:
            found.append((level, frame * FRAME_MS + QUIET_MS // 2, count))
    return [(cut, count) for _, cut, count in sorted(found)]


if __name__ == "__main__":
    main()
