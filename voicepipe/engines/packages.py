"""What the chosen engines need beside their models, and do not have here: packages, an environment, a server. Imports
none of it."""

import shutil
from importlib.util import find_spec

from voicepipe.config import Config

PACKAGES = {
    "whisper": "faster_whisper",
    "nemotron": "transformers",
    "vllm": "vllm",
    "kokoro": "kokoro_onnx",
    "neutts": "vllm",
}
"""What an engine imports. coqui-tts is in an environment of its own."""
INSTALLS = {"kokoro_onnx": "'voicepipe[kokoro]'", "faster_whisper": "faster-whisper", "vllm": "vllm==0.32.0",
            "transformers": "torch 'transformers>=5.16', or vllm, which brings both"}  # fmt: skip
OWN_ENVIRONMENT = (
    "make one (python3 -m venv), pip install coqui-tts torch torchaudio there, and set coqui.python to its interpreter"
)


def problem(engine: str, config: Config) -> str:
    """What `engine` lacks, and what to do about it; empty if nothing."""
    if engine == "coqui":
        return coqui(config.coqui.python)
    if engine == "openai" and not config.openai.base_url:
        return "openai: openai.base_url is empty; set it to the server's address, as http://127.0.0.1:8000/v1"
    if engine == "neutts" and not config.neutts.voices:
        return "neutts: it has no voice; add a table [neutts.voices.NAME] with a recording (file, text, consent)"
    package = PACKAGES.get(engine, "")
    if not package or find_spec(package) is not None:
        return ""
    return f"{engine}: its package {package} is not installed; pip install {INSTALLS.get(package, package)}"


def coqui(python: str) -> str:
    """The same of coqui-tts, which lives in the environment of `python`."""
    if not python:
        return f"coqui: coqui-tts needs an environment of its own; {OWN_ENVIRONMENT}"
    return "" if shutil.which(python) else f"coqui: there is no interpreter {python!r}; {OWN_ENVIRONMENT}"


def problems(config: Config) -> list[str]:
    """A sentence for each chosen engine that lacks something."""
    chosen = (config.engines.asr, config.engines.llm, config.engines.tts)
    return [said for engine in chosen if (said := problem(engine, config))]
