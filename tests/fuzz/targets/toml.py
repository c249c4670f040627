"""Files that people write: a PoP's configuration, and agents, which are read again while calls are in progress."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import cast
from unittest import mock

from tests.fuzz.target import Target
from voicepipe.base.errors import ConfigError
from voicepipe.config import check_together, parse, shipped_files, toml_file
from voicepipe.config.agent_store import load_agent

WORDS = (
    *b"[ ] [[ ]] = . , ' \" ''' \"\"\" # true false nan inf 0x_ 1979-05-27 1e400 \\u0000 \\U00110000 {} {a={}}".split(),
    b"9" * 4301,  # Python does not read a whole number of so many digits,
    b"0x" + b"f" * 3600,  # nor does it write one.
)


class _File:
    """A file that stands nowhere: what `toml_file` asks of a path."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    parent = Path("/nowhere")

    def read_text(self, encoding: str) -> str:
        return self._data.decode(encoding)

    def __str__(self) -> str:
        return "file.toml"


def config(data: bytes) -> None:
    try:
        check_together(parse(toml_file.tables(cast(Path, _File(data)))))
    except ConfigError as error:
        assert str(error)


def _loaded(function: str) -> Callable[..., None]:
    """Nothing is imported: what a name that was made up would do is not ours."""
    if not function.startswith("voicepipe.tools.restaurant:"):
        raise ConfigError(f"there is no module {function}")
    return lambda **arguments: None


def agent(data: bytes) -> None:
    try:
        with mock.patch("voicepipe.tools.tool_code.load", _loaded):
            load_agent(cast(Path, _File(data)))
    except ConfigError as error:
        assert str(error)


def _configs() -> list[bytes]:
    """The defaults, switched on and off: everything in `default.toml` is a comment's width away from being set."""
    text = (shipped_files() / "configs" / "default.toml").read_bytes()
    live = [
        line.removeprefix(b"# ") if b" = " in line or line.startswith(b"# [") else line for line in text.splitlines()
    ]
    tables = b"\n".join(live).split(b"\n\n")
    return [text, *tables]


def _agents() -> list[bytes]:
    """The first table of each agent that we ship, with some of its others."""
    seeds = []
    for path in sorted((shipped_files() / "configs" / "agents").glob("*.toml")):
        text = path.read_bytes().replace(b"\nintents_file", b"\n# intents_file")
        intents = path.parent / "intents" / path.name
        first, *others = (text + b"\n" + intents.read_bytes() if intents.exists() else text).split(b"\n[")
        seeds += [b"\n[".join([first, *others[n : n + 3]]) for n in range(0, len(others), max(1, len(others) // 20))]
    return seeds


def _nested(random: Random) -> bytes:
    """Brackets in brackets, tables in tables, keys without end: readers recurse, or begin anew for each part."""
    depth = random.choice((5, 50, 300, 5000))
    opening, closing = random.choice(((b"[", b"]"), (b"{a=", b"}"), (b"a.", b"")))
    if not closing:
        return opening * depth + b"a = 1"
    closed = closing * random.choice((0, depth))
    return random.choice((b"pop", b"name", b"tools", b"sip.users")) + b" = " + opening * depth + b"1" + closed


TARGETS = (
    Target("config", "a PoP's configuration", config, _configs, _nested, WORDS, share=0.1, largest=24_576),
    Target("agent", "an agent's file", agent, _agents, _nested, WORDS, share=0.1, largest=24_576),
)
