"""The streaming recogniser as a PoP runs it, with random weights of the true shape."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from voicepipe.bench.engines.readings import BATCH
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.nemotron.chunks import FACTOR
from voicepipe.engines.nemotron.front_end import samples
from voicepipe.engines.nemotron.rows import Row
from voicepipe.errors import EngineMissing

WEIGHTS = 600_000_000


class NemotronReader:
    """Raises EngineMissing, EngineError: a library that it needs is not here."""

    def __init__(self, *, tiny: bool, device: str) -> None:
        try:
            from voicepipe.bench.random_nemotron import make_nemotron
            from voicepipe.engines.nemotron.model import LoadedNemotron
        except ImportError as error:
            raise EngineMissing(
                f"--asr-shape nemotron needs transformers ({error}): pip install transformers"
            ) from None
        with TemporaryDirectory() as folder:
            made = make_nemotron(Path(folder), tiny=tiny)
            self._model = LoadedNemotron(NemotronConfig(model=str(made), device=device, streams=BATCH))
        self._model.warm()
        size = samples(self._model.frames * FACTOR)
        self._sound = np.random.default_rng(0).integers(-3000, 3000, size, np.int16)

    def read(self, heard_s: list[float], urgent: bool) -> None:
        """One step: a chunk of each, or the end of each and a chunk of silence. What was heard before costs nothing."""
        sounds = [self._sound] * (2 if urgent else 1)
        self._model.hear([Row(slot, False, sounds, copies=urgent) for slot in range(len(heard_s))])
