"""Voice activity: Silero v6 through onnxruntime; the model is the one inside faster-whisper's wheel (MIT)."""

import asyncio
import importlib.util
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from voicepipe.audio import Pcm
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines import onnx_schema

WINDOW = 512
"""Samples of one window at 16 kHz: 32 ms. `turn/vad.py` has the same number: the front end cuts windows by that."""

CONTEXT = 64
"""Samples of the window before that the model wants to see again."""

STATE = 128
"""Numbers in each of the two halves of the recurrent state."""

ROWS = 64
"""Rows of the tables of calls' memories, at first."""


def model_path() -> Path:
    """The path of the model's file. Raises EngineMissing when faster-whisper is not installed or ships another
    model."""
    # find_spec rather than import: importing faster_whisper takes 1-2 s and pulls in CTranslate2.
    spec = importlib.util.find_spec("faster_whisper")
    folders = list(spec.submodule_search_locations or ()) if spec else []
    for folder in folders:
        path = Path(folder) / "assets" / "silero_vad_v6.onnx"
        if path.is_file():
            return path
    raise EngineMissing("silero_vad_v6.onnx was not found: install faster-whisper 1.2.1 or later")


class SileroStream:
    """The detector's memory of one call: a row in the tables of all calls."""

    def __init__(self, row: int) -> None:
        self.row = row


class SileroVad:
    """Silero's voice detector, one session for all calls. A window takes 0.08 ms, so it runs on the event loop.
    Implements `base.Vad`."""

    def __init__(self) -> None:
        self._session: Any = None
        # Of all calls, a row each: the recurrent state's two halves, and the last samples.
        self._h = np.zeros((ROWS, STATE), np.float32)
        self._c = np.zeros((ROWS, STATE), np.float32)
        self._context = np.zeros((ROWS, CONTEXT), np.float32)
        self._free = list(range(ROWS))

    async def start(self) -> None:
        """Load the model (about 20 ms) and run it once. Raises EngineMissing."""
        if self._session is None:
            self._session = await asyncio.to_thread(_load)
            self.probabilities([(self.stream(), np.zeros(WINDOW, np.int16))])

    async def close(self) -> None:
        """Forget the model: it detects nothing any more."""
        self._session = None

    def stream(self) -> SileroStream:
        """A new call's memory. Raises EngineError before `start`."""
        self._started()
        if not self._free:
            rows = len(self._h)
            self._h, self._c, self._context = (
                np.pad(t, ((0, rows), (0, 0))) for t in (self._h, self._c, self._context)
            )
            self._free.extend(range(rows, 2 * rows))
        row = self._free.pop()
        for table in (self._h, self._c, self._context):
            table[row] = 0
        stream = SileroStream(row)
        weakref.finalize(stream, self._free.append, row)
        return stream

    def probabilities(self, asked: Sequence[tuple[SileroStream, Pcm]]) -> list[float]:
        """As `base.Vad.probabilities`, for several calls in one pass. Raises EngineError before `start`, and for a
        window of another length."""
        session = self._started()
        if wrong := next((window.shape for _, window in asked if window.shape != (WINDOW,)), None):
            raise EngineError(f"Silero hears windows of {WINDOW} samples, not {wrong}")
        rows = [stream.row for stream, _ in asked]
        sound = np.empty((len(rows), CONTEXT + WINDOW), np.float32)
        sound[:, :CONTEXT] = self._context[rows]
        np.multiply([window for _, window in asked], np.float32(1 / 32768), out=sound[:, CONTEXT:])
        output, h, c = session.run(None, {"input": sound, "h": self._h[None, rows], "c": self._c[None, rows]})
        self._h[rows], self._c[rows], self._context[rows] = h[0], c[0], sound[:, -CONTEXT:]
        found: list[float] = output.reshape(-1).tolist()
        return found

    def _started(self) -> Any:
        if self._session is None:
            raise EngineError("SileroVad has not been started")
        return self._session


def _load() -> Any:
    options = onnxruntime.SessionOptions()
    # More threads cost more in hand-over than the 0.08 ms that they would share.
    options.inter_op_num_threads = options.intra_op_num_threads = 1
    options.enable_cpu_mem_arena = False
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(for_many(), sess_options=options, providers=["CPUExecutionProvider"])


def for_many() -> bytes:
    """The model, made for windows of several streams. As it comes, they are one stream's, one after the other: its
    encoder's batch is the LSTM's time. Here it is the LSTM's batch, each with a state of its own. Raises
    EngineMissing."""
    model = onnx_schema.load(model_path())
    lstm = next(node for node in model.graph.node if node.op_type == "LSTM")
    before = next(node for node in model.graph.node if lstm.input[0] in node.output)
    if before.op_type != "Transpose" or list(before.attribute[0].ints) != [0, 2, 1]:
        raise EngineMissing("this Silero is built in another way: install faster-whisper as constraints.txt has it")
    before.attribute[0].ints[:] = [2, 0, 1]
    for value in (*model.graph.input, *model.graph.output):
        if value.name in ("h", "c", "hn", "cn"):
            value.type.tensor_type.shape.dim[1].dim_param = "streams"
    return bytes(model.SerializeToString())
