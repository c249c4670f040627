"""Whisper reads the probes' clips: `python -m tests.latency_probes.read_back WHISPER [SET ...]`.

WHISPER is a folder with faster-whisper's tiny.en, or for other languages another one. Tells the words that are wrong,
by voice and set, and the clips of which it reads more than 30 % wrong: these may be broken.
"""

import argparse
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from faster_whisper import WhisperModel
from numpy.typing import NDArray

from latency_probes import clips
from latency_probes.timeline import WIRE_RATE
from latency_probes.transcripts import errors, words
from voicepipe.audio import RATE, Pcm
from voicepipe.audio.resample import Resampler

LEAD_S, REST_S = 0.3, 0.5
"""Silence before and after what is read."""
BADLY = 0.3


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    start_ms: float
    end_ms: float


class Reader:
    def __init__(self, model: WhisperModel, language: str = "en") -> None:
        self._model, self._language = model, language

    def read(self, clip: Pcm) -> str:
        """The words of int16[n] at 24 kHz."""
        segments, _ = self._model.transcribe(self._heard(clip), language=self._language, beam_size=1, temperature=0)
        return " ".join(segment.text.strip() for segment in segments)

    def words(self, clip: Pcm) -> list[Word]:
        """With their times in the clip."""
        segments, _ = self._model.transcribe(
            self._heard(clip), language=self._language, beam_size=1, temperature=0, word_timestamps=True
        )
        return [
            Word(word.word.strip(), *(1000 * (at - LEAD_S) for at in (word.start, word.end)))
            for segment in segments
            for word in segment.words or ()
        ]

    @staticmethod
    def _heard(clip: Pcm) -> NDArray[np.float32]:
        down = Resampler(WIRE_RATE, RATE)
        lead, rest = (np.zeros(round(seconds * RATE), np.int16) for seconds in (LEAD_S, REST_S))
        heard: NDArray[np.float32] = np.concatenate([lead, down(clip), down.flush(), rest]).astype(np.float32)
        return heard / np.float32(32768)


def main() -> None:
    cli = argparse.ArgumentParser(prog="python -m tests.latency_probes.read_back")
    cli.add_argument("whisper", type=Path)
    cli.add_argument("sets", nargs="*", default=(*clips.KINDS, *clips.GUEST_KINDS, *clips.HARD))
    options = cli.parse_args()
    model = WhisperModel(str(options.whisper), device="cpu", compute_type="int8", cpu_threads=1)
    wrong: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    for kind in options.sets:
        reader = Reader(model, clips.LANGUAGES.get(kind, "en"))
        for clip in clips.load([kind]):
            heard, said = reader.read(clips.speech(clip, 1).pcm), words(clip.text)
            count = errors(said, words(heard))
            wrong[clip.voice, kind].append((count, len(said)))
            wrong[clip.voice, "all"].append((count, len(said)))
            if count > BADLY * len(said):
                print(f"{clip.id}: {clip.text!r} was read as {heard!r}", flush=True)
    for (voice, kind), counts in sorted(wrong.items()):
        missed, total = map(sum, zip(*counts, strict=True))
        right = sum(not count for count, _ in counts)
        print(f"{voice}, {kind}: {100 * missed / total:.1f} % of {total} words wrong, {right} of {len(counts)} right")


if __name__ == "__main__":
    main()
