"""Which models the configuration's engines need, and which of them are not on this machine."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from voicepipe.base.errors import EngineMissing
from voicepipe.config import Config
from voicepipe.config.engine_config import KokoroConfig, NeuttsConfig, VllmConfig
from voicepipe.engines.weights import hub, known_models
from voicepipe.engines.weights.known_models import KnownModel

KOKORO = "https://github.com/thewh1teagle/kokoro-onnx/releases/download/model-files-v1.1"
"""Where kokoro-onnx's author keeps kokoro-v1.0.onnx and voices-v1.0.bin."""

TOKENIZER, DRAFT = "vllm.args.tokenizer", "vllm.args.speculative_config.model"
LORA = "vllm.lora."
"""Begins the key of each adapter."""


@dataclass(frozen=True, slots=True)
class NeededModel:
    """A model that a configured engine needs."""

    key: str
    """Where the configuration names it: "whisper.model"."""
    name: str
    """A path, or org/name on the hub; empty if it is not configured."""
    by_hand: str = ""
    """How to get it, where it is a path and no hub has it."""
    url: str = ""
    """Where it can be fetched, if it is such a file."""
    revision: str = ""
    """Which of those that the hub has; empty: its main branch."""
    weights: bool = True
    """False: only its texts are needed, for it is a tokenizer."""

    def local(self) -> Path:
        """Its path on this machine. Raises EngineMissing."""
        return hub.local(self.name, self.revision, weights=self.weights)

    @property
    def known(self) -> KnownModel | None:
        """The model of the table that is meant, if one is."""
        return None if self.revision or Path(self.name).expanduser().exists() else known_models.find(self.name)

    def problem(self) -> str:
        """Why it cannot be loaded here, and what to do about it; empty if it can."""
        if not self.name:
            return f"{self.key}: none is named, and the engine needs one: give a directory or a name on the hub"
        try:
            self.local()
        except EngineMissing as error:
            if self.url:
                return f"{self.key}: there is no {self.name}; fetch it with `{hub.PULL}`"
            return f"{self.key}: there is no {self.name}; {self.by_hand}" if self.by_hand else f"{self.key}: {error}"
        return ""


def chosen(config: Config) -> Iterator[NeededModel]:
    """The models of the engines that are chosen, in the order of a turn."""
    if config.engines.asr == "whisper":
        yield NeededModel("whisper.model", config.whisper.model)
    if config.engines.asr == "nemotron":
        yield NeededModel("nemotron.model", config.nemotron.model)
    if config.engines.llm == "vllm":
        yield from vllm(config.vllm)
    if config.engines.tts == "kokoro":
        yield from kokoro(config.kokoro)
    if config.engines.tts == "neutts":
        yield from neutts(config.neutts)
    if config.engines.tts == "coqui":
        yield NeededModel(
            "coqui.model",
            config.coqui.model,
            "fetch it by hand: coqui-tts's `tts --list_models` lists models, `tts --model_name` fetches one",
        )
    if name := turn_model(config):
        yield turn(name)


def vllm(config: VllmConfig) -> Iterator[NeededModel]:
    """The language model; a tokenizer that does not come with it, the draft model of speculative decoding, and LoRA
    adapters."""
    yield NeededModel("vllm.model", config.model, revision=config.revision)
    if tokenizer := config.args.get("tokenizer"):
        revision = str(config.args.get("tokenizer_revision") or "")
        yield NeededModel(TOKENIZER, str(tokenizer), revision=revision, weights=False)
    draft = config.args.get("speculative_config")
    if isinstance(draft, dict) and draft.get("model"):
        yield NeededModel(DRAFT, str(draft["model"]), revision=str(draft.get("revision") or ""))
    for name, path in config.lora.items():
        yield NeededModel(f"{LORA}{name}", path)


def neutts(config: NeuttsConfig) -> Iterator[NeededModel]:
    """The language model and its codec; of each voice, the recording."""
    yield NeededModel("neutts.model", config.model)
    yield NeededModel("neutts.codec", config.codec)
    for name, voice in config.voices.items():
        yield NeededModel(f"neutts.voices.{name}.file", voice.file, "record somebody who consents to it, as a WAV file")


def turn_model(config: Config) -> str:
    """The turn model's name or path; empty: none judges, as beside scripted words, which have nothing to do with the
    voice."""
    return "" if config.engines.asr == "scripted" else config.endpoint.model


def turn(name: str) -> NeededModel:
    """The turn model's file."""
    known = " or ".join(model.name for model in known_models.MODELS if model.name.startswith("smart-turn"))
    by_hand = f"give the path of a Smart Turn v3 model, or a name that `voicepipe models pull` knows: {known}"
    return NeededModel("endpoint.model", name, "" if known_models.find(name) else by_hand)


def kokoro(config: KokoroConfig) -> Iterator[NeededModel]:
    """Kokoro's two files."""
    for key, name in (("model", config.model), ("voices", config.voices)):
        if known_models.find(name):
            yield NeededModel(f"kokoro.{key}", name)
            continue
        url = f"{KOKORO}/{quote(Path(name).name)}"
        by_hand = f"curl -LC - --create-dirs -o {shlex.quote(name)} {url}"
        yield NeededModel(f"kokoro.{key}", name, by_hand, url=url)


def problems(config: Config) -> list[str]:
    """A sentence for each chosen engine's model that is not here."""
    return [problem for model in chosen(config) if (problem := model.problem())]
