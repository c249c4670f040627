"""vLLM. Its library is imported when an engine is started, and not before."""

from voicepipe.engines.vllm.vllm_llm import VllmLlm

__all__ = ["VllmLlm"]
