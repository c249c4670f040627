"""`voicepipe models pull`: the models of a configuration, fetched before a PoP needs them."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from voicepipe.base.errors import ConfigError, EngineMissing
from voicepipe.config import Config, load
from voicepipe.engines.weights import file_fetch, hub, hub_fetch, known_fetch, known_models
from voicepipe.engines.weights.known_models import KnownModel
from voicepipe.engines.weights.needed_models import NeededModel, chosen


def pull(asked: Sequence[str] = ()) -> int:
    """Fetch what is missing, a line for each model. Exit status 1 if one of them is still missing then.

    `asked`: files of configurations, and names of known models; none: what the default configuration needs.
    """
    known: dict[str, KnownModel] = {}
    others: list[NeededModel] = []
    for one in asked or [""]:
        if model := known_models.find(one):
            known[one] = model
            continue
        models = list(chosen(_configured(one)))
        if not models:
            print(f"{one or 'the default configuration'}: the chosen engines need no models")
        known |= {model.known.name: model.known for model in models if model.known}
        others += [model for model in models if not model.known]
    failed = [not _succeeds(partial(_known, model)) for model in known.values()]
    return 1 if any([*failed, *_others(others)]) else 0


def provide(config: Config) -> None:
    """Fetch the known models that the chosen engines need and that are not here. Raises EngineMissing."""
    needed = {model.known.name: model.known for model in chosen(config) if model.known and model.problem()}
    for model in needed.values():
        _known(model)


def _configured(file: str) -> Config:
    """The models of these configurations. Raises ConfigError."""
    if file and not Path(file).exists():
        raise ConfigError(
            f"there is no file {file}, and no known model of that name; known are {', '.join(known_models.KNOWN)}"
        )
    return load(Path(file)) if file else load()


def _known(model: KnownModel) -> None:
    """Fetch known models. Raises EngineMissing."""
    try:
        directory = hub.local(model.name)
    except EngineMissing:
        pass
    else:
        if not list(known_models.changed(model, directory)):
            print(f"{model.name}: here, in {directory}")
            return
    print(f"{model.name}: {model.described}", flush=True)
    with _bar() as bar:
        task = bar.add_task(model.name, total=None)
        directory = known_fetch.fetch(model, lambda here, of: bar.update(task, completed=here, total=of), print)
    print(f"{model.name}: here, in {directory}")


def _others(models: Sequence[NeededModel]) -> Iterator[bool]:
    """Whether each model that is not a known one is still missing."""
    files = [model for model in models if model.url and model.problem()]
    wanted: list[hub_fetch.WantedModel] = []
    for model in (model for model in models if model not in files):
        try:
            if found := _survey(model):
                wanted.append(found)
        except EngineMissing as error:
            print(error)
            yield True
    hub_fetch.check_space(wanted)
    for fetch in (*(partial(_from_hub, each) for each in wanted), *(partial(_file, model) for model in files)):
        yield not _succeeds(fetch)


def _succeeds(fetch: Callable[[], None]) -> bool:
    """Whether a step succeeds; prints why not."""
    try:
        fetch()
    except EngineMissing as error:
        print(error)
        return False
    return True


def _from_hub(wanted: hub_fetch.WantedModel) -> None:
    """Fetch a model from the hub. Raises EngineMissing."""
    print(f"{wanted.title}: {_what(wanted)}", flush=True)
    with _watched(wanted):
        directory = hub_fetch.fetch(wanted)
    print(f"{wanted.title}: here, in {directory}")


def _file(model: NeededModel) -> None:
    """Fetch a file that no hub has. Raises EngineMissing."""
    file = Path(model.name).expanduser()
    print(f"{model.key}: {model.url}", flush=True)
    try:
        with _bar() as bar:
            task = bar.add_task(file.name, total=None)
            file_fetch.fetch(model.url, file, lambda here, of: bar.update(task, completed=here, total=of or None))
    except hub_fetch.Unreachable as error:
        raise EngineMissing(
            f"{model.key}: {error}. Or bring the file: on a machine that reaches it, `{model.by_hand}`; copy it here, "
            f"to {file}."
        ) from None
    except EngineMissing as error:
        raise EngineMissing(f"{model.key}: {error}") from None
    print(f"{model.key}: here, at {file}")


def _survey(model: NeededModel) -> hub_fetch.WantedModel | None:
    """The files of a model on the hub; none if it is a path that exists. Raises EngineMissing."""
    on_hub = hub.on_hub(model.name) and not model.by_hand
    if not on_hub or Path(model.name).expanduser().exists():
        if problem := model.problem():
            raise EngineMissing(problem)
        print(f"{model.key}: here, at {model.name}")
        return None
    try:
        return hub_fetch.survey(model.name, model.revision, weights=model.weights)
    except hub_fetch.Unreachable as error:
        if model.problem():
            raise EngineMissing(f"{model.key}: {error}. {_by_hand(model)}") from None
        print(f"{hub.title(model.name, model.revision)}: here; whether the hub has a newer one is not known: {error}")
        return None
    except EngineMissing as error:
        raise EngineMissing(f"{model.key}: {error}") from None


def _by_hand(model: NeededModel) -> str:
    """How to bring its files to a machine that cannot reach the hub."""
    revision = f" --revision {model.revision}" if model.revision else ""
    return (
        f"Or bring the files: on a machine that reaches the hub, `pip install huggingface_hub`, then `hf download "
        f'{model.name}{revision} --local-dir FOLDER`; copy FOLDER here, and set {model.key} = "/path/to/FOLDER".'
    )


def _what(wanted: hub_fetch.WantedModel) -> str:
    if not wanted.absent:
        return "nothing to fetch"
    return f"{len(wanted.absent)} of {len(wanted.files)} files, {wanted.to_fetch / 1e9:.2f} GB"


def _bar() -> Progress:
    """A progress bar on standard error."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True)


@contextmanager
def _watched(wanted: hub_fetch.WantedModel) -> Iterator[None]:
    """One progress bar for all files of a model, by what the cache contains of them."""
    if not wanted.absent:
        yield
        return
    over = threading.Event()
    with _bar() as progress:
        task = progress.add_task(wanted.name, total=wanted.to_fetch)
        before = hub_fetch.cached_bytes(wanted.name)

        def watch() -> None:
            while not over.wait(0.25):
                progress.update(task, completed=hub_fetch.cached_bytes(wanted.name) - before)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()
