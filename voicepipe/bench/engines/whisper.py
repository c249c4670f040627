"""The real recogniser: faster-whisper as a PoP runs it, on a checkpoint with random weights that says twelve words."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from voicepipe.bench.engines.random_whisper import Shape, make_whisper
from voicepipe.bench.engines.readings import BATCH
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.whisper_model import LoadedWhisper, Passage
from voicepipe.sizing.shapes import AsrShape

SAYS = "we would like to book a table for two at seven tonight"
RATE = 16_000


class WhisperReader:
    """Raises EngineMissing, EngineError: a library that it needs is not here."""

    def __init__(self, shape: AsrShape, window_s: int, *, device: str) -> None:
        widths = Shape(shape.dim, shape.heads, shape.layers, shape.decoder_layers, shape.mels, shape.vocab)
        with TemporaryDirectory() as folder:
            made = make_whisper(Path(folder), SAYS, multilingual=True, shape=widths)
            config = WhisperConfig(model=str(made), device=device, window_ms=1000 * window_s, batch=BATCH)
            self._model = LoadedWhisper(config)
        self._model.warm()
        self._sound = np.random.default_rng(0).integers(-3000, 3000, RATE * window_s, np.int16)

    def read(self, heard_s: list[float], urgent: bool) -> None:
        """One pass."""
        self._model.read([Passage(self._sound[: round(RATE * seconds)]) for seconds in heard_s])
