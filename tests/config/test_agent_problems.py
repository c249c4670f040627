"""What is wrong with an agent that its types cannot say."""

from typing import Any

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.config.agent_store import load_agent


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "name: is missing; every file of this kind needs it"),
        ("name = 'A B'", 'name: cannot be "A B"; allowed: lower-case letters'),
        ("name = 'a'\nspeed = 9", "speed: cannot be 9; allowed: a number, at least 0.25, at most 1.5"),
        ("name = 'a'\ngreetings = 'hi'", "greetings: there is no such key; did you mean greeting? allowed: name,"),
        ("name = 'a'\ntools = [{name = 't'}]", "tools[0]: t needs exactly one of webhook and function"),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], tool = 't'}]",
            "intents[0].tool: there is no tool t; allowed: none",
        ),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], reply = 'At {tme}.', slots = {time = 'When?'}}]",
            "intents[0].reply: {tme} is not a slot; allowed: last_reply, result, time",
        ),
        ("name = 'a'\nintents = [{name = 'i'}]", "intents[0].examples: is missing; every entry of intents needs it"),
        ("name = 'a'\ntransfer = {desk = 3}", "transfer.desk: cannot be 3; allowed: text"),
        ("name = 'a'\nkeys = {1 = {a = 2}}", "keys.1: cannot be a table; allowed: text"),
        ("name = 'a'\ntransfer = {ann = 'Ann'}", "transfer.ann: nobody can be called at 'Ann'; give a number such as"),
        ("name = 'a'\ntransfer = {ann = 'sip:a@b>'}", "transfer.ann: nobody can be called at 'sip:a@b>'"),
        ("name = 'a'\nkeys = {1x = 'What?'}", "keys: 1x is on no telephone; allowed: 0 to 9, *, # and A to D"),
        ("name = 'a'\nkeys = {1 = ' '}", "keys.1: is empty; say what the caller means, in words"),
        ("name = 'a'\nhand_over.a = {when = 'Never.'}", "hand_over.a: is this agent itself; name another one"),
        ("name = 'a'\nhand_over.b = {when = ' '}", "hand_over.b.when: is empty; say in which case b takes over"),
        (
            "name = 'a'\nhand_over.b = {when = 'Ever.', keep = 'some'}",
            'hand_over.b.keep: cannot be "some"; allowed: "all", "last", "summary"',
        ),
        ("name = 'a'\nhand_over.b = {}", "hand_over.b.when: is missing"),
        (
            "name = 'a'\ntools = [{name = 'hand_over', function = 'm:f'}]",
            "tools[0].name: hand_over is a tool of every agent's; choose another name",
        ),
        ("name = 'a'\nkey_pause_ms = -1", "key_pause_ms: cannot be -1"),
        ("name = 'a'\ntemperature = 3", "temperature: cannot be 3; allowed: a number, at least 0, at most 2"),
        (
            "name = 'a'\npronounce = {Ann = ' '}",
            'pronounce.Ann: is empty; give a spelling, as "Shivawn", or IPA between',
        ),
        ("name = 'a'\npronounce = {Ann = '/4n/'}", "pronounce.Ann: 4 is no sign of the IPA; a spelling has no slashes"),
        ("name = 'a'\npronounce = {Ann = 'An', ANN = 'Un'}", "pronounce.ANN: is the same word as Ann"),
        (
            "name = 'a'\npronounce = {greeting = 'Hi'}",
            "pronounce.greeting: is a key of the agent; put it above the file's",
        ),
        ("name = 'a'\npronounce = {'-' = 'dash'}", "pronounce: '-' is no word"),
        ("name = 'a'\nvocabulary = ['Okonkwo', ' ']", "vocabulary[1]: cannot be ' '; give a word or a name"),
        (f"name = 'a'\nvocabulary = {51 * ['Okonkwo']}", "vocabulary: cannot have 51 entries; at most 50"),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], transfer = 'desk'}]",
            "intents[0].transfer: there is no transfer desk; allowed: none",
        ),
        ("name = 'a'\ntools = [{name = 't', function = 'm:f', timeout_ms = 0}]", "tools[0].timeout_ms: cannot be 0"),
        (
            "name = 'a'\n"
            "tools = [{name = 't', function = 'voicepipe.tools.restaurant:book_table', while_running = ['']}]",
            "tools[0].while_running: a text is empty; say what callers are to hear while t runs",
        ),
        (
            "name = 'a'\ntools = [{name = 'send_keys', function = 'voicepipe.tools.restaurant:book_table'}]",
            "tools[0].name: send_keys is a tool of every agent's; choose another name",
        ),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], end_call = true}]",
            "intents[0].end_call: this agent may not hang up; put end_call = true above the file's first [table]",
        ),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], check = 'look', confirm = '{day}?'}]",
            "intents[0].check: there is no tool look; allowed: none",
        ),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], confirm = 'Right?'}]",
            "intents[0].confirm: there is nothing to confirm; give the intent slots",
        ),
        (
            "name = 'a'\nintents = [{name = 'i', examples = ['x'], slots = {day = 'Which?'}, confirm = 'On {date}?'}]",
            "intents[0].confirm: {date} is not a slot; allowed: day",
        ),
        ("name = 'a'\n[hooks]\nbefore_call = 'x'", "hooks.before_call: 'x' is neither an address nor a function"),
        (
            "name = 'a'\n[hooks]\nbefore_call_ms = 50",
            "hooks.before_call_ms: cannot be 50; allowed: a whole number, at least 100",
        ),
        (
            "name = 'a'\n[hooks]\nbefore_call = 'https://a.example'\nagents = ['a']",
            "hooks.agents: a is this agent itself; name those that may answer in its place",
        ),
        ("name = 'a'\n[hooks]\non_turn = 'nowhere:f'", "hooks.on_turn: there is no module nowhere; put nowhere.py"),
        (
            "name = 'a'\n[hooks]\nbefore_call = 'voicepipe.tools.restaurant:change_booking'",
            "hooks.before_call: change_booking needs phone and people and day and time, which it does not get; it can "
            "take call, agent, door, pop, tenant",
        ),
    ],
)
def test_problems_name_the_key_and_what_is_allowed(write: Any, text: str, said: str) -> None:
    path = write(text, "a.toml")
    with pytest.raises(ConfigError) as caught:
        load_agent(path)
    assert str(caught.value).startswith(f"{path}: {said}")


