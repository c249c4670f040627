"""What the demo, or a PoP with some configuration, needs of this machine apart from GPUs."""

import asyncio
import importlib.metadata
import ipaddress
import platform
import re
import resource
import time
from collections.abc import Callable, Iterator

import msgspec

from voicepipe.audio import opus
from voicepipe.base.environment import cores
from voicepipe.base.errors import ConfigError, EngineMissing, VoicepipeError
from voicepipe.config import Config, load
from voicepipe.config.agent_store import open_agents
from voicepipe.config.credentials import missing_secrets
from voicepipe.config.engine_config import EnginesConfig
from voicepipe.doctor.finding import Finding
from voicepipe.engines import packages
from voicepipe.engines.base import Engine, LacksPart
from voicepipe.engines.gpu_placement import may_use_gpu
from voicepipe.engines.loader import choose
from voicepipe.engines.weights import hub, known_models
from voicepipe.engines.weights.known_models import KnownModel
from voicepipe.engines.weights.needed_models import chosen
from voicepipe.serving import lan, runtime

PARTS = {
    "vad": "voice activity",
    "asr": "speech recognition",
    "llm": "language",
    "tts": "speech synthesis",
}
WAYS_OUT = {"openai": "see [openai] of the configuration: its server must answer when a PoP starts"}
OPEN_FILES = 4096
"""Open files that a PoP with a few hundred calls needs: sockets, pipes and files."""

INSTEAD_OF = {"onnxruntime": ("onnxruntime-gpu",)}
"""For a package: others with the same modules."""


def python() -> Iterator[Finding]:
    """Checks the interpreter; one that is too old does not get this far."""
    yield Finding("Python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}")


def libraries() -> Iterator[Finding]:
    """Checks the installed versions of the libraries that the package needs."""
    found, missing, others = [], [], []
    for requirement in importlib.metadata.requires(packages.DISTRIBUTION) or ():
        if "extra ==" in requirement:
            continue
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        pinned = re.fullmatch(r"[\w.-]+==([\w.]+)", requirement)
        installed, version = _installed(name)
        if not version:
            missing.append(name)
            continue
        found.append(f"{installed} {version}")
        if pinned and version != pinned[1]:
            others.append((name, version, pinned[1]))
    yield Finding("libraries", "ok", ", ".join(found))
    for name in missing:
        yield Finding(name, "broken", "not installed", f"pip install {name}, or make demo, which installs everything")
    for name, version, tried in others:
        yield Finding(name, "note", f"{version}: calls were tried with {tried} alone", f"pip install {name}=={tried}")


def _installed(name: str) -> tuple[str, str]:
    """The package that is installed for `name`, by its own or the other name, and its version; empty: there is none."""
    names = (name, *INSTEAD_OF.get(name, ()))
    return next(((each, found) for each in names if (found := packages.version(each))), (name, ""))


def codec() -> Iterator[Finding]:
    """Checks libopus, without which no call by WebRTC is taken."""
    try:
        said = opus.version()
    except (ConfigError, OSError) as error:
        yield Finding("Opus", "broken", str(error), "pip install --force-reinstall av")
    else:
        yield Finding("Opus", "ok", said)


def event_loop() -> Iterator[Finding]:
    """Checks uvloop, by which a PoP runs."""
    try:
        import uvloop

        uvloop.new_event_loop().close()
    except (ImportError, OSError) as error:
        yield Finding("event loop", "broken", f"uvloop: {error}", "pip install --force-reinstall uvloop")
    else:
        yield Finding("event loop", "ok", "uvloop")


def engines(config: Config | None) -> Iterator[Finding]:
    """Checks each engine that is on no GPU: loads it and warms it up as a PoP does; `gpu.engines` checks the
    others."""
    for part, stage in PARTS.items():
        began = time.monotonic()
        settings = config or load()
        name = getattr(settings.engines, part)
        if may_use_gpu(settings, name):
            continue
        try:
            lacks = asyncio.run(_start(part, _only(part, name, settings)))
        except VoicepipeError as error:
            yield Finding(stage, "broken", f"{name}: {error}", WAYS_OUT.get(name, "make demo installs what is missing"))
        except Exception as error:  # a broken native library fails in its own way
            yield Finding(stage, "broken", f"{name}: {type(error).__name__}: {error}", "rm -r .venv, then make demo")
        else:
            yield Finding(stage, "ok", f"{name}, loaded in {time.monotonic() - began:.2f} s")
            if lacks:
                yield Finding(stage, "note", lacks, "make demo installs both voices")


def _only(part: str, name: str, config: Config) -> Config:
    """A configuration whose other engines are scripted, so that an error is this engine's own."""
    engines = {**dict.fromkeys(PARTS, "scripted"), part: name}
    return msgspec.structs.replace(config, engines=msgspec.convert(engines, EnginesConfig))


