"""Agent files: checked when loaded, read again when edited."""

import logging
import os
from pathlib import Path

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, PopConfig, TenantConfig
from voicepipe.config.agent_store import GONE_LOOKS, AgentStore, load_agent, open_agents


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    # A version of its own, whatever the file system's clock resolves.
    write.count += 1  # type: ignore[attr-defined]
    os.utime(path, ns=(write.count, write.count))  # type: ignore[attr-defined]
    return path


write.count = 10**18  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "name = 'a'\nintents_file = 'phrases.toml'",
            "intents_file: give a file one folder below, such as intents/a.toml; *.toml beside this",
        ),
        (
            "name = 'a'\nintents_file = '../a/a.toml'",
            "intents_file: give a file one folder below, such as intents/a.toml",
        ),
        (
            "name = 'a'\nintents_file = 'intents/a.toml'\nintents = [{name = 'i', examples = ['x']}]",
            "intents: stand in intents/a.toml already (intents_file); keep one of the two",
        ),
    ],
)
def test_where_the_file_of_intents_may_be(tmp_path: Path, text: str, said: str) -> None:
    path = write(tmp_path / "a.toml", text)
    with pytest.raises(ConfigError) as caught:
        load_agent(path)
    assert str(caught.value).startswith(f"{path}: {said}")


def test_intents_in_a_file_of_their_own(tmp_path: Path) -> None:
    agent = write(tmp_path / "a.toml", "name = 'a'\nintents_file = 'intents/a.toml'")
    file = tmp_path / "intents" / "a.toml"
    with pytest.raises(ConfigError, match=r"a.toml: intents_file: .*intents/a.toml: cannot be read: No such file"):
        load_agent(agent)
    file.parent.mkdir()
    write(file, "[[intents]]\nname = 'hello'\nexamples = ['hello']\ntool = 'nothing'")
    with pytest.raises(ConfigError, match=r"intents/a.toml: intents\[0\].tool: there is no tool nothing"):
        load_agent(agent)
    write(file, "[[intents]]\nname = 'hello'\nexamples = ['hello']\nreply = 'Good day.'")
    store = AgentStore(tmp_path)
    assert [intent.reply for agent in store for intent in agent.intents] == ["Good day."]
    write(file, "[[intents]]\nname = 'hello'\nexamples = ['hello']\nreply = 'Good evening.'")
    assert store.refresh()
    assert [intent.reply for agent in store for intent in agent.intents] == ["Good evening."]
    write(file, "[[intents]]\nname = 'hello'")
    assert not store.refresh(), "a broken edit keeps what was"
    assert [intent.reply for agent in store for intent in agent.intents] == ["Good evening."]


def test_agents_are_known_by_their_name(tmp_path: Path) -> None:
    write(tmp_path / "1.toml", "name = 'desk'\ngreeting = 'Hello.'")
    write(tmp_path / "2.toml", "name = 'night'")
    store = AgentStore(tmp_path)
    assert store.names() == ("desk", "night")
    assert (desk := store.get("desk")) and desk.greeting == "Hello."


def test_two_agents_cannot_share_a_name(tmp_path: Path) -> None:
    write(tmp_path / "1.toml", "name = 'desk'")
    write(tmp_path / "2.toml", "name = 'desk'")
    with pytest.raises(ConfigError, match=r"2\.toml: name: desk is taken by .*1\.toml"):
        AgentStore(tmp_path)


