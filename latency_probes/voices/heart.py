"""A woman's voice: hibari's "heart", which is in the package hibari-tts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hibari import SAMPLE_RATE, Hibari, dsp

from latency_probes.voices.graphs import Graph
from latency_probes.voices.natural import Floats

LENGTHS = "/Clip_output_0"
"""Of each number, inside hibari's graph."""
SPECTRUM = ("lh", "theta", "ln", "lr", "phi", "f0")


class Heart:
    """Implements `natural.Network`."""

    name = "heart"
    rate = SAMPLE_RATE
    hop = SAMPLE_RATE // 40
    """25 ms."""

    def __init__(self) -> None:
        self._hibari = Hibari()
        graph = Graph(Path(self._hibari.model_path))
        self._lengths = graph.part(["ids", "speed"], [LENGTHS])
        self._spectrum = graph.part(["ids", LENGTHS], SPECTRUM)

    def phonemes(self, text: str) -> str:
        return "".join(self._hibari.phonemize(text))

    def inputs(self, phonemes: str) -> list[tuple[int, int]]:
        known = self._hibari.vocab
        spoken = [(known[letter], index) for index, letter in enumerate(phonemes) if letter in known]
        return [(0, -1), *spoken, (0, len(phonemes))]

    def lengths(self, numbers: Sequence[int], speed: float, rng: np.random.Generator) -> Floats:
        given = {"ids": np.array([numbers], np.int64), "speed": np.array([speed], np.float32)}
        (lengths,) = self._lengths.run(None, given)
        return np.asarray(lengths, np.float32).reshape(-1)

    def sound(self, numbers: Sequence[int], lengths: Floats, rng: np.random.Generator) -> Floats:
        spectrum = self._spectrum.run(None, {"ids": np.array([numbers], np.int64), LENGTHS: lengths})
        return np.asarray(dsp.synth(*(part[0] for part in spectrum), rng), np.float32)
