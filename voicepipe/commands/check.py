"""`voicepipe check`: read files as the PoP would, and say what is wrong before it does."""

import asyncio
import inspect
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from voicepipe import config
from voicepipe.agent import Agent, Intents
from voicepipe.base.errors import ConfigError
from voicepipe.commands import agent_notes, language_notes
from voicepipe.config import agent_problems, credentials, load_directory, load_hosts, load_probe, load_rules, toml_file
from voicepipe.config.agent_store import load_agent, names_beside, open_agents
from voicepipe.config.directory_config import DirectoryConfig
from voicepipe.config.file_kind import kind_of, located
from voicepipe.config.phone_config import takes_phones
from voicepipe.config.pop_config import with_slots
from voicepipe.config.probe_config import ProbeConfig, secrets_of
from voicepipe.config.variable_problems import single_braced
from voicepipe.directory import tokens
from voicepipe.directory.server.run import check as check_directory
from voicepipe.engines import packages
from voicepipe.engines.llm import local_servers
from voicepipe.engines.llm.auto import lacking
from voicepipe.engines.llm.frontdesk.frontdesk_llm import FrontdeskLlm
from voicepipe.engines.weights import hub, needed_models
from voicepipe.ingress.loopback_only import unreached
from voicepipe.observe import traces
from voicepipe.records import signing
from voicepipe.serving import runtime
from voicepipe.tools import tool_code

WELL, WARNED, WRONG = 0, 1, 2
"""The verdict on a file: a PoP starts with it as it is; something is missing, on this machine or in this file alone; no
PoP starts with it."""
Names = dict[tuple[Path, str], Path]
"""The folder and the name of each agent that was read, and the first file with it."""


class PopFiles(NamedTuple):
    """The files that a PoP is started with, as `voicepipe pop` has them. None: without."""

    config: Path | None = None
    pop: Path | None = None


def run(paths: Iterable[Path], *, strict: bool = False, whole: PopFiles | None = None) -> int:
    """Check files and directories, and the `whole` of a configuration and a manifest; a line for each file or problem.
    Exit status 2 if anything is wrong; 1 if `strict` and there is a warning; 0 also with notes."""
    names: Names = {}
    verdicts = [_verdict(file, names) for path in paths for file in _files(path)]
    if whole and any(whole):
        verdicts.append(_verdict_on_whole(whole))
    status = max(verdicts, default=WELL)
    return status if strict or status > WARNED else 0


def _verdict_on_whole(whole: PopFiles) -> int:
    """On what `voicepipe pop` with these files would run."""
    title = " with ".join(str(file) for file in whole if file)
    try:
        settings = config.load(whole.config, whole.pop)
        agents = tuple(open_agents(settings))
        verdict = _warned(title, _warnings(whole.config, settings, agents, part=False))
    except ConfigError as error:
        print(located(error, *whole))
        return WRONG
    _passed(title, "a whole PoP", _notes(agents, settings))
    return verdict


def _warned(title: str, warnings: Iterable[str]) -> int:
    """Print each warning as it is found: an error that is found later hides none. Returns the verdict. Raises
    ConfigError."""
    verdict = WELL
    for line in warnings:
        verdict = WARNED
        print(f"{title}: warning: {line}")
    return verdict


def _passed(title: str, kind: str, notes: Iterable[str]) -> None:
    """Print that no error was found, and the notes."""
    print(f"{title}: ok ({kind})")
    for line in notes:
        print(f"{title}: note: {line}")


def _files(path: Path) -> list[Path]:
    """The files of a directory, or the path itself: also a directory without files."""
    if path.is_dir() and (files := sorted(path.rglob("*.toml"))):
        return files
    return [path]