def test_a_directory_without_agents(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no agent"):
        open_agents(Config(pop=PopConfig(agents=str(tmp_path))))


def test_the_default_agent_must_exist(tmp_path: Path) -> None:
    write(tmp_path / "1.toml", "name = 'night'")
    with pytest.raises(ConfigError, match="pop.default_agent: there is no agent front-desk .* allowed: night"):
        open_agents(Config(pop=PopConfig(agents=str(tmp_path))))


def test_the_agents_of_a_tenant_must_exist(tmp_path: Path) -> None:
    write(tmp_path / "1.toml", "name = 'front-desk'")
    tenant = TenantConfig(name="a", key_env="A", agents=("front-desk", "nobody"))
    with pytest.raises(ConfigError, match=r"tenants\[0\]\.agents: there is no agent nobody .* allowed: front-desk"):
        open_agents(Config(pop=PopConfig(agents=str(tmp_path)), tenants=(tenant,)))


def test_those_to_whom_agents_hand_over_must_exist(tmp_path: Path) -> None:
    file = tmp_path / "1.toml"
    write(file, "name = 'front-desk'\nhand_over.bookin = {when = 'Booking.'}")
    write(tmp_path / "2.toml", "name = 'booking'")
    config = Config(pop=PopConfig(agents=str(tmp_path)))
    with pytest.raises(ConfigError, match=r"agent front-desk: hand_over\.bookin: .*did you mean booking\?; allowed: b"):
        open_agents(config)
    assert open_agents(config, wanted=file).names(), "one agent is tried alone"


def test_an_edit_is_taken_over_and_live_calls_keep_theirs(tmp_path: Path) -> None:
    path = write(tmp_path / "1.toml", "name = 'desk'\ngreeting = 'Hello.'")
    store = AgentStore(tmp_path)
    before = store.get("desk")
    assert not store.refresh()
    write(path, "name = 'desk'\ngreeting = 'Good evening.'")
    assert store.refresh()
    after = store.get("desk")
    assert before and before.greeting == "Hello."
    assert after and after.greeting == "Good evening."


def test_a_broken_edit_keeps_the_agent_and_is_logged_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "1.toml", "name = 'desk'\ngreeting = 'Hello.'")
    store = AgentStore(tmp_path)
    write(path, "name = 'desk'\ngreeting = 3")
    assert not store.refresh()
    assert not store.refresh()
    agent = store.get("desk")
    assert agent and agent.greeting == "Hello."
    assert [record.getMessage().count("greeting: cannot be 3") for record in caplog.records] == [1]


