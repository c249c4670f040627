"""Agent files: loaded, checked, and read again when someone edits them."""

import difflib
import logging
import re
import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from voicepipe.agent import Agent, AgentHooks, Hooks, Intents
from voicepipe.base.errors import ConfigError
from voicepipe.config import agent_problems, toml_file
from voicepipe.config.file_kind import check_kind
from voicepipe.config.files import placed
from voicepipe.config.pop_config import Config
from voicepipe.languages.agent_texts import with_default_texts
from voicepipe.tools import tool_code

log = logging.getLogger(__name__)

GONE_LOOKS = 5
"""Looks in a row at which a missing file counts as deleted, while others exist: until then somebody may be copying."""

NO_AGENT = "holds no agent; give a folder with agents' *.toml files"
"""The error for a folder without agents."""
BELOW = "*/*.toml"
"""Folder of files with intents, which are watched for changes. Beside the agents they would be read as agents."""

_Version = tuple[int, int, tool_code.Version]
"""Modification time in ns and size, and those of the files that it may include: an agent whose version is unchanged is
not read again."""


Read = Callable[[Path], Agent]
"""Reads an agent's file: `load_agent`, `read_agent`."""


def load_agent(path: Path) -> Agent:
    """The agent in `path`, with its tools' functions loaded. Raises ConfigError with one line for each problem."""
    return _read(path, agent_problems.of_functions)


def read_agent(path: Path) -> Agent:
    """The agent in `path` where its tools' functions are not installed: they are not looked for. Raises as
    `load_agent`."""
    return _read(path, lambda agent: ())


def _read(path: Path, of_functions: Callable[[Agent], Iterable[str]]) -> Agent:
    tables = toml_file.tables(path)
    check_kind(path, tables, "agent")
    agent = toml_file.convert(tables, Agent, path)
    agent = replace(agent, hooks=_hooks_placed(agent.hooks, path))
    of_intents = path
    if agent.intents_file:
        of_intents = path.parent / agent.intents_file
        agent = _with_intents(agent, path, of_intents)
    agent = with_default_texts(agent, tables.keys())
    tools = tuple(replace(tool, function=tool_code.placed(tool.function, path.parent)) for tool in agent.tools)
    agent = replace(agent, tools=tools)
    problems = [f"{path}: {problem}" for problem in (*agent_problems.of_agent(agent), *of_functions(agent))]
    if problems := problems + [f"{of_intents}: {problem}" for problem in agent_problems.of_intents(agent)]:
        raise ConfigError("\n".join(problems))
    return agent


def _hooks_placed(hooks: AgentHooks, path: Path) -> AgentHooks:
    """The hooks with files as they lie beside the agent's file `path`."""
    changed = {key: tool_code.placed(target, path.parent) for key, target in hooks.targets.items()}
    if hooks.secret_file:
        changed["secret_file"] = placed(path, hooks.secret_file)
    return replace(hooks, **changed) if changed else hooks


def _with_intents(agent: Agent, path: Path, file: Path) -> Agent:
    if agent.intents:
        raise ConfigError(f"{path}: intents: stand in {agent.intents_file} already (intents_file); keep one of the two")
    if not re.fullmatch(r"[^/.][^/]*/[^/]+\.toml", agent.intents_file):
        raise ConfigError(
            f"{path}: intents_file: give a file one folder below, such as intents/{path.name}; *.toml beside this file "
            "is read as an agent"
        )
    try:
        return replace(agent, intents=toml_file.read(file, Intents).intents)
    except ConfigError as error:
        raise ConfigError(f"{path}: intents_file: {error}") from error


def file_of_agent(path: Path) -> Path:
    """The file of the one agent that `path` names: itself, or the only valid one of this folder. Raises ConfigError."""
    if path.is_file():
        if path.suffix != ".toml":
            raise ConfigError(f"{path}: an agent's file has a name that ends in .toml; rename it")
        return path
    agents, problems = dict[Path, str](), list[str]()
    for file in sorted(path.glob("*.toml")):
        try:
            agents[file] = load_agent(file).name
        except ConfigError as error:
            problems.append(str(error))
    if len(agents) > 1:
        names = ", ".join(agents.values())
        raise ConfigError(f"{path} holds several agents ({names}); give the file of the one that is to answer")
    if not agents:
        raise ConfigError("\n".join(problems) or f"{path} {NO_AGENT}")
    return next(iter(agents))


