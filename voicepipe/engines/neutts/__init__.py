"""Speech synthesis by NeuTTS-Air: a language model whose words are sound, in vLLM, and its codec NeuCodec."""

from voicepipe.engines.neutts.neutts_tts import NeuTts

__all__ = ["NeuTts"]
