"""Python files beside an agent's: found, checked as the agent is read, and read again when they change."""

import os
from pathlib import Path
from typing import Any

import pytest

from voicepipe.agent import ToolSpec
from voicepipe.base.errors import ConfigError
from voicepipe.config.agent_store import AgentStore, load_agent
from voicepipe.tools import tool_code

AGENT = """
name = "clinic"
[[tools]]
name = "book"
function = "%s"
[tools.parameters]
type = "object"
required = ["day"]
properties = { day = { type = "string" } }
"""
GOOD = "def book(day):\n    return f'{day} it is'\n"


def write(folder: Path, code: str, function: str = "tools:book", agent: str = AGENT) -> Path:
    (folder / "tools.py").write_text(code)
    file = folder / "clinic.toml"
    file.write_text(agent % function)
    return file


def said_by(file: Path) -> Any:
    (tool,) = load_agent(file).tools
    function = tool_code.known(tool.function)
    assert function
    return function(day="Monday")


@pytest.mark.parametrize("function", ["tools:book", "tools.py:book"])
def test_a_file_beside_the_agents(tmp_path: Path, function: str) -> None:
    assert said_by(write(tmp_path, GOOD, function)) == "Monday it is"


def test_it_imports_from_files_beside_it(tmp_path: Path) -> None:
    (tmp_path / "words_of_the_clinic.py").write_text("IT_IS = 'it is'\n")
    code = "from words_of_the_clinic import IT_IS\ndef book(day):\n    return f'{day} {IT_IS}'\n"
    assert said_by(write(tmp_path, code)) == "Monday it is"


def test_its_classes_know_their_module(tmp_path: Path) -> None:
    code = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Booking:\n    day: str\ndef book(day):\n    return f'{Booking(day).day} it is'\n"
    )
    assert said_by(write(tmp_path, code)) == "Monday it is"


def test_folders_have_files_of_the_same_name(tmp_path: Path) -> None:
    said = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        said.append(said_by(write(tmp_path / name, f"def book(day):\n    return '{name}'\n")))
    assert said == ["one", "two"]


def test_an_installed_module(tmp_path: Path) -> None:
    agent = AGENT.replace("day", "people") % "voicepipe.tools.restaurant:nothing"
    file = tmp_path / "clinic.toml"
    file.write_text(agent)
    with pytest.raises(
        ConfigError, match="voicepipe.tools.restaurant has no function nothing; its functions: check_table, "
    ):
        load_agent(file)


@pytest.mark.parametrize(
    ("code", "function", "says"),
    [
        (GOOD, "tools", '"tools" names no function; give "module:function", such as "tools:book"'),
        ("\nx = 1 / 0\n", "tools:book", "ZeroDivisionError: division by zero (line 2)"),
        ("def book(:\n", "tools:book", "SyntaxError"),
        ("raise SystemExit(3)\n", "tools:book", "SystemExit: 3 (line 1)"),
        (
            "def book(day, time):\n    pass\n",
            "tools:book",
            "book needs time, of which the tool's parameters know nothing",
        ),
    ],
)
def test_what_is_wrong_is_told_as_the_agent_is_read(tmp_path: Path, code: str, function: str, says: str) -> None:
    with pytest.raises(ConfigError) as problem:
        load_agent(write(tmp_path, code, function))
    assert str(problem.value).startswith(f"{tmp_path / 'clinic.toml'}: tools[0].function: ")
    assert says in str(problem.value)


@pytest.mark.parametrize(
    "code",
    [
        "def book(day, call):\n    pass\n",
        "def book(**all):\n    pass\n",
        "def book(day, time='noon'):\n    pass\n",
        "async def book(day):\n    pass\n",
    ],
)
def test_what_fits(tmp_path: Path, code: str) -> None:
    assert load_agent(write(tmp_path, code)).tools[0].spec == ToolSpec(
        "book", "", {"type": "object", "required": ["day"], "properties": {"day": {"type": "string"}}}
    )


def test_an_edit_is_read_and_a_broken_one_keeps_what_was(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = AgentStore(write(tmp_path, GOOD).parent)
    agent = store.get("clinic")
    assert agent

    def edited(code: str) -> Any:
        (tmp_path / "tools.py").write_text(code)
        os.utime(tmp_path / "tools.py", ns=(0, edited.clock))  # type: ignore[attr-defined]
        edited.clock += 1  # type: ignore[attr-defined]
        store.refresh()
        function = tool_code.known(agent.tools[0].function)
        assert function
        return function(day="Monday")

    edited.clock = 1  # type: ignore[attr-defined]
    assert edited(GOOD.replace("it is", "will do")) == "Monday will do"
    assert edited("def book(:\n") == "Monday will do"
    assert "SyntaxError" in caplog.text and "the agent stays as it was" in caplog.text
    assert edited(GOOD) == "Monday it is"
