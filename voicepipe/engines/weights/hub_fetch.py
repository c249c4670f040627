"""A model's files from the hub to this machine's cache, for `voicepipe models pull` alone: a PoP never waits for a hub.

huggingface_hub reads HF_ENDPOINT, HF_HOME and HF_TOKEN itself. A broken connection goes on where it broke; a run that
was ended goes on with the files that are not there yet.
"""

import glob
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePath

from voicepipe.base.errors import EngineMissing
from voicepipe.engines.weights import hub

TEXTS = {".json", ".txt", ".model", ".jinja", ".tiktoken", ".py"}
"""Configuration, vocabulary, chat template, code of models that bring their own."""
FORMATS = ("model*.safetensors", "*.safetensors", "model*.bin", "pytorch_model*.bin", "*.bin", "*.pt", "*.pth")
"""Formats of weights, the best first. A repository often holds several, and each is the whole model."""
RESERVE_BYTES = 2**30
"""Left free on the disk."""


class Unreachable(EngineMissing):
    """The hub of models did not answer."""


@dataclass(frozen=True, slots=True)
class WantedModel:
    """A model that is to be fetched from the hub, with its files."""

    name: str
    revision: str
    """Branch, tag or commit; empty: the main branch."""
    files: Mapping[str, int]
    """Every file that the engine needs -> its bytes."""
    absent: frozenset[str]
    """Files that are not on this machine yet."""

    @property
    def title(self) -> str:
        return hub.title(self.name, self.revision)

    @property
    def to_fetch(self) -> int:
        """Bytes."""
        return sum(self.files[path] for path in self.absent)


def needed(paths: Iterable[str], *, weights: bool = True) -> list[str]:
    """The files of a repository without which the model cannot be loaded; the weights, in one format, come last."""
    root = sorted(path for path in paths if "/" not in path)
    formats = ([path for path in root if PurePath(path).match(form)] for form in FORMATS if weights)
    chosen = next(filter(None, formats), [])
    kinds = {PurePath(path).suffix for path in chosen}
    texts = [path for path in root if PurePath(path).suffix in TEXTS and _index_of(path) in {"", *kinds}]
    return texts + chosen


def survey(name: str, revision: str = "", *, weights: bool = True) -> WantedModel:
    """Ask the hub what there is. Raises EngineMissing: there is no such model, we may not have it, Unreachable."""
    from huggingface_hub import HfApi, try_to_load_from_cache

    with _explained(name, revision):
        found = HfApi().model_info(name, revision=revision or None, files_metadata=True)
    sizes = {file.rfilename: file.size or 0 for file in found.siblings or ()}
    commit = found.sha or "main"
    files = {path: sizes[path] for path in needed(sizes, weights=weights)}
    absent = {path for path in files if not isinstance(try_to_load_from_cache(name, path, revision=commit), str)}
    return WantedModel(name, revision, files, frozenset(absent))


def fetch(wanted: WantedModel) -> Path:
    """Fetch it; where it then is. Raises EngineMissing."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()  # two for each part, in each other's way
    weights = [path for path in wanted.files if PurePath(path).suffix not in TEXTS]
    with _explained(wanted.name, wanted.revision):
        # The weights after all the rest, a vocabulary after other texts: where they are, nothing is missing (hub.py).
        texts = [path for path in wanted.files if path not in weights]
        words = [path for path in texts if hub.is_vocabulary(path)]
        for part in ([path for path in texts if path not in words], words, weights):
            if part:
                patterns = [glob.escape(path) for path in part]
                directory = snapshot_download(wanted.name, revision=wanted.revision or None, allow_patterns=patterns)
    return Path(directory)


def cached_bytes(name: str) -> int:
    """Bytes of the model, of any version and half a file too, that are in the cache."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import repo_folder_name

    blobs = Path(constants.HF_HUB_CACHE, repo_folder_name(repo_id=name, repo_type="model"), "blobs")
    total = 0
    for file in blobs.glob("*"):
        with suppress(FileNotFoundError):  # it has just got its final name
            total += file.stat().st_size
    return total


def check_space(wanted: Iterable[WantedModel]) -> None:
    """Raises EngineMissing: the cache's disk does not hold what is to be fetched."""
    from huggingface_hub import constants

    if size := sum(each.to_fetch for each in wanted):
        advice = "make room, or set the environment variable HF_HOME to a directory on a larger disk"
        check_room(Path(constants.HF_HUB_CACHE), "the models need", size, advice)


def check_room(folder: Path, needing: str, size: int, advice: str) -> None:
    """Raises EngineMissing: the disk of `folder` does not hold so many bytes. `needing`: "the models need"."""
    disk = next(path for path in (folder, *folder.parents) if path.exists())
    free = shutil.disk_usage(disk).free
    if size + RESERVE_BYTES > free:
        raise EngineMissing(
            f"{needing} {size / 1e9:.1f} GB, and {folder} has {free / 1e9:.1f} left, of which 1 is to stay free; "
            f"{advice}"
        )


def _index_of(path: str) -> str:
    """The suffix of the weights whose parts this file lists: "model.safetensors.index.json"; empty if it is no such."""
    return PurePath(path.removesuffix(".index.json")).suffix if path.endswith(".index.json") else ""


@contextmanager
def _explained(name: str, revision: str) -> Iterator[None]:
    """The library's errors in one sentence that says what to do."""
    from huggingface_hub import constants
    from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, RepositoryNotFoundError, RevisionNotFoundError

    called = hub.title(name, revision)
    try:
        yield
    except GatedRepoError:
        raise EngineMissing(
            f"{name} is given only to those who accepted its terms: do so at {constants.ENDPOINT}/{name} and set the "
            "environment variable HF_TOKEN to a token of that account"
        ) from None
    except RepositoryNotFoundError:
        raise EngineMissing(
            f"the hub has no model {name}, or it is private: check the name, or set the environment variable HF_TOKEN "
            "to a token that may read it"
        ) from None
    except RevisionNotFoundError:
        raise EngineMissing(
            f"the hub has no revision {revision} of {name}: give a branch, a tag or a whole commit id"
        ) from None
    except HfHubHTTPError as error:
        raise Unreachable(f"the hub at {constants.ENDPOINT} refuses {called}: {_first_line(error)}") from None
    except Exception as error:  # no connection, or a broken one: httpx's, the library's or Rust's, by its version
        raise Unreachable(
            f"{called} cannot be fetched from {constants.ENDPOINT}: {_first_line(error)}; check the network "
            "(HTTPS_PROXY, HF_ENDPOINT) and run this again: it goes on with what is missing"
        ) from None


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
