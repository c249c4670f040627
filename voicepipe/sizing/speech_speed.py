"""How long recognition and synthesis take: Whisper by CTranslate2, Kokoro or VITS.

Anchors: faster-whisper with large-v3-turbo on an RTX 4090 205 to 219 ms for 2 to 10 s of sound, since it always reads
30; Kokoro 0.3 s of GPU time for 10 s of speech, which makes a first phrase 30 to 60 ms.
"""

from voicepipe.sizing.gpu_models import GpuModel
from voicepipe.sizing.shapes import AsrShape

FRAMES_A_SECOND = 50
"""Of Whisper's encoder."""
ENCODING = 0.11
"""Share of the data sheet's FLOPS that CTranslate2's encoder reaches."""
DECODING = 0.5
"""Share of the bandwidth that its decoder reaches."""
LAYER_MS = 0.2
"""Launching one layer of the decoder's kernels, one by one."""
CALL_MS, FEATURES_MS = 10.0, 1.5
"""On the CPU: a pass; the spectrogram of one second."""
TOKENS_A_SECOND = 3.5
"""Of speech."""
RTF = {"kokoro": 0.03, "coqui": 0.02}
"""GPU time of one second of speech, in seconds."""
SPEAK_MS = 15.0
"""Of each phrase: phonemes on the CPU, launching."""


def encoder_flops(shape: AsrShape, seconds: float) -> float:
    """For a window of so many seconds, silence included."""
    frames = seconds * FRAMES_A_SECOND
    matrices = 12 * shape.dim * shape.dim * shape.layers
    return 2 * matrices * frames + 4 * shape.layers * frames * frames * shape.dim


def pass_gpu_ms(shape: AsrShape, gpu: GpuModel, window_s: float, speech_s: float) -> float:
    """The part of a pass in which the GPU works."""
    encode = encoder_flops(shape, window_s) / (gpu.bf16_tflops * ENCODING) / 1e9
    token = 2 * shape.decoder / (gpu.bandwidth_gbs * DECODING) / 1e6 + LAYER_MS * shape.decoder_layers
    return encode + (speech_s * TOKENS_A_SECOND + 4) * token  # 4: the prompt's, and the end


def pass_ms(shape: AsrShape, gpu: GpuModel, window_s: float, speech_s: float) -> float:
    """One utterance with `speech_s` seconds of speech, read in a window of `window_s`. A batch is no faster than a loop
    (OpenNMT/CTranslate2#1648)."""
    return CALL_MS + FEATURES_MS * window_s + pass_gpu_ms(shape, gpu, window_s, speech_s)


def speak_ms(engine: str, speech_s: float) -> float:
    """One phrase of so many seconds. Not scaled by GPU: the anchor does not say on which it was, and a phrase is bound
    by launching small kernels more than by what a data sheet tells."""
    return SPEAK_MS + 1000 * RTF[engine] * speech_s
