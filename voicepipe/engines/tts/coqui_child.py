"""coqui-tts, as the interpreter runs it that has it: the half behind `coqui.py`. `hosting/child_main.py` calls `load`.

Made for VITS, whose durations tell when each word is said; other models of coqui-tts that synthesise in one step speak,
too, and tell no times.
"""

import logging
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from TTS.config import load_config
from TTS.tts.models import setup_model

FILES = ("speakers_file", "d_vector_file", "language_ids_file")
"""Keys of config.json that name other files, by where they lay when the model was trained."""
NAMES = ("model_file.pth", "model.pth", "best_model.pth", "checkpoint.pth")
"""What checkpoints are called; any other name is known if it is the only *.pth."""
WARMING = ("Hello.", "A table for two, on Friday at seven.", "We are open from Tuesday to Sunday, from noon to ten.")


def load(settings: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """`settings`: model (a directory), device (cpu, cuda, cuda:1), threads (of a CPU).

    `about`: rate in Hz, voices (name -> language), trial. An answer to {text, voice, speed} is one part: the sound as
    int16, and {symbols, begins}: what the model read, a character each, and the sample at which it says it.
    """
    logging.getLogger("TTS").setLevel(logging.WARNING)  # else it notes every text
    torch.set_num_threads(settings["threads"])
    voice = CoquiVoice(Path(settings["model"]), device(settings["device"]))
    for text in WARMING:
        voice.speak(text, next(iter(voice.voices)), 1.0)

    def answer(head: dict[str, Any], data: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
        yield voice.speak(head["text"], head["voice"], head["speed"])

    voices = {name: language for name, (_, language) in voice.voices.items()}
    trial = {"text": WARMING[0], "voice": next(iter(voices)), "speed": 1.0}
    return {"rate": voice.rate, "voices": voices, "trial": trial}, answer


def device(name: str) -> str:
    """torch's name for it. Raises RuntimeError: it is not there."""
    if name == "cpu":
        return "cpu"
    number = int(name.partition(":")[2] or 0)
    if number >= torch.cuda.device_count():
        raise RuntimeError(
            f"coqui.device is {name!r}, and torch {torch.__version__} of coqui.python sees {torch.cuda.device_count()} "
            'GPUs: install a build of torch there that fits the driver, or set coqui.device = "cpu"'
        )
    return f"cuda:{number}"


class CoquiVoice:
    """A loaded coqui-tts model. It speaks one text at a time."""

    def __init__(self, folder: Path, where: str) -> None:
        config = load_config(folder / "config.json")
        for table in (config, config.model_args):
            for key in FILES:
                name = table.get(key)
                if name and (folder / Path(name).name).is_file():
                    table[key] = str(folder / Path(name).name)
        self._model = setup_model(config)
        self._model.load_checkpoint(config, checkpoint(folder), eval=True)
        self._model.to(where)
        self.rate = int(config.audio.sample_rate)
        self.voices = self._voices(config)
        """Name -> (the model's speaker, its language)."""
        self._length_scale = getattr(self._model, "length_scale", None)
        self._tokenizer = self._model.tokenizer
        # Asked twice for each text, here and by the model; phonemes cost a process of espeak-ng.
        self._tokenizer.text_to_ids = lru_cache(4)(self._tokenizer.text_to_ids)

    def _voices(self, config: Any) -> dict[str, tuple[str, str]]:
        speakers = self._model.speaker_manager.speaker_names if self._model.speaker_manager else []
        languages = list(self._model.language_manager.name_to_id)
        spoken = languages or [config.get("phoneme_language") or "en"]
        return {
            f"{speaker}@{language}" if len(spoken) > 1 else speaker: (speaker, language)
            for speaker in speakers or ["default"]
            for language in spoken
        }

    def speak(self, text: str, voice: str, speed: float) -> tuple[dict[str, Any], bytes]:
        """Speak a text. Signs that the model does not have are silent."""
        speaker, language = self.voices[voice]
        symbols = [self._tokenizer.decode([sign]) for sign in self._tokenizer.text_to_ids(text, language=language)]
        # Blanks between the signs are called "<BLNK>".
        if not any(len(symbol.strip()) == 1 for symbol in symbols):
            return {"symbols": "", "begins": []}, b""
        if self._length_scale is not None:
            self._model.length_scale = self._length_scale / speed
        spoken = self._model.synthesize(text, speaker=speaker, language=language)
        pcm = (np.clip(np.asarray(spoken["wav"], np.float32), -1, 1) * 32767).astype("<i2")
        durations = spoken["outputs"].get("durations")
        if durations is None or durations.numel() != len(symbols):
            return {"symbols": "", "begins": []}, pcm.tobytes()
        frames = durations.flatten().cpu().numpy()
        begins = (np.cumsum(frames) - frames) * pcm.size / frames.sum()
        said = [(symbol, int(begin)) for symbol, begin in zip(symbols, begins, strict=True) if len(symbol) == 1]
        return {"symbols": "".join(symbol for symbol, _ in said), "begins": [begin for _, begin in said]}, pcm.tobytes()


def checkpoint(folder: Path) -> str:
    """The model's weights. Raises FileNotFoundError: there are none, or it is unclear which."""
    found = sorted(path.name for path in folder.glob("*.pth"))
    name = next((name for name in NAMES if name in found), found[0] if len(found) == 1 else "")
    if not name:
        raise FileNotFoundError(f"{folder} has no {NAMES[0]}, but {', '.join(found) or 'no *.pth'}")
    return str(folder / name)
