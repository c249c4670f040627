"""Sound: PCM blocks with sample positions, levels, codecs, resampling. Imports nothing of voicepipe but errors.

What needs PyAV is imported by its own name (`resample`, `opus`): a directory reads configurations without it.
"""

from voicepipe.audio.pcm import BLOCK, BLOCK_MS, RATE, Block, Pcm, dbfs, ms_to_samples, samples_to_ms

__all__ = ["BLOCK", "BLOCK_MS", "RATE", "Block", "Pcm", "dbfs", "ms_to_samples", "samples_to_ms"]
