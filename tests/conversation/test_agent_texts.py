"""The texts of an agent in which variables may stand."""

from pathlib import Path

import msgspec

from tests.support.paths import ROOT
from voicepipe.agent import Agent
from voicepipe.config.agent_store import load_agent
from voicepipe.conversation.agent_texts import TextUse, changed

FRONT_DESK = load_agent(Path(ROOT / "configs/agents/front-desk.toml"))
NO_TEXTS = {
    "name",
    "voice",
    "language",
    "time_zone",
    "intents_file",
    "interrupt",
    "locked",
    "variables",
    "hooks",
    "model",
}
"""Keys whose values are for the program."""


def test_nothing_changed_is_the_same_object() -> None:
    assert changed(FRONT_DESK, lambda key, text, use: text) is FRONT_DESK


def test_every_text_has_its_key_and_what_changes_is_new() -> None:
    uses: dict[str, TextUse] = {}

    def note(key: str, text: str, use: TextUse) -> str:
        uses[key] = use
        return f"{text}!"

    its = changed(FRONT_DESK, note)
    assert its.greeting == f"{FRONT_DESK.greeting}!" and its.intents[3].reply == f"{FRONT_DESK.intents[3].reply}!"
    assert (uses["instructions"], uses["tools[0].description"], uses["no_input[1]"]) == ("read", "read", "spoken")
    assert (uses["transfer.colleague"], uses["keys.0"], uses["intents[3].reply"]) == ("dialled", "spoken", "spoken")


def test_no_text_of_an_agent_is_forgotten() -> None:
    known = {name: "x" for name, info in _types(Agent).items() if info is str}
    agent = msgspec.convert({**known, "name": "a", "language": "en"}, Agent)
    keys: set[str] = set()

    def note(key: str, text: str, use: TextUse) -> str:
        keys.add(key)
        return text

    changed(agent, note)
    assert known.keys() - NO_TEXTS <= keys


def _types(kind: type[msgspec.Struct]) -> dict[str, object]:
    return {field.name: field.type for field in msgspec.structs.fields(kind)}
