"""`python -m tests.gpu_engines.nemotron`: what the streaming recogniser takes on this device, before its weights are
fetched.

Weights are random, of the published shape. What they take does not depend on what they learnt; how well they hear does,
and is not measured. Sound is random, and blank is as likely as in speech.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.table import Table

from latency_probes import command
from voicepipe.audio import RATE, Pcm
from voicepipe.base.errors import ConfigError, EngineMissing
from voicepipe.base.figures import for_tables, keep
from voicepipe.config.engine_config import NemotronConfig
from voicepipe.engines.asr.nemotron.front_end import ChunkCutter
from voicepipe.engines.asr.nemotron.steps import Row

TOGETHER = 8
STEPS, LEAST, ENOUGH_S = 15, 3, 15.0
"""Of each kind: so many, but on a slow machine no more than come within so long, and at least these."""


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; returns the exit status."""
    cli = argparse.ArgumentParser(prog="python -m tests.gpu_engines.nemotron", description=__doc__)
    cli.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: %(default)s)")
    cli.add_argument("--tiny", action="store_true", help="a trial, with a small model")
    command.add_json(cli)
    options = cli.parse_args(argv)
    return command.status(lambda: run(options.json, options.device, tiny=options.tiny))


def run(json_file: Path | None, device: str, *, tiny: bool = False) -> int:
    """Raises EngineMissing, EngineError, ConfigError: there is no such device, ProbeError: `json_file` cannot be
    written."""
    try:
        from tests.gpu_engines.random_nemotron import make_nemotron
        from voicepipe.engines.asr.nemotron.model import LoadedNemotron
    except ImportError as error:
        raise EngineMissing(
            f"torch and transformers are needed ({error}); run this in the environment that has vLLM"
        ) from None
    device = checked_device(device)
    console, shape = for_tables(), "a small" if tiny else "the true"
    with console.status(f"random weights, of {shape} shape ..."), TemporaryDirectory() as folder:
        made = make_nemotron(Path(folder), tiny=tiny)
        config = NemotronConfig(model=str(made), device=device, streams=TOGETHER)
        model = LoadedNemotron(config)
    with console.status("warming up ..."):
        model.warm()
    with console.status("steps of each kind ..."):
        took_ms = _steps(model.hear, model.frames)
    alone, together = (statistics.median(took_ms[name]) for name in ("step", f"step of {TOGETHER}"))
    named = "a small model: a trial" if tiny else "Nemotron streaming 0.6B"
    kind, bytes_a_slot = _of_states(model._states)
    console.print(f"{named}, in chunks of {config.chunk_ms} ms: {kind} ({os.cpu_count()} cores)")
    table = Table()
    for column in ("", "p50 ms", "most"):
        table.add_column(column, justify="right" if column else "left")
    for name, each in took_ms.items():
        table.add_row(name, f"{statistics.median(each):.1f}", f"{max(each):.1f}")
    console.print(table)
    console.print(f"memory of a call: {bytes_a_slot / 1e6:.1f} MB")
    console.print(f"A step of {TOGETHER} calls takes {together / alone:.1f} times a step of one")
    keep(json_file, {"steps_ms": took_ms, "bytes_a_call": bytes_a_slot, "device": kind})
    model.unload()
    return 0


def _of_states(states: Any) -> tuple[str, int]:
    """The device and its number format, for people; bytes that the model remembers of a call."""
    import torch

    keys = states.kv
    where = torch.cuda.get_device_name(keys.device) if keys.is_cuda else f"CPU, {torch.get_num_threads()} threads"
    tensors = (keys, *states.convs.values(), states.prediction, states.hidden, states.cell)
    size = sum(each.numel() * each.element_size() for each in tensors)
    return f"{where}, {str(keys.dtype).removeprefix('torch.')}", size // states.slots


def checked_device(name: str) -> str:
    """The device; "auto" is a GPU if there is one. Raises ConfigError: torch sees none of this name."""
    import torch

    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ("auto", "cpu", *(["cuda"] if gpus else []), *gpus)
    if name not in known:
        raise ConfigError(f"--device {name}: torch sees no such device here; choose one of {', '.join(known)}.")
    return ("cuda" if gpus else "cpu") if name == "auto" else name


def _steps(hear: Callable[[list[Row]], object], frames: int) -> dict[str, list[float]]:
    """Milliseconds of each, by kind."""
    chunks, silence = ChunkCutter(frames), ChunkCutter(frames)
    chunks.feed(np.random.default_rng(0).normal(0, 3000, 10 * RATE).astype(np.int16))
    silence.feed(np.zeros(1, np.int16))
    sounds = [chunks.take() for _ in range(20)]

    def rows(count: int, turn: int) -> list[Row]:
        return [Row(slot, turn == 0, [sounds[(turn + slot) % len(sounds)]]) for slot in range(count)]

    def settle(*sound: Pcm) -> Callable[[int], list[Row]]:
        return lambda turn: [Row(0, False, sound, copies=True)]

    quiet = silence.rest()[0]
    kinds: dict[str, Callable[[int], list[Row]]] = {
        "step": lambda turn: rows(1, turn),
        f"step of {TOGETHER}": lambda turn: rows(TOGETHER, turn),
        "settle, one step": settle(sounds[0]),
        "settle, two steps": settle(sounds[0], quiet),
    }
    return {name: _timed(hear, made) for name, made in kinds.items()}


def _timed(hear: Callable[[list[Row]], object], made: Callable[[int], list[Row]]) -> list[float]:
    """Milliseconds of each step but the first."""
    took_ms: list[float] = []
    began = time.perf_counter()
    hear(made(0))
    while len(took_ms) < LEAST or (len(took_ms) < STEPS and time.perf_counter() - began < ENOUGH_S):
        step = time.perf_counter()
        hear(made(1 + len(took_ms)))
        took_ms.append(1000 * (time.perf_counter() - step))
    return took_ms


if __name__ == "__main__":
    sys.exit(main())
