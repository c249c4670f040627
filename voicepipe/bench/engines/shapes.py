"""Shapes that are measured and have no place in `voicepipe plan`."""

from dataclasses import dataclass

from voicepipe.sizing.shapes import LlmShape


@dataclass(frozen=True)
class TtsShape:
    """Kokoro: StyleTTS 2 with an iSTFTNet vocoder."""

    hidden: int = 512
    style: int = 128
    bert: int = 768
    bert_heads: int = 12
    bert_ffn: int = 2048
    bert_layers: int = 12
    """Passes through one layer's weights."""
    decoder: int = 1024
    symbols: int = 178


TINY = "tiny"
"""For machines without a GPU."""
TINY_LLM = LlmShape(2, 128, 4, 2, 32, 256, 512)
TTSS = {
    "kokoro-82m": TtsShape(),
    TINY: TtsShape(hidden=64, style=16, bert=64, bert_heads=4, bert_ffn=128, bert_layers=2, decoder=64),
}
"""hexgrad's, and a tiny one."""
