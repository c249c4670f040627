"""`voicepipe new` and `demo --agent`: a folder that works as it is written."""

import sys
from pathlib import Path

import pytest

from voicepipe import config
from voicepipe.commands import cli
from voicepipe.config.agent_store import load_agent, open_agents
from voicepipe.tools import tool_code


@pytest.fixture
def clinic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["new", "clinic"]) == 0
    return tmp_path / "clinic"


def test_what_is_written_is_an_agent_whose_function_answers(clinic: Path) -> None:
    assert {file.name for file in clinic.iterdir()} == {"agent.toml", "tools.py", "README.md"}
    agent = load_agent(clinic / "agent.toml")
    assert agent.name == "clinic"
    hours, message = agent.tools
    function = tool_code.known(hours.function)
    assert function and function(day="Sunday") == "On Sunday we are closed."
    assert message.webhook and message.webhook.url == "http://127.0.0.1:9000/message"
    commands = (clinic / "README.md").read_text()
    assert f"{sys.executable} -m voicepipe demo --agent clinic" in commands, (
        "as it was called, which is not as a command"
    )
    assert "$" not in commands


@pytest.mark.parametrize(
    ("name", "said"), [("clinic", "is there already; choose another name"), ("Clinic!", "cannot be an agent's name")]
)
def test_names_that_cannot_be(clinic: Path, capsys: pytest.CaptureFixture[str], name: str, said: str) -> None:
    assert cli.main(["new", name]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("path", ["clinic", "clinic/agent.toml"])
def test_the_demo_has_the_agent_that_is_named(clinic: Path, path: str) -> None:
    chosen = cli._with_agent(cli._agent_file(Path(path)), config.load()).pop
    assert (chosen.agents, chosen.default_agent) == (str(clinic), "clinic")


BROKEN = [
    pytest.param("a.toml", "name = ", id="no toml"),
    pytest.param("z.toml", "name = 'z'\nspeed = 'fast'\n", id="a wrong value"),
    pytest.param("a.toml", "name = 'a'\nintents_file = 'intents/none.toml'\n", id="no intents"),
    pytest.param("a.toml", "name = 'a'\ntools = [{name = 't', function = 'nowhere:f'}]\n", id="no function"),
    pytest.param("my.toml", "[pop]\nslots = 3\n", id="a configuration"),
]
SAME_NAME = pytest.param("a.toml", "name = 'clinic'\ngreeting = 'I have the same name.'\n", id="the same name")


@pytest.mark.parametrize(
    ("path", "name", "text"),
    # A folder in which two agents have one name is not one agent's.
    [
        pytest.param(path, *broken.values, id=f"{path}-{broken.id}")
        for path, files in {"clinic": BROKEN, "clinic/agent.toml": [*BROKEN, SAME_NAME]}.items()
        for broken in files
    ],
)
def test_a_broken_file_beside_it_stops_no_agent(
    clinic: Path, path: str, name: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    (clinic / name).write_text(text)
    file = cli._agent_file(Path(path))
    assert file == clinic / "agent.toml"
    store = open_agents(cli._with_agent(file, config.load()), file)
    assert store.names() == ("clinic",)
    assert (agent := store.get("clinic")) and agent.greeting == "Good day, how can I help you?"
    [warning] = caplog.messages
    assert warning.startswith(str(clinic / name)) and warning.endswith(
        "(left out: it is not the agent that was asked for)"
    )
    (clinic / name).write_text("name = 'mended'\n")
    assert store.refresh() and set(store.names()) == {"clinic", "mended"}


def test_the_agent_that_is_named_must_be_good(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clinic / "agent.toml").write_text("name = 'clinic'\nspeed = 'fast'\n")
    (clinic / "good.toml").write_text("name = 'good'\n")
    assert cli.main(["demo", "--agent", "clinic/agent.toml"]) == 2
    assert "agent.toml: speed: cannot be" in capsys.readouterr().err
    (clinic / "good.toml").unlink()
    assert cli.main(["demo", "--agent", "clinic"]) == 2
    assert "agent.toml: speed: cannot be" in capsys.readouterr().err
    (clinic / "agent.toml").unlink()
    assert cli.main(["demo", "--agent", "clinic"]) == 2
    assert "clinic holds no agent" in capsys.readouterr().err
    (clinic / "clinic.conf").write_text("name = 'clinic'\n")
    assert cli.main(["demo", "--agent", "clinic/clinic.conf"]) == 2
    assert "ends in .toml" in capsys.readouterr().err


def test_of_several_agents_one_is_to_be_named(clinic: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clinic / "other.toml").write_text('name = "other"\n')
    assert cli.main(["demo", "--agent", "clinic"]) == 2
    assert "holds several agents (clinic, other)" in capsys.readouterr().err
    assert cli.main(["demo", "--agent", "nowhere"]) == 2
    assert "nowhere" in capsys.readouterr().err
