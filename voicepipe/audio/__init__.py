"""Sound: PCM blocks with sample positions, levels, G.711, resampling. Imports nothing of voicepipe but errors."""

from voicepipe.audio.pcm import BLOCK, BLOCK_MS, RATE, Block, Pcm, dbfs, ms_to_samples, samples_to_ms
from voicepipe.audio.resample import Resampler

__all__ = ["BLOCK", "BLOCK_MS", "RATE", "Block", "Pcm", "Resampler", "dbfs", "ms_to_samples", "samples_to_ms"]
