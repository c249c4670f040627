"""What the chosen engines lack here beside their models: packages, an environment, a server. Imports
none of it."""

import importlib.metadata
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

from voicepipe.config import Config

PACKAGES = {
    "whisper": "faster_whisper",
    "nemotron": "transformers",
    "vllm": "vllm",
    "hibari": "hibari",
    "espeak": "espeakng_loader",
    "kokoro": "kokoro_onnx",
    "neutts": "vllm",
}
"""The package that each engine imports. coqui-tts is in an environment of its own."""
DISTRIBUTION = "voicepipe-pop"
"""voicepipe's name at PyPI, where "voicepipe" is another project's."""


def extra(name: str) -> str:
    """What pip installs for an extra of voicepipe's."""
    return f"'{DISTRIBUTION}[{name}]'"


INSTALLS = {
    "espeakng_loader": extra("espeak"),
    "kokoro_onnx": extra("kokoro"),
    "faster_whisper": "faster-whisper",
    "hibari": "hibari-tts",
    "vllm": "vllm==0.32.0",
    "ray": "'ray[cgraph]'",
    "transformers": "torch 'transformers>=5.16,<5.24', or vllm, which brings both",
}
OWN_ENVIRONMENT = (
    "make one (python3 -m venv), pip install coqui-tts torch torchaudio there, and set coqui.python to its interpreter"
)


NO_VOICE = "neutts: it has no voice; add a table [neutts.voices.NAME] with a recording (file, text, consent)"


def version(package: str) -> str:
    """The version of a package; empty: it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def lacks(engine: str, config: Config) -> Iterator[str]:
    """What `engine` lacks, each with what to do about it."""
    if engine == "coqui" and (said := coqui(config.coqui.python)):
        yield said
    if engine == "openai" and not config.openai.base_url:
        yield "openai: openai.base_url is empty; set it to the server's address, as http://127.0.0.1:8000/v1"
    if engine == "neutts" and not config.neutts.voices:
        yield NO_VOICE
    if engine == "vllm" and config.vllm.by_ray and find_spec("ray") is None:
        yield f"vllm: args.distributed_executor_backend is ray, which is not installed; pip install {INSTALLS['ray']}"
    package = PACKAGES.get(engine, "")
    if package and find_spec(package) is None:
        yield f"{engine}: its package {package} is not installed; pip install {INSTALLS.get(package, package)}"


def coqui(python: str) -> str:
    """What coqui-tts lacks, which lives in the environment of `python`; empty if nothing."""
    if not python:
        return f"coqui: coqui-tts needs an environment of its own; {OWN_ENVIRONMENT}"
    return "" if shutil.which(python) else f"coqui: there is no interpreter {python!r}; {OWN_ENVIRONMENT}"


def problems(config: Config) -> list[str]:
    """A sentence for each thing that a chosen engine lacks."""
    chosen = (config.engines.asr, config.engines.llm, config.engines.tts)
    return [said for engine in chosen for said in lacks(engine, config)]
