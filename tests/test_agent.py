"""What answers: an agent's words that cut a reply, its hooks, and its settings in a call."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from voicepipe.agent import Agent, AgentHooks, Hooks, Tool, ToolSpec
from voicepipe.call_settings import CallSettings, SemanticVad, ServerVad


@pytest.mark.parametrize(
    ("said", "cuts"),
    [
        ("stop", True),
        ("Stop!", True),
        ("oh, hold on please", True),
        ("HOLD  ON", True),
        ("excuse me", True),
        ("stopping by", False),
        ("hold the line", False),
        ("nobody knows", False),
        ("", False),
    ],
)
def test_a_phrase_cuts_a_reply_as_whole_words(said: str, cuts: bool) -> None:
    assert Agent("desk").is_interrupted(said) is cuts


def test_an_agent_says_which_words_cut_its_replies() -> None:
    agent = Agent("desk", interrupt=("Moment, bitte",))
    assert agent.is_interrupted("einen moment bitte") and not agent.is_interrupted("stop")
    assert not Agent("desk", interrupt=()).is_interrupted("stop")


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"after_call": "crm.example"}, "after_call: 'crm.example' is no address"),
        ({"after_call": "https://crm.example"}, "after_call and secret_env go together"),
        ({"secret_env": "CRM"}, "after_call and secret_env go together"),
    ],
)
def test_records_are_sent_signed_or_not_at_all(hooks: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Hooks(**hooks)
    assert Hooks("https://crm.example", "CRM").after_call


URL = "https://shop.example/incoming"


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"incoming_call": URL}, "incoming_call: goes to a URL, signed"),
        ({"incoming_call": "hooks:incoming", "secret_env": "KEY"}, "incoming_call|secret_env: signs"),
        ({"incoming_call": URL, "before_call": URL, "secret_env": "KEY"}, "one is asked about a call"),
        ({"agents": ("clinic",)}, "before_call or incoming_call says which of them answers"),
    ],
)
def test_who_is_asked_before_a_phone_call_is_answered(hooks: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AgentHooks(**hooks)
    assert AgentHooks().asked_ms == 0
    assert AgentHooks(before_call=URL, before_call_ms=200, agents=("clinic",)).asked_ms == 200
    assert AgentHooks(incoming_call=URL, secret_env="KEY", agents=("clinic",)).asked_ms == 10_000


@pytest.mark.parametrize(
    ("hooks", "said"),
    [
        ({"before_call": "ftp://crm.example"}, "before_call: 'ftp://crm.example' is neither an address nor a function"),
        ({"on_turn": "told"}, "on_turn: 'told' is neither an address nor a function; give one such as"),
        ({"after_call": "https://crm.example"}, "after_call and secret_env go together"),
        (
            {"before_call": "hooks:ask", "secret_env": "CRM"},
            "secret_env: signs what is sent to a URL, and no hook here",
        ),
        ({"agents": ("night",)}, "agents: before_call or incoming_call says which"),
    ],
)
def test_hooks_of_agents_are_urls_or_functions(hooks: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        AgentHooks(**hooks)


def test_an_agent_s_hooks_need_a_secret_only_for_records_by_url() -> None:
    assert AgentHooks(before_call="https://crm.example/ask", on_turn="hooks:told", after_call="hooks:over").targets
    assert AgentHooks(before_call="https://crm.example/ask", secret_env="CRM").secret
    assert not AgentHooks().targets


def test_a_call_begins_with_the_settings_of_its_agent() -> None:
    settings = CallSettings.of(Agent("desk", instructions="Be kind.", voice="anna", speed=1.2))
    assert (settings.instructions, settings.voice, settings.speed) == ("Be kind.", "anna", 1.2)
    assert settings.turn_detection == SemanticVad() and settings.modality == "audio"


def test_clients_name_how_turns_end_as_the_realtime_convention_has_it() -> None:
    text = b'{"type":"server_vad","silence_duration_ms":700,"prefix_padding_ms":100,"idle_timeout_ms":5000}'
    read = msgspec.json.decode(text, type=ServerVad | SemanticVad)
    assert read == ServerVad(silence_ms=700, prefix_ms=100, idle_ms=5000)
    assert msgspec.json.decode(msgspec.json.encode(read)) == {
        "type": "server_vad", "threshold": 0.5, "prefix_padding_ms": 100, "silence_duration_ms": 700,
        "idle_timeout_ms": 5000, "create_response": True, "interrupt_response": True,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["", "book table", "a" * 65, "büchen"])
def test_a_tool_s_name_is_one_that_language_models_take(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"name": name}, Tool)
    tool = Tool("book_table", "Books.", {"type": "object"})
    assert (tool.spec.name, tool.spec.description, tool.spec.parameters) == ("book_table", "Books.", {"type": "object"})


def test_an_agent_that_takes_a_call_over_locks_what_the_client_has_set() -> None:
    theirs = replace(
        CallSettings.of(Agent("desk")), tools=(ToolSpec("book"),), turn_detection=None, modality="text", max_tokens=9
    )
    open_agent, shut = Agent("booking", voice="bert"), Agent("booking", locked=("tools", "turn_detection"))
    handed = theirs.handed_to(CallSettings.of(open_agent))
    assert (handed.tools, handed.turn_detection, handed.voice) == (theirs.tools, None, "bert")
    handed = theirs.handed_to(CallSettings.of(shut))
    assert (handed.tools, handed.turn_detection, handed.modality) == ((), SemanticVad(), "text")
