"""Is the turn complete, by the sound of the voice? Smart Turn v3 (an ONNX file, BSD-2-Clause) through onnxruntime.

Whisper's encoder with a head on it: it hears up to the last 8 s, that is melody and pace besides words. It knows 23
languages, none of which the words' rules know but English. About 10 ms on one core.
"""

import asyncio
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from voicepipe.audio import RATE, Pcm
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.base.worker import Worker
from voicepipe.engines.weights import hub, needed_models

HEARS = 8 * RATE
"""Samples; what is shorter is padded in front, so that the end of the voice stands at the end."""
INPUT = "input_features"
"""float32[1, 80, 800], log-mel as Whisper has it -> float32[1, 1], the probability."""


class SmartTurnStream:
    """The last 8 s of one utterance, for the turn model Smart Turn. Implements `base.TurnStream`."""

    def __init__(self, model: "SmartTurn") -> None:
        self._model = model
        self._kept: deque[Pcm] = deque()
        self._samples = 0

    def feed(self, pcm: Pcm) -> None:
        """Take more sound: int16[n] at 16 kHz."""
        self._kept.append(pcm)
        self._samples += pcm.size
        while self._samples - self._kept[0].size >= HEARS:
            self._samples -= self._kept.popleft().size

    async def complete(self) -> float:
        """Probability in 0..1 that the turn is complete where the sound ends now. Raises EngineError."""
        sound = np.concatenate([*self._kept, np.empty(0, np.int16)])
        return await self._model.probability(sound[-HEARS:])


class SmartTurn:
    """The turn model Smart Turn, one session for all calls, on a thread of its own. Implements `base.TurnModel`."""

    def __init__(self, model: str) -> None:
        """`model`: a file, or the name of a known model."""
        self._model = model
        self._session: Any = None
        self._features: Any = None
        self._worker: Worker | None = None

    async def start(self) -> None:
        """Load the model and run it once. Raises EngineMissing; EngineError: the file is not a Smart Turn model."""
        if self._session is not None:
            return
        self._session, self._features = await asyncio.to_thread(self._load)
        self._worker = Worker("smart-turn")
        await self.probability(np.zeros(0, np.int16))

    async def close(self) -> None:
        """Forget the model; what is asked for is dropped."""
        self._session, worker, self._worker = None, self._worker, None
        if worker:
            worker.close()

    def stream(self) -> SmartTurnStream:
        """A new utterance."""
        return SmartTurnStream(self)

    async def probability(self, sound: Pcm) -> float:
        """The probability (0..1) that the turn is complete after int16[n <= 8 s] at 16 kHz. Raises EngineError."""
        if self._session is None or self._worker is None:
            raise EngineError("SmartTurn has not been started")
        return await self._worker.submit(_run, self._session, self._features, sound)

    def _load(self) -> tuple[Any, Any]:
        # It takes CTranslate2 along, one second; nobody pays that who has no turn model.
        from faster_whisper.feature_extractor import FeatureExtractor

        path = _found(self._model)
        options = onnxruntime.SessionOptions()
        options.inter_op_num_threads = options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:  # onnxruntime's own classes share no root but this
            raise EngineError(f"{path} cannot be loaded as an ONNX model: {error}") from None
        if [given.name for given in session.get_inputs()] != [INPUT]:
            raise EngineError(f"{path} is not a Smart Turn v3 model: its input is not {INPUT!r}")
        return session, FeatureExtractor()


def _found(model: str) -> Path:
    """Its file. Raises EngineMissing."""
    if problem := needed_models.turn(model).problem():
        raise EngineMissing(problem)
    return hub.local_file(model, ".onnx")


def _run(session: Any, features: Any, sound: Pcm) -> float:
    heard: NDArray[np.float32] = np.zeros(HEARS, np.float32)
    heard[HEARS - sound.size :] = sound
    # As it was trained: the mean and the variance of all 8 s, padding included.
    heard = (heard - heard.mean()) / np.sqrt(heard.var() + 1e-7)
    try:
        (output,) = session.run(None, {INPUT: features(heard, padding=0)[None].astype(np.float32)})
    except Exception as error:
        raise EngineError(f"the turn model failed: {error}") from None
    return float(output.flat[0])
