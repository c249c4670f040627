"""Whether the known models that the engines need are here, as they were published."""

from collections.abc import Iterator
from pathlib import Path

from voicepipe.base.errors import EngineMissing
from voicepipe.config import Config, load
from voicepipe.doctor.finding import Finding
from voicepipe.engines.weights import hub, known_models
from voicepipe.engines.weights.known_models import KnownModel
from voicepipe.engines.weights.needed_models import chosen


def findings(config: Config | None, file: Path | None) -> Iterator[Finding]:
    """A row for each of them. Without a configuration: for those that the demo needs, which it fetches by itself."""
    needed = [model.known for model in chosen(config or load()) if model.known]
    yield from (_of(model, file) for model in dict.fromkeys(needed))


def _of(model: KnownModel, file: Path | None) -> Finding:
    called = f"{model.name} ({model.described})"
    pull = f"`{hub.PULL.replace('CONFIG', model.name)}`"
    try:
        directory = hub.local(model.name)
    except EngineMissing:
        if file is None:
            return Finding("model", "note", f"{called} is not here yet", f"the demo fetches it; or now: {pull}")
        return Finding("model", "broken", f"{called} is not in {model.directory}", f"fetch it with {pull}")
    if changed := list(known_models.changed(model, directory)):
        said = ", ".join(f"{kept.name} has the SHA-256 {found}, not {kept.sha256}" for kept, found in changed)
        return Finding("model", "broken", f"{called} in {directory} is not what was published: {said}",
                       f"fetch it again with {pull}")  # fmt: skip
    return Finding("model", "ok", f"{called} in {directory}, as it was published")