def open_agents(config: Config, wanted: Path | None = None, known: "AgentStore | None" = None) -> "AgentStore":
    """The agents that the configuration names; `wanted` and `known` as in `AgentStore`. Raises ConfigError, also if one
    of them does not exist."""
    named = [("pop.default_agent", config.pop.default_agent)]
    named += [(f"tenants[{n}].agents", name) for n, tenant in enumerate(config.tenants) for name in tenant.agents]
    named += [(f"routes[{n}].agent", route.agent) for n, route in enumerate(config.routes) if route.agent]
    store = AgentStore(Path(config.pop.agents), needed={name for _, name in named}, wanted=wanted, known=known)
    if not store.names():
        raise ConfigError(f"pop.agents: {store.directory} {NO_AGENT}")
    for key, name in named:
        if not store.get(name):
            raise ConfigError(
                f"{key}: there is no agent {name} in {store.directory}; allowed: {', '.join(store.names())}"
            )
    if config.engines.llm == "vllm":
        for agent in store:
            if problem := config.vllm.lacks_model(agent.name, agent.model):
                raise ConfigError(problem)
    unknown = [f"agent {agent.name}: {problem}" for agent in store
               for problem in agent_problems.unknown_colleagues(agent, store.names())]  # fmt: skip
    if unknown and not wanted:
        raise ConfigError("\n".join(unknown))
    for problem in unknown:
        log.warning("%s", problem)
    return store


def names_beside(file: Path) -> set[str]:
    """The names of the agents in the folder of this agent's file, as far as its files can be read."""
    names: set[str] = set()
    for path in sorted(file.parent.glob("*.toml")):
        with suppress(ConfigError):
            names.add(str(toml_file.tables(path).get("name", "")))
    return names


class AgentStore:
    """The agents of a folder; `read` reads one of its files. Live calls keep the `Agent` that they began with, so an
    edit never reaches them.

    A valid agent stays until its replacement is valid: a broken edit leaves the agent as it was, and so does a folder
    that is gone or empty, or a file that is missing for a moment. A file that stays away removes its agent, unless the
    configuration names that (`needed`). Raises ConfigError if a file is broken at the start. Where one file is
    `wanted`, only that one is meant: broken files beside it are left out, and the log says so. Files that are as they
    were for the store `known` are not read again: that takes 70 ms for a large agent."""

    def __init__(
        self,
        directory: Path,
        needed: Collection[str] = (),
        read: Read = load_agent,
        wanted: Path | None = None,
        known: "AgentStore | None" = None,
    ) -> None:
        self.directory = directory
        self.warning = ""
        """Why agents are not up to date, for the PoP's health; empty: they are."""
        self._needed = needed
        self._read = read
        self._versions: dict[Path, _Version] = {}
        self._missing: dict[Path, int] = {}
        """Files that are missing though their agents are still known, and for how many looks in a row."""
        self._broken: set[Path] = set()
        self._agents: dict[Path, Agent] = {}
        self._by_name: dict[str, Agent] = {}
        self._reported: dict[str, Agent] = {}
        """The agents that `refresh` has reported."""
        self._changing = threading.Lock()
        files = _files(directory)
        if known:
            with known._changing:
                self._take_unchanged(known, files)
        if wanted and wanted in files:  # First, so that it has its name before any other.
            files = {wanted: files[wanted]} | files
        problems = self._reread(files)
        if problems and (not wanted or wanted in self._broken):
            raise ConfigError("\n".join(problems))
        for problem in problems:
            log.warning("%s (left out: it is not the agent that was asked for)", problem)
        self._reported = self._by_name

    def get(self, name: str) -> Agent | None:
        """The agent of this name as its file is now."""
        return self._by_name.get(name)

    def names(self) -> tuple[str, ...]:
        return tuple(self._by_name)

    def __iter__(self) -> Iterator[Agent]:
        return iter(self._by_name.values())

    def _take_unchanged(self, known: "AgentStore", files: Mapping[Path, _Version]) -> None:
        same = {path for path, version in files.items() if known._versions.get(path) == version} - known._broken
        self._agents = {path: agent for path, agent in known._agents.items() if path in same}
        self._versions = {path: files[path] for path in self._agents}
        self._by_name = {self._agents[path].name: self._agents[path] for path in sorted(self._agents)}

    def become(self, other: "AgentStore") -> None:
        """Take over the agents of another folder, which were read already; the next `refresh` reports that they differ.
        It may wait for a `refresh`: call it from a thread."""
        with self._changing:
            self.directory, self.warning = other.directory, other.warning
            self._needed, self._read = other._needed, other._read
            self._versions, self._missing, self._broken = other._versions, other._missing, other._broken
            self._agents, self._by_name = other._agents, other._by_name

    def refresh(self) -> bool:
        """Read what changed since the last time; True if an agent is different. Reads files: call it from a thread."""
        with self._changing:
            self._look_again()
            before, self._reported = self._reported, self._by_name
            return self._by_name != before

    def _look_again(self) -> None:
        said = self.warning
        files = _files(self.directory)
        for problem in self._reread(files) if files else ():
            log.error("%s (the agent stays as it was)", problem)
        self.warning = self._what_is_missing(files)
        if self.warning and self.warning != said:
            log.error("%s", self.warning)
        elif said and not self.warning:
            log.info("%s: all agents' files are there again", self.directory)

    def _what_is_missing(self, files: Mapping[Path, _Version]) -> str:
        if not files:
            return f"{self.directory}: no agent file can be read there; the agents stay as they were"
        kept = sorted({self._agents[path].name for path, looks in self._missing.items() if looks > GONE_LOOKS})
        return f"{self.directory}: there is no file of {', '.join(kept)} any more; kept, as configured" if kept else ""

    def _reread(self, versions: dict[Path, _Version]) -> list[str]:
        """Bring the agents up to date; returns the problems of files that could not be taken over."""
        gone = [path for path in self._agents if path not in versions]
        missing = {path: min(GONE_LOOKS, self._missing.get(path, 0)) + 1 for path in gone}
        if versions == self._versions and missing == self._missing:
            return []
        agents = {path: agent for path, agent in self._agents.items() if path in versions}
        problems: dict[Path, str] = {}
        for path, version in versions.items():
            if self._versions.get(path) == version and path not in self._broken:
                continue
            try:
                agents[path] = _unlike(self._read(path), path, agents)
            except ConfigError as error:
                problems[path] = str(error)
        # A broken file is tried again when any file changes: a name may be free now.
        self._versions, self._broken = versions, set(problems)
        self._missing = {path: looks for path, looks in missing.items() if self._keeps(path, looks, agents)}
        self._agents = agents | {path: self._agents[path] for path in self._missing}
        self._by_name = {self._agents[path].name: self._agents[path] for path in sorted(self._agents)}
        return list(problems.values())

    def _keeps(self, path: Path, looks: int, there: Mapping[Path, Agent]) -> bool:
        """Whether the agent of a file that was missing for so many looks is still known."""
        name = self._agents[path].name
        if any(agent.name == name for agent in there.values()):  # The file was renamed.
            return False
        return looks <= GONE_LOOKS or name in self._needed