def _verdict(file: Path, names: Names) -> int:
    warned: Iterable[str] = ()
    try:
        if file.is_dir():
            raise ConfigError(f"{file}: holds no *.toml file; give one, or a folder that holds some")
        kind = kind_of(file, toml_file.tables(file))
        notes: Iterable[str] = ()
        if kind == "agent":
            agent = _of_agent(file, names)
            notes = _notes_of_one(agent)
            warned = (*single_braced(agent), *_unsigned(agent), *_unstoppable(agent))
        elif kind == "intents":
            toml_file.read(file, Intents)
        elif kind == "rules":
            load_rules(file)
        elif kind == "hosts":
            load_hosts(file)
        elif kind == "probe":
            warned = _warnings_of_probe(load_probe(file))
        elif kind == "directory":
            warned = _warnings_of_directory(load_directory(file))
        else:
            settings = config.load(None, file) if kind == "manifest" else config.load(file)
            agents = tuple(open_agents(settings))
            notes = _notes(agents, settings)
            warned = _warnings(file, settings, agents, part=kind == "manifest")
        verdict = _warned(str(file), warned)
    except ConfigError as error:
        print(located(error, file))
        return WRONG
    _passed(str(file), kind, notes)
    return verdict


def _of_agent(file: Path, names: Names) -> Agent:
    """Check an agent's file, also against the agents beside it. Raises ConfigError."""
    agent = load_agent(file)
    if unknown := list(agent_problems.unknown_colleagues(agent, names_beside(file))):
        raise ConfigError("\n".join(f"{file}: {problem}" for problem in unknown))
    first = names.setdefault((file.resolve().parent, agent.name), file)
    if first.resolve() != file.resolve():
        raise ConfigError(f"name: {agent.name} is taken by {first}; every agent needs a name of its own")
    return agent


def _notes_of_one(agent: Agent) -> Iterator[str]:
    """Notes on an agent whose file does not name its PoP."""
    yield from _notes([agent], config.Config())
    yield from agent_notes.without_effect([agent], config.Config())
    if agent.hooks.after_call:
        yield f"Agent {agent.name}: hooks.after_call works only at a PoP with records.folder"


def _notes(agents: Iterable[Agent], settings: config.Config) -> Iterable[str]:
    """Notes on what agents lack with these engines and doors."""
    agents = tuple(agents)
    return (
        *_needing_a_model(agents, settings),
        *language_notes.of_languages(agents, settings),
        *_without_keys(agents, settings),
    )


def _needing_a_model(agents: Iterable[Agent], settings: config.Config) -> Iterator[str]:
    """A line for each agent without intents: the model that answers for it, or what is missing."""
    needing = [agent for agent in agents if not agent.intents]
    if settings.engines.llm == "frontdesk":
        yield from (FrontdeskLlm().answering(agent).lacks for agent in needing)
    elif settings.engines.llm == "auto" and needing and not settings.openai.base_url:
        found = asyncio.run(local_servers.look())
        for agent in needing:
            yield _answered_by(agent, settings.openai.model, found) if found else lacking(agent)


def _answered_by(agent: Agent, configured: str, found: local_servers.LocalServer) -> str:
    model = agent.model or configured or found.models[0]
    if agent.model and not {agent.model, f"{agent.model}:latest"} & {*found.models}:
        listed = ", ".join(found.models)
        return f"Agent {agent.name} names the model {model}, which {found} does not list; it lists {listed}"
    return f"Agent {agent.name} is answered by {model} of {found}"


def _without_keys(agents: Iterable[Agent], settings: config.Config) -> Iterator[str]:
    """A line for each agent that presses no keys in some of its calls."""
    if settings.twilio.auth_token:
        for agent in agents:
            if agent.send_keys:
                yield (
                    f"Agent {agent.name} presses no keys (send_keys) in calls by Twilio, which sends none while a call "
                    "is streamed; by SIP and Telnyx it does"
                )


def _warnings_of_directory(settings: DirectoryConfig) -> Iterator[str]:
    try:
        check_directory(settings)
        tokens.signer(settings.directory.key)
        for path in settings.directory.keys:
            tokens.public_key(path)
        credentials.operator_keys(settings.http, credentials.keys_of(settings.tenants))
        credentials.sip_passwords(settings.sip.users)
        credentials.twilio_token(settings.twilio).value()
        credentials.telnyx_key(settings.telnyx).value()
        credentials.bus_password(settings.bus).value()
    except ConfigError as error:
        yield f"a directory does not start like this: {error}"


