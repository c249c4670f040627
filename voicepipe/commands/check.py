"""`voicepipe check`: read files as the PoP would, and say what is wrong before it does."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from voicepipe import config, fleet_keys
from voicepipe.agent import Agent
from voicepipe.commands import runtime
from voicepipe.config import credentials, directory_config, fleet_rules, toml_file
from voicepipe.config.agent_store import Intents, load_agent, no_voice, open_agents
from voicepipe.config.engine_config import POLYGLOT
from voicepipe.config.file_kind import kind_of, located
from voicepipe.directory_server.run import check as check_directory
from voicepipe.engines import hub, local_servers, needed_models, packages
from voicepipe.engines.auto import lacking
from voicepipe.engines.frontdesk import FrontdeskLlm
from voicepipe.engines.nemotron import checkpoint
from voicepipe.errors import ConfigError, EngineError
from voicepipe.ingress.local import unreached
from voicepipe.observe import traces
from voicepipe.records import signing

Names = dict[tuple[Path, str], Path]
"""The folder and the name of each agent that was read, and in which file it stood first."""


def run(paths: Iterable[Path]) -> int:
    """Check files and directories, a line for each file or problem. Exit status 2 if anything is wrong."""
    names: Names = {}
    status = 0
    for path in paths:
        for file in _files(path):
            if not _is_well(file, names):
                status = 2
    return status


def _files(path: Path) -> list[Path]:
    """A directory's files, or what is named: also a directory that has none."""
    if path.is_dir() and (files := sorted(path.rglob("*.toml"))):
        return files
    return [path]


def _is_well(file: Path, names: Names) -> bool:
    """Prints the verdict on one file."""
    try:
        if file.is_dir():
            raise ConfigError(f"{file}: holds no *.toml file; give one, or a folder that holds some")
        kind = kind_of(file, toml_file.tables(file))
        told: Iterable[str] = ()
        if kind == "agent":
            told = _of_agent(file, names)
        elif kind == "intents":
            toml_file.read(file, Intents)
        elif kind == "rules":
            fleet_rules.load(file)
        elif kind == "directory":
            _warn_of_directory(file, directory_config.load(file))
        else:
            settings = config.load(None, file) if kind == "manifest" else config.load(file)
            told = _notes(open_agents(settings), settings)
            _warn(file, settings, part=kind == "manifest")
    except ConfigError as error:
        print(located(error, file))
        return False
    print(f"{file}: ok ({kind})")
    for line in told:
        print(f"{file}: note: {line}")
    return True


def _of_agent(file: Path, names: Names) -> Iterable[str]:
    """Notes. Raises ConfigError."""
    agent = load_agent(file)
    first = names.setdefault((file.resolve().parent, agent.name), file)
    if first.resolve() != file.resolve():
        raise ConfigError(f"name: {agent.name} is taken by {first}; every agent needs a name of its own")
    return _notes([agent], config.Config())


def _notes(agents: Iterable[Agent], settings: config.Config) -> Iterable[str]:
    """What agents do without, as these engines are."""
    agents = tuple(agents)
    untold = [f"Agent {agent.name}: {lacks}" for agent in agents if (lacks := signing.lacks(agent.hooks))]
    return (
        *_needing_a_model(agents, settings),
        *_without_voice(agents, settings),
        *_unheard(agents, settings),
        *untold,
    )


def _needing_a_model(agents: Iterable[Agent], settings: config.Config) -> Iterator[str]:
    """A line for each agent without intents: the model that answers for it, or what it lacks."""
    needing = [agent for agent in agents if not agent.intents]
    if settings.engines.llm == "frontdesk":
        yield from (FrontdeskLlm().answering(agent).lacks for agent in needing)
    elif settings.engines.llm == "auto" and needing and not settings.openai.base_url:
        found = asyncio.run(local_servers.look())
        for agent in needing:
            model = settings.openai.model or (found.models[0] if found else "")
            yield f"Agent {agent.name} is answered by {model} of {found}" if found else lacking(agent)


def _without_voice(agents: Iterable[Agent], settings: config.Config) -> Iterator[str]:
    """A line for each agent whose voice is not there, as far as that is known without loading a model."""
    if settings.engines.tts != "espeak" or not any(agent.voice for agent in agents):
        return
    try:
        voices = asyncio.run(_espeak_voices(settings))
    except EngineError:  # `_warn` tells it.
        return
    yield from (f'{said} That is for engines.tts = "espeak".' for agent in agents if (said := no_voice(agent, voices)))


