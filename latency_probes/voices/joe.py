"""A man's voice: Piper's joe. Its phonemes are espeak-ng's.

The network draws noise in two places. Both become inputs, so that the same clips are made every time.
"""

import ctypes
import json
import re
from collections.abc import Sequence
from pathlib import Path

import espeakng_loader
import numpy as np

from latency_probes.voices.graphs import Graph
from latency_probes.voices.natural import Floats

LENGTHS = "/Ceil_output_0"
"""Of each number, inside Piper's graph."""
LENGTHS_NOISE, SOUND_NOISE = "/dp/RandomNormalLike_output_0", "/RandomNormalLike_output_0"
CHANNELS = 192
"""Of what the sound is made of."""
PAD, BEGINS, ENDS = "_^$"
TEXT = ("input", "input_lengths", "scales")
# speak_lib.h
_SYNCHRONOUS, _UTF8, _IPA = 2, 1, 2


class Joe:
    """Implements `natural.Network`."""

    name = "joe"
    rate = 22_050
    hop = 256

    def __init__(self, path: Path) -> None:
        """`path`: en_US-joe-medium.onnx, with its .json beside it."""
        config = json.loads(path.with_name(f"{path.name}.json").read_text())
        self._numbers: dict[str, list[int]] = config["phoneme_id_map"]
        self._scales = config["inference"]
        graph = Graph(path, {LENGTHS_NOISE: [1, 2, "phonemes"], SOUND_NOISE: [1, CHANNELS, "units"]})
        self._lengths = graph.part([*TEXT, LENGTHS_NOISE], [LENGTHS])
        self._sound = graph.part([*TEXT, LENGTHS, SOUND_NOISE], ["output"])
        self._espeak = ctypes.CDLL(espeakng_loader.get_library_path())
        self._espeak.espeak_Initialize(_SYNCHRONOUS, 0, espeakng_loader.get_data_path().encode(), 0)
        self._espeak.espeak_TextToPhonemes.restype = ctypes.c_char_p
        if self._espeak.espeak_SetVoiceByName(b"gmw/en-US") != 0:
            raise RuntimeError("espeak-ng has no American English: reinstall espeakng-loader")

    def phonemes(self, text: str) -> str:
        parts = re.split(r"\s*([,.?])\s*", text)  # espeak-ng keeps no punctuation
        spoken = [part if part in ",.?" else self._phonemes(part) for part in parts if part]
        return re.sub(r" (?=[,.?])", "", " ".join(spoken))

    def inputs(self, phonemes: str) -> list[tuple[int, int]]:
        numbers = [(BEGINS, -1), (PAD, -1)]
        for index, letter in enumerate(phonemes):
            if letter in self._numbers:
                numbers += [(letter, index), (PAD, index)]
        return [(self._numbers[letter][0], index) for letter, index in (*numbers, (ENDS, len(phonemes)))]

    def lengths(self, numbers: Sequence[int], speed: float, rng: np.random.Generator) -> Floats:
        noise = rng.standard_normal((1, 2, len(numbers)), np.float32)
        (lengths,) = self._lengths.run(None, self._text(numbers, speed) | {LENGTHS_NOISE: noise})
        return np.asarray(lengths, np.float32).reshape(-1)

    def sound(self, numbers: Sequence[int], lengths: Floats, rng: np.random.Generator) -> Floats:
        noise = rng.standard_normal((1, CHANNELS, int(lengths.sum())), np.float32)
        given = {LENGTHS: lengths.reshape(1, 1, -1), SOUND_NOISE: noise}
        (sound,) = self._sound.run(None, self._text(numbers, 1.0) | given)
        return np.asarray(sound, np.float32).reshape(-1)

    def _text(self, numbers: Sequence[int], speed: float) -> dict[str, object]:
        scales = (self._scales["noise_scale"], self._scales["length_scale"] / speed, self._scales["noise_w"])
        return {
            "input": np.array([numbers], np.int64),
            "input_lengths": np.array([len(numbers)], np.int64),
            "scales": np.array(scales, np.float32),
        }

    def _phonemes(self, text: str) -> str:
        left, spoken = ctypes.c_char_p(text.encode()), []
        while left.value:
            spoken.append(self._espeak.espeak_TextToPhonemes(ctypes.byref(left), _UTF8, _IPA).decode())
        return " ".join(spoken)
