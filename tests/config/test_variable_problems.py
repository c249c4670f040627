"""Mistakes with variables: each is told with its key and what helps."""

from pathlib import Path
from typing import Any

import pytest

from voicepipe.agent import Agent
from voicepipe.base.errors import ConfigError
from voicepipe.config.agent_store import load_agent
from voicepipe.config.variable_problems import single_braced

TOOL = "tools = [{name = 't', webhook = {url = '%s'}}]"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "greeting = 'Hi {{caler}}.'",
            "greeting: there is no variable {{caler}}; did you mean {{caller}}? allowed: caller, called, date, time, "
            "and what [variables] lists",
        ),
        (
            "instructions = '{{ customer.plan }}'\nvariables = {plan = ''}",
            "instructions: there is no variable {{ customer.plan }}; allowed: caller, called, date, time, plan, and",
        ),
        ("no_input = ['a', '{{x}}']", "no_input[1]: there is no variable {{x}}"),
        (
            "intents = [{name = 'i', examples = ['x'], reply = '{{people}}', slots = {people = 'How many?'}}]",
            "intents[0].reply: there is no variable {{people}}",
        ),
        ("greeting = '{{{caller}}}'", "greeting: {{{caller}}} has too many braces; write {{caller}}"),
        ("greeting = '{{}}'", "greeting: there is no variable {{}}"),
        ("variables = {date = 'x'}", "variables.date: is always there and has its value from the call"),
        ("variables = {'a b' = 'x'}", "variables: 'a b' is no name; allowed: up to 64 letters, digits and _"),
        ("variables = {greeting = 'x'}", "variables.greeting: is a key of the agent; put it above the file's first"),
        (f"variables = {{a = '{'x' * 2001}'}}", "variables.a: has 2001 characters; allowed: 2000"),
        ("variables = {a = 1}", "variables.a: cannot be 1; allowed: text"),
        (TOOL % "https://{{caller}}.example/", "tools[0].webhook.url: {{caller}} would decide which host gets"),
        (TOOL % "{{called}}", "tools[0].webhook.url: {{called}} would decide which host gets the request"),
        (TOOL % "https://{{caller}}@h.example/", "tools[0].webhook.url: {{caller}} would decide which host"),
        (TOOL % "https://h.example:{{caller}}/a", "tools[0].webhook.url: {{caller}} would decide which host"),
        (TOOL % "https:///{{caller}}", "tools[0].webhook.url: 'https:///{{caller}}' is no address"),
        ("transfer = {a = 'sip:{{caller}}@h.example'}", "transfer.a: {{caller}} would let callers choose whom you"),
        ("transfer = {a = 'ann {{time}}'}", "transfer.a: nobody can be called at 'ann {{time}}'"),
        (
            "tools = [{name = 't', webhook = {url = 'https://h.example'}, parameters = {properties = {a = {type = "
            "'string', description = 'As {{caller}}.'}}}}]",
            "tools[0].parameters: variables are not filled in here; put them into the tool's description",
        ),
        ("time_zone = 'Berlin'", "time_zone: 'Berlin' is no time zone; did you mean Europe/Berlin?"),
        ("time_zone = '../UTC'", "time_zone: '../UTC' is no time zone; "),
        ("time_zone = 'Europe'", "time_zone: 'Europe' is no time zone; "),
        ("time_zone = 'CET+1'", "time_zone: 'CET+1' is no time zone; "),
    ],
)
def test_a_mistake_is_told(text: str, said: str, write: Any) -> None:
    path: Path = write(f"name = 'a'\n{text}")
    with pytest.raises(ConfigError) as caught:
        load_agent(path)
    assert any(line.startswith(f"{path}: {said}") for line in str(caught.value).splitlines()), str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "greeting = 'Hi {{caller}}, {{ name }}.'\nvariables = {name = '', language = 'de'}",
        'instructions = \'Answer as {"a": {"b": {"c": 1}}}, f({{1, 2}, {3}}).\'',
        "transfer = {a = 'sip:{{branch}}@h.example', b = '{{branch}}'}\nvariables = {branch = ''}",
        TOOL % "https://h.example/{{caller}}?a={{called}}",
        TOOL % "https://h.example?a={{called}}",
        "tools = [{name = 't', webhook = {url = 'https://h.example', headers = {a = 'Bearer {{caller}}'}}}]",
        "intents = [{name = 'i', examples = ['x'], reply = '{{caller}} {day}', slots = {day = '{{date}}?'}}]",
        "time_zone = 'America/Argentina/Buenos_Aires'",
    ],
)
def test_these_are_right(text: str, write: Any) -> None:
    load_agent(write(f"name = 'a'\n{text}"))


def test_single_braces_are_warned_of_where_they_are_read_out_or_name_a_variable() -> None:
    agent = Agent(
        "a", greeting="Hi {caller}, {you}, {{date}}.", instructions='{plan} {"a": 1} {other}', variables={"plan": ""}
    )
    assert sorted(single_braced(agent)) == [
        "greeting: {caller} is read out as it stands; a variable is written {{caller}}",
        "greeting: {you} is read out as it stands; a variable is written {{you}}",
        "instructions: {plan} is given to the model as it stands; a variable is written {{plan}}",
    ]