def _warnings_of_probe(settings: ProbeConfig) -> Iterator[str]:
    if not settings.targets:
        yield "a probe does not start like this: add a [[targets]] table with name and url, or directory"
    for secret in secrets_of(settings):
        if secret.problem:
            yield f"a probe cannot call like this: {secret.key}: {secret.problem}"


def _warnings(file: Path | None, settings: config.Config, agents: Iterable[Agent], *, part: bool) -> Iterator[str]:
    """Why a PoP would not start, refuse callers, or leave work undone, unless another file adds what is missing.
    `part`: the file is only a part of a configuration. Raises ConfigError: a whole one has no voice."""
    missing = credentials.missing_secrets(settings)
    for problem, key in missing.items():
        yield f"{key}: {problem}; a PoP does not start without it"
    if said := unreached(settings):
        yield said
    for check in runtime.REFUSALS if missing else (*runtime.REFUSALS, credentials.check):
        try:
            check(settings)
        except ConfigError as error:
            yield f"by itself this is refused: {error}"
    engines = (
        *packages.problems(settings),
        *needed_models.problems(settings),
        *language_notes.default_voice_problem(settings),
    )
    refusal = packages.NO_VOICE if packages.NO_VOICE in engines and not part else ""
    for problem in filter(None, (*engines, traces.problem(settings))):
        if problem != refusal:
            yield hub.copyable(problem, file)
    yield from _lacking_room(settings)
    yield from _without_effect(settings)
    yield from _without_deliveries(agents, settings)
    yield from (f"Agent {agent.name}: {said}" for agent in agents for said in single_braced(agent))
    yield from agent_notes.without_effect(agents, settings)
    if refusal:
        raise ConfigError(refusal)


def _lacking_room(settings: config.Config) -> Iterator[str]:
    slots, sip, webrtc = with_slots(settings).pop.slots, settings.sip, settings.webrtc
    pairs = (sip.last_port + 1) // 2 - (sip.first_port + 1) // 2  # an even port and the next
    for table, room in (("sip", pairs), ("webrtc", webrtc.last_port - webrtc.first_port + 1)):
        if getattr(settings, table).first_port and room < slots:
            yield (
                f"{table}.first_port to last_port have room for {room} calls, and pop.slots is {slots}, unless another "
                "file sets one of these"
            )
    if settings.engines.asr == "nemotron" and (streams := settings.nemotron.streams) < slots:
        yield (
            f"nemotron.streams is {streams}, and pop.slots is {slots}: callers who speak while {streams} others do "
            "wait to be heard"
        )


def _without_effect(settings: config.Config) -> Iterator[str]:
    """Keys that change nothing, since another one is not set."""
    if settings.routes and not takes_phones(settings.sip, settings.twilio, settings.telnyx):
        yield (
            "routes has no effect unless phone calls come in: set sip.port, twilio.auth_token_env (or _file) or "
            "telnyx.public_key, here or in another file"
        )
    if settings.fleet.editions and not settings.bus.servers:
        yield "fleet.editions has no effect unless bus.servers is set, here or in another file"


def _without_deliveries(agents: Iterable[Agent], settings: config.Config) -> Iterator[str]:
    """A line for each agent whose receiver gets no webhooks about its calls."""
    for agent in agents:
        if agent.hooks.after_call and not settings.records.folder:
            yield (
                f"Agent {agent.name}'s hooks.after_call has no effect unless records.folder is set, here or in another "
                "file"
            )
        yield from (*_unsigned(agent), *_unstoppable(agent))


def _unstoppable(agent: Agent) -> Iterator[str]:
    """A line for each tool that nobody can stop, though its caller may interrupt it."""
    for index, tool in enumerate(agent.tools):
        function = tool_code.known(tool.function) if tool.interruptible else None
        if function and not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)):
            yield (
                f"Agent {agent.name}: tools[{index}].interruptible does not stop {tool.name}, whose function runs in a "
                "thread: it goes on, and what comes of it is thrown away. Write it as async def, or make it a webhook"
            )


def _unsigned(agent: Agent) -> Iterator[str]:
    if lacks := signing.lacks(agent.hooks):
        yield f"Agent {agent.name}: {lacks}"
