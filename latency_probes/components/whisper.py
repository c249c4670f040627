"""How soon a small Whisper has the words on this CPU, before one is fetched.

Weights are random, of the published shapes, and quantised as a PoP runs them (int8). What they take does not depend on
what they learnt; how well they hear does, and is not measured.
"""

import os
import statistics
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from rich.table import Table

from latency_probes.components.random_whisper import SAYS, Shape, make_whisper
from voicepipe.audio import RATE
from voicepipe.base.figures import for_tables, keep
from voicepipe.config.engine_config import WhisperConfig
from voicepipe.engines.asr.whisper_model import LoadedWhisper, Passage

SHAPES = {
    "tiny.en": Shape(384, 6, 4, 4, vocabulary=51_865),
    "base.en": Shape(512, 8, 6, 6, vocabulary=51_865),
    "small.en": Shape(768, 12, 12, 12, vocabulary=51_865),
}
SPEECH_S = 3
"""What is heard: twelve words."""
PASSES = 15


def run(json_file: Path | None) -> int:
    """Raises EngineMissing, EngineError, ProbeError: `json_file` cannot be written."""
    config = WhisperConfig()
    console = for_tables()
    table = Table(title=f"Whisper in int8 on one of {os.cpu_count()} cores, {SPEECH_S} s of speech")
    for column in ("model", "words after, p50 ms", "most"):
        table.add_column(column, justify="left" if column == "model" else "right")
    passes = {}
    with console.status("random weights, of the true shapes ...") as status:
        for name, shape in SHAPES.items():
            status.update(f"{name}: {PASSES} passes ...")
            took_ms = passes[name] = _passes(shape, config)
            table.add_row(name, f"{statistics.median(took_ms):.0f}", f"{max(took_ms):.0f}")
    console.print(table)
    keep(json_file, {"passes_ms": passes})
    return 0


def _passes(shape: Shape, config: WhisperConfig) -> list[float]:
    """Milliseconds of each."""
    with TemporaryDirectory() as folder:
        made = make_whisper(Path(folder), SAYS, shape=shape)
        model = LoadedWhisper(WhisperConfig(model=str(made), device="cpu", window_ms=config.window_ms))
    model.warm()
    sound = np.random.default_rng(0).integers(-3000, 3000, SPEECH_S * RATE, np.int16)
    took_ms = []
    for _ in range(PASSES):
        began = time.perf_counter()
        model.read([Passage(sound)])
        took_ms.append(1000 * (time.perf_counter() - began))
    model.unload()
    return took_ms
