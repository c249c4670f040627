"""Speech synthesis by NeuTTS-Air: a language model whose words are sound, in vLLM, and its codec NeuCodec."""