def _no_default_voice(settings: config.Config) -> Iterator[str]:
    if settings.engines.tts == "espeak":
        try:
            asyncio.run(_espeak_voices(settings))
        except EngineError as error:
            yield str(error)


def _unheard(agents: Iterable[Agent], settings: config.Config) -> Iterator[str]:
    """A line for each agent whose callers speak what the recogniser does not know: a language, or some words."""
    if not (else_ := _way_out_of_english(settings)):
        return
    for agent in agents:
        if agent.language.lower().partition("-")[0] != "en":
            yield f"Agent {agent.name} is spoken to in {agent.language!r} (language); {else_}"
        elif settings.engines.asr == "sphinx" and (said := _never_heard(agent)):
            yield f"Agent {agent.name}: {said}"


def _way_out_of_english(settings: config.Config) -> str:
    """What hears English alone, and what helps; empty: more is heard, or that is not known."""
    if settings.engines.asr == "sphinx":
        return 'where engines.asr is "sphinx", English alone is heard: set it to "whisper"'
    if settings.engines.asr == "nemotron" and not _knows_languages(settings):
        model = settings.nemotron.model
        return f"nemotron.model {model} hears English alone: set it to {POLYGLOT}"
    return ""


def _knows_languages(settings: config.Config) -> bool:
    try:
        return checkpoint.read(settings.nemotron).many_languages
    except EngineError:  # It is not here, which is said elsewhere.
        return True


def _never_heard(agent: Agent) -> str:
    from voicepipe.engines.sphinx_decoder import never_heard

    try:
        return never_heard(agent.expected)
    except EngineError:  # `_warn` tells it.
        return ""


async def _espeak_voices(settings: config.Config) -> Collection[str]:
    from voicepipe.engines.espeak import EspeakTts

    tts = EspeakTts(settings.espeak.voice, settings.espeak.words_per_minute)
    try:
        await tts.start()
        return tts.voices()
    finally:
        await tts.close()


def _warn_of_directory(file: Path, settings: directory_config.DirectoryConfig) -> None:
    try:
        check_directory(settings)
        fleet_keys.signer(settings.directory.key)
        for path in settings.directory.keys:
            fleet_keys.public_key(path)
        credentials.keys_of(settings.tenants)
        credentials.sip_passwords(settings.sip.users)
        credentials.twilio_token(settings.twilio)
        credentials.telnyx_key(settings.telnyx)
    except ConfigError as error:
        print(f"{file}: warning: a directory does not start like this: {error}")


def _warn(file: Path, settings: config.Config, *, part: bool) -> None:
    """Prints what a PoP would not start with, or refuse callers for, unless another file adds what is missing.

    `part`: the file is only a part of a configuration. Raises ConfigError: a whole one has no voice."""
    missing = credentials.missing_secrets(settings)
    for name, key in missing.items():
        lacks = f"the environment variable {name} is not set here, or empty"
        print(f"{file}: warning: {key}: {lacks}; a PoP does not start without it")
    if said := unreached(settings):
        print(f"{file}: warning: {said}")
    for check in runtime.REFUSALS if missing else (*runtime.REFUSALS, credentials.check):
        try:
            check(settings)
        except ConfigError as error:
            print(f"{file}: warning: by itself this is refused: {error}")
    engines = *packages.problems(settings), *needed_models.problems(settings), *_no_default_voice(settings)
    refusal = packages.NO_VOICE if packages.NO_VOICE in engines and not part else ""
    for problem in filter(None, (*engines, traces.problem(settings))):
        if problem != refusal:
            print(f"{file}: warning: {hub.copyable(problem, file)}")
    _warn_of_room(file, settings)
    if refusal:
        raise ConfigError(refusal)


def _warn_of_room(file: Path, settings: config.Config) -> None:
    slots, sip, webrtc = settings.pop.slots, settings.sip, settings.webrtc
    pairs = (sip.last_port + 1) // 2 - (sip.first_port + 1) // 2  # an even port and the next
    for table, room in (("sip", pairs), ("webrtc", webrtc.last_port - webrtc.first_port + 1)):
        if getattr(settings, table).first_port and room < slots:
            print(
                f"{file}: warning: {table}.first_port to last_port have room for {room} calls, and pop.slots is {slots}"
            )
    if settings.engines.asr == "nemotron" and (streams := settings.nemotron.streams) < slots:
        print(
            f"{file}: warning: nemotron.streams is {streams}, and pop.slots is {slots}: callers who speak while "
            f"{streams} others do wait to be heard"
        )