def _files(directory: Path) -> dict[Path, _Version]:
    """The agent files that exist; none where the directory cannot be read."""
    try:
        code = tool_code.version(directory) + tool_code.version(directory, BELOW)
        return {path: (*_version(path), code) for path in sorted(directory.iterdir()) if path.suffix == ".toml"}
    except OSError:
        return {}


def _version(path: Path) -> tuple[int, int]:
    try:
        stat = path.stat()
    except OSError:  # deleted, or replaced by an editor, this very moment
        return 0, 0
    return stat.st_mtime_ns, stat.st_size


def _unlike(agent: Agent, path: Path, others: dict[Path, Agent]) -> Agent:
    """`agent`, unless another file has an agent of its name. Raises ConfigError."""
    for other, taken in others.items():
        if other != path and taken.name == agent.name:
            raise ConfigError(f"{path}: name: {agent.name} is taken by {other}; every agent needs a name of its own")
    return agent


def hooks_of(config: Config, agents: AgentStore, agent_name: str, tenant_name: str) -> Hooks:
    """The receivers of webhooks about this tenant's calls with this agent: those of the agent, or else of the
    tenant."""
    agent = agents.get(agent_name)
    if agent and agent.hooks.after_call:
        return agent.hooks
    return next((tenant.hooks for tenant in config.tenants if tenant.name == tenant_name), Hooks())


def no_voice(agent: Agent, voices: Collection[str]) -> str:
    """The error for an agent whose voice is not among these; empty: it is."""
    if not agent.voice or agent.voice.partition("+")[0] in voices:  # espeak-ng's may have a variant, "en-us+Annie"
        return ""
    close = difflib.get_close_matches(agent.voice, voices, 3) or sorted(voices)[:5]
    return (
        f"Agent {agent.name} speaks with the default voice, since there is no voice {agent.voice!r}; there are "
        f"{len(voices)} (GET /v1/voices lists them), such as {', '.join(close)}."
    )