async def _start(part: str, config: Config) -> str:
    """Start an engine. Returns the part that it lacks; empty: none."""
    engine: Engine = getattr(choose(config), part)
    try:
        await engine.start()
        return engine.lacks if isinstance(engine, LacksPart) else ""
    finally:
        await engine.close()


def agents(config: Config | None) -> Iterator[Finding]:
    """Checks the configuration and its agents."""
    try:
        store = open_agents(config or load())
    except ConfigError as error:
        way_out = "mend it, or the configuration" if config else "reinstall voicepipe, or restore configs/agents"
        yield Finding("agents", "broken", str(error), way_out)
    else:
        yield Finding("agents", "ok", ", ".join(store.names()))


def models(config: Config | None) -> Iterator[Finding]:
    """Checks the known models that the engines need: whether they are here, as they were published."""
    needed = [model.known for model in chosen(config or load()) if model.known]
    yield from (_model(model, by_demo=config is None) for model in dict.fromkeys(needed))


def _model(model: KnownModel, *, by_demo: bool) -> Finding:
    """`by_demo`: the demo needs it, which fetches it by itself."""
    called = f"{model.name} ({model.described})"
    pull = f"`{hub.PULL.replace('CONFIG', model.name)}`"
    try:
        directory = hub.local(model.name)
    except EngineMissing:
        if by_demo:
            return Finding("model", "note", f"{called} is not here yet", f"the demo fetches it; or now: {pull}")
        return Finding("model", "broken", f"{called} is not in {model.directory}", f"fetch it with {pull}")
    if changed := list(known_models.changed(model, directory)):
        said = ", ".join(f"{kept.name} has the SHA-256 {found}, not {kept.sha256}" for kept, found in changed)
        return Finding("model", "broken", f"{called} in {directory} is not what was published: {said}",
                       f"fetch it again with {pull}")  # fmt: skip
    return Finding("model", "ok", f"{called} in {directory}, as it was published")


def access(config: Config | None) -> Iterator[Finding]:
    """Checks that all secrets are set, and that nobody can call who must not."""
    config = config or load()
    for problem, key in missing_secrets(config).items():
        yield Finding("secret", "broken", problem, f"see to {key}: a PoP does not start without it")
    for check in runtime.REFUSALS:
        try:
            check(config)
        except ConfigError as error:
            said, _, way_out = str(error).partition(": ")
            yield Finding("callers", "broken", said, way_out)


def port(config: Config | None) -> Iterator[Finding]:
    """Checks whether a PoP can listen there."""
    http = (config or load()).http
    try:
        runtime.free_port(http)
    except ConfigError as error:
        taken, _, way_out = str(error).partition("; ")
        yield Finding("port", "note", taken, way_out)
    else:
        yield Finding("port", "ok", f"{http.port} on {http.host} is free")


def phones(config: Config | None) -> Iterator[Finding]:
    """Checks whether telephones find the PoP at SIP's usual port for the demo, and which other machines they and
    browsers could call from."""
    port = config.sip.port if config else runtime.SIP_PORT
    if port:
        yield _sip_port(config or load(), port)
    found = lan.addresses()
    if not found:
        yield Finding(
            "addresses", "note", "none that another machine could call", "join a network to be called from it"
        )
    elif any(ipaddress.ip_address(address).is_global for address in found):
        yield Finding("addresses", "ok", ", ".join(found))
    else:
        yield Finding("addresses", "ok", f"{', '.join(found)}; for callers from beyond the NAT in front of them set "
                      "webrtc.public_address and sip.public_address")  # fmt: skip


def _sip_port(config: Config, port: int) -> Finding:
    try:
        runtime.with_sip_port(config, port)
    except ConfigError:
        return Finding("SIP port", "note", f"UDP {port} is taken: the demo takes any other",
                       "to choose one: --sip-port PORT, for a PoP sip.port")  # fmt: skip
    return Finding("SIP port", "ok", f"UDP {port} is free")


def machine() -> Iterator[Finding]:
    """Checks cores and the limit on open files."""
    if (here := cores()) >= 2:
        yield Finding("cores", "ok", str(here))
    else:
        yield Finding(
            "cores", "note", str(here), "one core recognises and answers too slowly for 300 ms: use two or more"
        )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files >= OPEN_FILES or files == resource.RLIM_INFINITY:
        yield Finding("open files", "ok", f"at most {files}")
    else:
        yield Finding(
            "open files", "note", f"at most {files}", f"enough for the demo; for many calls: ulimit -n {OPEN_FILES}"
        )


OF_MACHINE: tuple[Callable[[], Iterator[Finding]], ...] = (python, libraries, event_loop, codec, machine)
OF_CONFIG: tuple[Callable[[Config | None], Iterator[Finding]], ...] = (
    engines,
    agents,
    access,
    port,
    phones,
    models,
)
"""Checks of a configuration. None: of the demo's."""
