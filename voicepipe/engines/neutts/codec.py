"""NeuCodec, by transformers: recordings -> codes, codes -> sound. Blocking; torch is imported here alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from voicepipe.audio import Pcm
from voicepipe.engines.neutts.windows import Sound
from voicepipe.errors import EngineError, EngineMissing

MEL_BINS, MEL_LOW, FRAME, SHIFT, FFT = 80, 20, 400, 160, 512
"""Of the semantic half of the encoder: Kaldi's filter bank, frames and steps in samples at 16 kHz."""
STACKED = 2
"""Frames that it reads as one."""


class Codec:
    """`device` as torch names it. Raises EngineMissing: a package; EngineError: it cannot be loaded."""

    def __init__(self, directory: Path, device: str) -> None:
        try:
            import torch
            from transformers import NeuCodecModel
            from transformers.utils.logging import disable_progress_bar
        except ImportError as error:
            raise EngineMissing(
                f"neutts needs torch and transformers 5.17 or newer, as vLLM brings ({error})"
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

    def encode(self, pcm: Pcm) -> list[int]:
        """int16[n] at 16 kHz -> codes of 20 ms."""
        torch = self._torch
        padded = np.zeros((pcm.size // self._encoder_hop + 1) * self._encoder_hop, np.float32)  # more, as in training
        padded[: pcm.size] = pcm / 32768
        with torch.inference_mode():
            made = self._model.encode(torch.from_numpy(padded)[None, None], torch.from_numpy(_features(padded))[None])
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


def _features(sound: Sound) -> Sound:
    """float32[n / 320, 160]: two steps of the filter bank as one, each band with mean 0 and variance 1.

    transformers' own extractor asks for torchaudio, which is not wherever vLLM is.
    """
    from transformers.audio_utils import mel_filter_bank, spectrogram, window_function

    filters = mel_filter_bank(
        num_frequency_bins=FFT // 2 + 1, num_mel_filters=MEL_BINS, min_frequency=MEL_LOW, max_frequency=8000,
        sampling_rate=16_000, norm=None, mel_scale="kaldi", triangularize_in_mel_space=True,
    )  # fmt: skip
    bands = spectrogram(
        sound * 32768, window_function(FRAME, "povey", periodic=False), frame_length=FRAME, hop_length=SHIFT,
        fft_length=FFT, power=2.0, center=False, preemphasis=0.97, mel_filters=filters, log_mel="log",
        mel_floor=1.192092955078125e-07, remove_dc_offset=True,
    ).T  # fmt: skip
    even = (bands - bands.mean(0)) / np.sqrt(bands.var(0, ddof=1) + 1e-7)
    whole = even[: len(even) // STACKED * STACKED]
    return np.asarray(whole.reshape(-1, STACKED * MEL_BINS), np.float32)
