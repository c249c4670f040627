"""NeuCodec, by transformers: a voice's recording -> codes, codes -> sound. Blocking; torch is imported here alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np

from voicepipe.audio import RATE, Pcm
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines.tts.neutts.windows import Sound
from voicepipe.engines.tts.shaping import audible

MEL_BINS, STACKED = 80, 2
"""For the semantic half of the encoder: bands of Kaldi's filter bank, and frames that it reads as one."""

LEAST_S, MOST_S = 2.0, 20.0
"""With a shorter recording the voice is not the person's; a longer one leaves no room for what is to be said."""


def recorded(key: str, file: Path) -> Pcm:
    """The recording of a voice: int16[n] at 16 kHz, its channels mixed. `key`: where the configuration names it. Raises
    EngineMissing: there is no such file; EngineError: it is no WAV file, too short, too long or silent."""
    resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
    try:
        with av.open(str(file), format="wav") as opened:
            frames = [part for frame in opened.decode(audio=0) for part in resampler.resample(frame)]
        frames += resampler.resample(None)
    except FileNotFoundError:
        raise EngineMissing(f"{key}: there is no {file}") from None
    except (av.FFmpegError, ValueError) as error:
        raise EngineError(f"{key}: {file} is no WAV file ({error}): save it as 16-bit PCM") from None
    heard = np.concatenate([np.empty(0, np.int16), *(frame.to_ndarray().reshape(-1) for frame in frames)])
    seconds = heard.size / RATE
    if not LEAST_S <= seconds <= MOST_S:
        raise EngineError(f"{key}: {file} lasts {seconds:.1f} s: record 3 to 15 s (2 to 20 are taken)")
    if audible(heard, RATE) is None:
        raise EngineError(f"{key}: {file} is silent: record somebody who speaks")
    return heard


class NeuCodec:
    """NeuTTS's codec, loaded on `device` (as torch names it): turns codes into sound, and recordings into codes. Raises
    EngineMissing: a package is not there; EngineError: it cannot be loaded."""

    def __init__(self, directory: Path, device: str) -> None:
        try:
            import torch
            from transformers import NeuCodecModel, SeamlessM4TFeatureExtractor
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise EngineMissing(
                f"neutts.codec: NeuCodec cannot be imported ({error}): pip install 'transformers>=5.19'"
            ) from None
        disable_progress_bar()
        self._torch = torch
        self._device = device
        try:
            self._model: Any = NeuCodecModel.from_pretrained(str(directory), dtype=torch.float32).eval()
        except Exception as error:
            raise EngineError(f"neutts.codec: {directory} cannot be loaded as a NeuCodec: {error}") from error
        config = self._model.config
        self.rate: int = config.output_sampling_rate
        self.hop: int = config.hop_length
        """Samples of a code."""
        self.codes = int(np.prod(config.quantization_levels))
        self._encoder_hop: int = config.encoder_hop_length
        # NeuCodec's own extractor has the same front end, and asks for torchaudio, which is not wherever vLLM is.
        self._features = SeamlessM4TFeatureExtractor(num_mel_bins=MEL_BINS, stride=STACKED, sampling_rate=RATE)

    def encode(self, pcm: Pcm) -> list[int]:
        """int16[n] at 16 kHz -> codes of 20 ms."""
        torch = self._torch
        padded = np.zeros((pcm.size // self._encoder_hop + 1) * self._encoder_hop, np.float32)  # more, as in training
        padded[: pcm.size] = pcm / 32768
        features = self._features(padded, sampling_rate=RATE, return_tensors="pt", return_attention_mask=False)
        with torch.inference_mode():
            made = self._model.encode(torch.from_numpy(padded)[None, None], features["input_features"])
        codes: list[int] = made.audio_codes[0, 0].tolist()
        return codes

    def only_decode(self) -> None:
        """From now on: the encoder, two thirds of it, is given back, and the rest goes to its device."""
        for part in ("semantic_encoder", "semantic_adapter", "acoustic_encoder", "fc_encoder"):
            setattr(self._model, part, None)
        self._model.to(self._device)

    def decode(self, windows: Sequence[Sequence[int]]) -> list[Sound]:
        """Codes of windows that are equally long -> float32[hop * codes] each, in -1..1."""
        torch = self._torch
        with torch.inference_mode():
            codes = torch.tensor(windows, dtype=torch.long, device=self._device)[:, None]
            sounds: Sound = self._model.decode(audio_codes=codes).audio_values[:, 0].float().cpu().numpy()
        return list(sounds)