@pytest.mark.parametrize(
    "parameters",
    [
        "{required = ['day'], patternProperties = {'^d' = {type = 'string'}}, properties = {time = {type = 'string'}}}",
        "{required = ['day'], allOf = [{properties = {day = {}}}], properties = {time = {type = 'string'}}}",
        "{required = ['day'], anyOf = [{properties = {day = {}}}], properties = {time = {type = 'string'}}}",
        "{required = ['day'], '$ref' = '#/$defs/a', '$defs' = {a = {type = 'object'}}, properties = {time = {}}}",
        "{required = ['day'], additionalProperties = {type = 'string'}, properties = {time = {type = 'string'}}}",
        "{if = {required = ['day']}, then = {type = 'object'}, else = {type = 'object', required = ['time']}}",
        "{properties = {day = {type = 'string'}}, examples = [{day = 'Monday'}], title = 'Booking'}",
    ],
)
def test_what_json_schema_allows_is_taken(write: Any, parameters: str) -> None:
    tool = f"{{name = 't', webhook = {{url = 'https://a.example'}}, parameters = {parameters}}}"
    assert load_agent(write(f"name = 'a'\ntools = [{tool}]")).tools


def test_what_no_property_may_meet_is_told(write: Any) -> None:
    schema = "{required = ['day'], additionalProperties = false, properties = {time = {type = 'string'}}}"
    tool = f"{{name = 't', webhook = {{url = 'https://a.example'}}, parameters = {schema}}}"
    with pytest.raises(ConfigError, match=r"tools\[0\].parameters.required: day is none of the properties"):
        load_agent(write(f"name = 'a'\ntools = [{tool}]"))
