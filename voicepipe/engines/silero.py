"""Voice activity: Silero v6 through onnxruntime; the model is the one inside faster-whisper's wheel (MIT)."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from voicepipe.audio import Pcm
from voicepipe.errors import EngineError, EngineMissing

WINDOW = 512
"""Samples of one window at 16 kHz: 32 ms."""

CONTEXT = 64
"""Samples of the window before that the model wants to see again."""

STATE = (1, 1, 128)
"""Shape of the recurrent state's two halves."""


def model_path() -> Path:
    """Where the model file lies. Raises EngineMissing when faster-whisper is not installed or ships another model."""
    # find_spec rather than import: importing faster_whisper takes 1-2 s and pulls in CTranslate2.
    spec = importlib.util.find_spec("faster_whisper")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        path = Path(folder) / "assets" / "silero_vad_v6.onnx"
        if path.is_file():
            return path
    raise EngineMissing("silero_vad_v6.onnx was not found: install faster-whisper 1.2.1 or later")


class SileroStream:
    """The detector's memory of one call: the recurrent state and the last 64 samples."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._input = np.zeros((1, CONTEXT + WINDOW), np.float32)
        self._h = np.zeros(STATE, np.float32)
        self._c = np.zeros(STATE, np.float32)

    def probability(self, window: Pcm) -> float:
        """Probability in 0..1 that `window` (int16[512] at 16 kHz) holds voice. Takes about 0.08 ms.

        Raises EngineError for a window of another length.
        """
        if window.shape != (WINDOW,):
            raise EngineError(f"Silero hears windows of {WINDOW} samples, not {window.shape}")
        samples = self._input[0]
        samples[:CONTEXT] = samples[-CONTEXT:]
        np.multiply(window, np.float32(1 / 32768), out=samples[CONTEXT:])
        feeds = {"input": self._input, "h": self._h, "c": self._c}
        output, self._h, self._c = self._session.run(None, feeds)
        return float(output.flat[0])


class SileroVad:
    """One session shared by all calls; small enough (0.08 ms a window) to run on the event loop."""

    def __init__(self) -> None:
        self._session: Any = None

    async def start(self) -> None:
        """Load the model (about 20 ms) and run it once. Raises EngineMissing."""
        if self._session is None:
            self._session = await asyncio.to_thread(_load)
            self.stream().probability(np.zeros(WINDOW, np.int16))

    async def close(self) -> None:
        """Forget the model; streams that exist keep theirs."""
        self._session = None

    def stream(self) -> SileroStream:
        """A new call's detector. Raises EngineError before `start`."""
        if self._session is None:
            raise EngineError("SileroVad has not been started")
        return SileroStream(self._session)


def _load() -> Any:
    options = onnxruntime.SessionOptions()
    # More threads cost more in hand-over than the 0.08 ms that they would share.
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(model_path()), sess_options=options, providers=["CPUExecutionProvider"])
