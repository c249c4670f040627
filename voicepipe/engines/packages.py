"""Which packages the chosen engines need, and which of them are not installed. Imports none of them."""

from importlib.util import find_spec

from voicepipe.config import Config

PACKAGES = {"whisper": "faster_whisper", "vllm": "vllm", "kokoro": "kokoro_onnx"}
"""What an engine imports. coqui-tts is in an environment of its own."""
INSTALLS = {"kokoro_onnx": "'voicepipe[kokoro]'", "faster_whisper": "faster-whisper"}


def problem(engine: str) -> str:
    """Why `engine` cannot be imported, and what to do about it; empty if it can."""
    package = PACKAGES.get(engine, "")
    if not package or find_spec(package) is not None:
        return ""
    return f"{engine}: its package {package} is not installed; pip install {INSTALLS.get(package, package)}"


def problems(config: Config) -> list[str]:
    """A sentence for each chosen engine whose package is not here."""
    chosen = (config.engines.asr, config.engines.llm, config.engines.tts)
    return [said for engine in chosen if (said := problem(engine))]