def test_an_edit_with_a_schema_that_is_none_keeps_the_agent(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    text = (
        "name = 'desk'\ntools = [{name = 't', webhook = {url = 'https://a.example'}, parameters = {required = %s}}]\n"
        "intents = [{name = 'i', examples = ['x'], tool = 't', slots = {day = 'Which?'}}]"
    )
    path = write(tmp_path / "1.toml", text % "['day']")
    store = AgentStore(tmp_path)
    for required in ("true", "'day'"):
        write(path, text % required)
        assert not store.refresh()
    assert len(caplog.records) == 2
    assert all("tools[0].parameters.required: is no JSON Schema" in record.message for record in caplog.records)
    assert not any("requires" in record.message for record in caplog.records)


def test_files_come_and_go(tmp_path: Path) -> None:
    path = write(tmp_path / "1.toml", "name = 'desk'")
    store = AgentStore(tmp_path)
    write(tmp_path / "2.toml", "name = 'night'")
    assert store.refresh()
    assert store.names() == ("desk", "night")
    path.unlink()
    assert [store.refresh() for _ in range(GONE_LOOKS + 1)] == [False] * GONE_LOOKS + [True]
    assert store.names() == ("night",) and store.get("desk") is None
    assert not store.refresh() and not store.warning


@pytest.mark.parametrize("half", [False, True])
def test_a_folder_that_is_gone_or_half_there_for_a_moment(
    tmp_path: Path, half: bool, caplog: pytest.LogCaptureFixture
) -> None:
    folder, away = tmp_path / "agents", tmp_path / "away"
    folder.mkdir()
    write(folder / "1.toml", "name = 'desk'\ngreeting = 'Hello.'")
    write(folder / "2.toml", "name = 'night'")
    store = AgentStore(folder)
    folder.rename(away)
    assert not any(store.refresh() for _ in range(20))
    folder.mkdir()
    assert not store.refresh(), "it is empty"
    if half:
        (away / "2.toml").rename(folder / "2.toml")
        assert not any(store.refresh() for _ in range(GONE_LOOKS))
    assert store.names() == ("desk", "night")
    (told,) = (record for record in caplog.records if record.levelno > logging.INFO)
    assert "no agent file can be read there; the agents stay as they were" in told.message
    for path in away.iterdir():
        path.rename(folder / path.name)
    write(folder / "1.toml", "name = 'desk'\ngreeting = 'Good evening.'")
    assert store.refresh() and store.names() == ("desk", "night") and not store.warning
    desk = store.get("desk")
    assert desk and desk.greeting == "Good evening."


def test_an_agent_that_the_configuration_names_outlives_its_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(tmp_path / "1.toml", "name = 'front-desk'")
    write(tmp_path / "2.toml", "name = 'night'")
    store = open_agents(Config(pop=PopConfig(agents=str(tmp_path))))
    path.unlink()
    assert not any(store.refresh() for _ in range(3 * GONE_LOOKS))
    assert store.get("front-desk") and "there is no file of front-desk any more" in store.warning
    assert len(caplog.records) == 1
    write(tmp_path / "3.toml", "name = 'front-desk'\ngreeting = 'Moved.'")
    assert store.refresh() and not store.warning
    desk = store.get("front-desk")
    assert desk and desk.greeting == "Moved."


def test_a_file_that_is_renamed_keeps_its_agent(tmp_path: Path) -> None:
    path = write(tmp_path / "1.toml", "name = 'desk'")
    write(tmp_path / "2.toml", "name = 'night'")
    store = AgentStore(tmp_path)
    path.rename(tmp_path / "9.toml")
    assert not any(store.refresh() for _ in range(3 * GONE_LOOKS))
    assert set(store.names()) == {"desk", "night"}


def test_a_name_can_be_taken_when_it_is_free_again(tmp_path: Path) -> None:
    write(tmp_path / "1.toml", "name = 'desk'")
    store = AgentStore(tmp_path)
    write(tmp_path / "2.toml", "name = 'desk'\ngreeting = 'Second.'")
    assert not store.refresh()
    write(tmp_path / "1.toml", "name = 'night'")
    assert store.refresh()
    second = store.get("desk")
    assert second and second.greeting == "Second."


def test_a_store_becomes_another_and_the_next_look_tells_so(tmp_path: Path) -> None:
    for folder, greeting in (("old", "Hello."), ("new", "Good day.")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "desk.toml").write_text(f'name = "desk"\ngreeting = "{greeting}"\n')
    (tmp_path / "old" / "gone.toml").write_text('name = "gone"\n')
    store = AgentStore(tmp_path / "old")
    kept = store.get("desk")
    store.become(AgentStore(tmp_path / "new"))
    assert store.names() == ("desk",) and (now := store.get("desk")) and now.greeting == "Good day."
    assert kept and kept.greeting == "Hello."
    assert [store.refresh(), store.refresh()] == [True, False]
    (tmp_path / "new" / "desk.toml").write_text('name = "desk"\ngreeting = "Good evening."\n')
    assert store.refresh() and (now := store.get("desk")) and now.greeting == "Good evening."


def test_the_file_with_a_hooks_secret_is_relative_to_the_agents_file(tmp_path: Path) -> None:
    hooks = '[hooks]\nafter_call = "https://example.com/"\nsecret_file = "hook.key"\n'
    (file := tmp_path / "desk.toml").write_text(f'name = "desk"\n{hooks}')
    assert load_agent(file).hooks.secret_file == str(tmp_path / "hook.key")


def test_what_is_known_is_not_read_again(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.toml", f"name = '{name}'")
    known = AgentStore(tmp_path)
    write(tmp_path / "b.toml", "name = 'b'\ngreeting = 'Hello.'")
    (tmp_path / "c.toml").unlink()
    write(tmp_path / "d.toml", "name = 'd'")
    store = AgentStore(tmp_path, known=known)
    assert set(store.names()) == {"a", "b", "d"}
    assert store.get("a") is known.get("a")
    assert (b := store.get("b")) and b.greeting == "Hello."
    assert AgentStore(tmp_path, known=store).names() == store.names()
    write(tmp_path / "b.toml", "name = ")
    known.refresh()
    assert known.get("b"), "a broken edit changes nothing for who runs"
    with pytest.raises(ConfigError, match=r"b\.toml: is not TOML"):
        AgentStore(tmp_path, known=known)
