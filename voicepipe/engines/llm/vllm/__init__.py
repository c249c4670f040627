"""vLLM. Its library is imported when an engine is started, and not before."""
