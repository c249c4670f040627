"""Speech synthesis: coqui-tts (VITS), in processes and an environment of its own: it needs a torch and a torchaudio
that cannot live beside vLLM's torch. What runs there is coqui_child.py.
"""

import asyncio
import os
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config.engine_config import CoquiConfig
from voicepipe.engines import packages
from voicepipe.engines.base import Speech
from voicepipe.engines.hosting.child import Program
from voicepipe.engines.hosting.child_pool import ChildPool
from voicepipe.engines.tts.shaping import pieces, shape, word_starts
from voicepipe.engines.weights import hub

HALF = Path(__file__).with_name("coqui_child.py")


class CoquiTts:
    """The voice engine `coqui`: coqui-tts in child processes. Implements `base.Tts`. Voices are the model's speakers,
    "speaker@language" where it speaks several languages."""

    rate = 22_050

    def __init__(self, config: CoquiConfig) -> None:
        self._config = config
        self._default = config.voice
        self._pool: ChildPool | None = None

    @property
    def alive(self) -> bool:
        """Whether a process is there that can speak. One that ends is replaced."""
        return self._pool is not None and self._pool.alive

    @property
    def restarts(self) -> int:
        return self._pool.restarts if self._pool else 0

    async def start(self) -> None:
        """Load the model in each process and speak a little. Raises EngineMissing (environment, model), EngineError."""
        if self._pool is not None:
            return
        program = await asyncio.to_thread(_program, self._config)
        self._pool = ChildPool(program, self._config.workers)
        try:
            await self._pool.start()
            voices = self.voices()
            self._default = self._config.voice or next(iter(voices))
            if self._default not in voices:
                raise EngineError(
                    f"coqui.voice is {self._default!r}, and {self._config.model} has nobody of that name: "
                    f"choose one of {', '.join(voices)}."
                )
            self.rate = self._pool.about["rate"]
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the processes; what was to be spoken is dropped."""
        pool, self._pool = self._pool, None
        if pool:
            await pool.close()

    def voices(self) -> Mapping[str, str]:
        return self._pool.about.get("voices", {}) if self._pool else {}

    def voice_for(self, asked: str, language: str = "") -> str:
        return asked if asked in self.voices() else self._default

    async def speak(
        self, text: str, *, voice: str = "", speed: float = 1.0, first: bool = False
    ) -> AsyncGenerator[Speech, None]:
        """Speech for `text`, one piece for each 300 letters; `speed` 0.5..2 where the model has a measure of it.

        Raises EngineError: not started, or it failed; EngineDead: the process ended.
        """
        if self._pool is None:
            raise EngineError("CoquiTts has not been started")
        name = self.voice_for(voice)
        for piece in pieces(text):
            asked = {"text": piece, "voice": name, "speed": min(2.0, max(0.5, speed))}
            async with aclosing(self._pool.ask(asked, first=first)) as answer:
                async for said, data in answer:
                    speech = await asyncio.to_thread(_shaped, piece, said, data, self.rate)
                    if speech.pcm.size:
                        yield speech


TRY_CUDA = """
import sys, torch
try:
    torch.zeros(1, device=sys.argv[1])
except Exception as error:
    sys.exit(str(error).partition("\\n")[0])  # general advice follows
"""


def without_cuda(config: CoquiConfig) -> str:
    """Why the torch of `config.python` cannot use `config.device`; empty if it can. Takes as long as its import."""
    tried = [config.python, "-Ic", TRY_CUDA, config.device]
    try:
        ended = subprocess.run(tried, capture_output=True, text=True, timeout=config.start_timeout_s)
    except OSError as error:  # which starting will tell, with what to do
        return str(error)
    except subprocess.TimeoutExpired:
        return f"it did not answer within {config.start_timeout_s:g} s"
    return (ended.stderr.strip().splitlines() or ["it crashed"])[-1] if ended.returncode else ""


def _shaped(piece: str, said: dict[str, Any], data: bytes, rate: int) -> Speech:
    """Takes 3 to 15 ms: too long for the event loop."""
    starts = word_starts(piece, said["symbols"], said["begins"])
    return shape(np.frombuffer(data, np.int16), starts, piece, rate)


def _program(config: CoquiConfig) -> Program:
    if problem := packages.coqui(config.python):
        raise EngineMissing(problem)
    if not config.model:
        raise EngineMissing("coqui.model names none: set it to a directory with config.json and a checkpoint (*.pth).")
    threads = max(1, (os.cpu_count() or 1) // config.workers)
    settings = {"model": str(hub.local(config.model).absolute()), "device": config.device, "threads": threads}
    return Program(
        "coqui", config.python, HALF, settings, start_timeout_s=config.start_timeout_s, stall_s=config.stall_s
    )
