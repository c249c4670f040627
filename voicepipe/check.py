"""`voicepipe check`: read files as the PoP would, and say what is wrong before it does."""

import asyncio
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

from voicepipe import config, directory_config, environment, fleet_keys, toml_file
from voicepipe.agent import Agent
from voicepipe.agent_store import Intents, load_agent, no_voice, open_agents
from voicepipe.directory_server.run import check as check_directory
from voicepipe.engines import hub, local_servers, models, packages
from voicepipe.engines.auto import lacking
from voicepipe.engines.frontdesk import FrontdeskLlm
from voicepipe.errors import ConfigError
from voicepipe.ingress.local import check_exposure, check_phones


def run(paths: Iterable[Path]) -> int:
    """Check files and directories, a line for each file or problem. Exit status 2 if anything is wrong."""
    problems = [problem for path in paths for file in _files(path) if (problem := _checked(file))]
    return 2 if problems else 0


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.toml")) if path.is_dir() else [path]


def _checked(file: Path) -> str:
    """Prints the verdict on one file; the problem, or nothing."""
    try:
        kind = kind_of(file, toml_file.tables(file))
        told: Iterable[str] = ()
        if kind == "agent":
            told = _needing_a_model([load_agent(file)], config.Config())
        elif kind == "intents":
            toml_file.read(file, Intents)
        elif kind == "directory":
            _warn_of_directory(file, directory_config.load(file))
        else:
            settings = config.load(None, file) if kind == "manifest" else config.load(file)
            agents = open_agents(settings)
            told = (*_needing_a_model(agents, settings), *_without_voice(agents, settings))
            _warn(file, settings)
    except ConfigError as error:
        problem = str(error) if str(error).startswith((str(file), str(file.resolve().parent))) else f"{file}: {error}"
        print(problem)
        return problem
    print(f"{file}: ok ({kind})")
    for line in told:
        print(f"{file}: note: {line}")
    return ""


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
    voices = asyncio.run(_espeak_voices(settings))
    yield from filter(None, (no_voice(agent, voices) for agent in agents))


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
        environment.keys_of(settings.tenants)
    except ConfigError as error:
        print(f"{file}: warning: a directory does not start like this: {error}")


def _warn(file: Path, settings: config.Config) -> None:
    """Prints what a PoP would not start with, or refuse callers for, unless another file adds what is missing."""
    for check in (check_exposure, check_phones):
        try:
            check(settings)
        except ConfigError as error:
            print(f"{file}: warning: by itself this is refused: {error}")
    for name in environment.missing_secrets(settings):
        print(f"{file}: warning: the environment variable {name} is not set here, and a PoP does not start without it")
    for problem in (*packages.problems(settings), *models.problems(settings)):
        print(f"{file}: warning: {hub.copyable(problem, file)}")
    slots, sip, webrtc = settings.pop.slots, settings.sip, settings.webrtc
    pairs = (sip.last_port + 1) // 2 - (sip.first_port + 1) // 2  # an even port and the next
    for table, room in (("sip", pairs), ("webrtc", webrtc.last_port - webrtc.first_port + 1)):
        if getattr(settings, table).first_port and room < slots:
            print(
                f"{file}: warning: {table}.first_port to last_port have room for {room} calls, and pop.slots is {slots}"
            )


def kind_of(file: Path, tables: dict[str, Any]) -> str:
    """ "agent", "intents", "directory", "manifest" or "configuration": by the folder where those belong, else by the
    content."""
    if file.resolve().parent.name == "agents" or "name" in tables:
        return "agent"
    if "intents" in tables:
        return "intents"
    if "directory" in tables:
        return "directory"
    return "manifest" if file.resolve().parent.name == "pops" else "configuration"
