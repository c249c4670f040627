"""What an agent's hook may say of a call, and what holds where it says nothing of use."""

import asyncio
import base64
import json
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.support.hook_server import BREAKS, SLOW, hook_server
from tests.support.scripted import ScriptedAsr, ScriptedLlm, ScriptedTts, ScriptedVad
from voicepipe.agent import Agent, AgentHooks
from voicepipe.base.errors import Declined
from voicepipe.call_api import NO_ANSWER, HookAnswer, HookRun
from voicepipe.call_settings import Origin
from voicepipe.config import Config
from voicepipe.config.agent_store import AgentStore
from voicepipe.engines.base import Engines
from voicepipe.pop.before_call import AnswerUnusable, read_answer
from voicepipe.pop.pop import Pop
from voicepipe.records import signing
from voicepipe.tools.tool_runner import ToolRunner

AGENT = Agent("clinic", hooks=AgentHooks(before_call="hooks:ask", agents=("night", "gone")))
ORIGIN = Origin("+4930123456", "100", {"X-Account": "42"})


def read(text: str) -> HookAnswer:
    return read_answer(text, AGENT, lambda name: name == "night")


def test_each_part_of_an_answer_is_taken() -> None:
    said = {"variables": {"name": "Ann", "visits": 3}, "greeting": "Hello Ann.", "agent": "night",
            "instructions": "Ann is a member."}  # fmt: skip
    assert read(json.dumps(said)) == HookAnswer(
        variables={"name": "Ann", "visits": "3"}, greeting="Hello Ann.", agent="night", instructions="Ann is a member."
    )


@pytest.mark.parametrize("nothing", ["", " \n", "null", "{}", '{"agent": "clinic", "greeting": null, "refuse": ""}'])
def test_an_answer_may_say_nothing(nothing: str) -> None:
    assert read(nothing) == NO_ANSWER


def test_an_empty_greeting_is_a_greeting() -> None:
    assert read('{"greeting": ""}').greeting == ""


def test_a_reason_to_refuse_is_one_line() -> None:
    with pytest.raises(Declined, match=r"^Not\. today$"):
        read(json.dumps({"refuse": "Not.\r\n  today"}))


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("<html>", "it is no JSON .*: answer with an object with any of variables, greeting"),
        ("[1]", "it is no JSON object"),
        ('{"greting": "Hi"}', "it has an unknown key 'greting'; allowed: variables, greeting, agent"),
        ('{"greeting": 5}', "^greeting: expected `str | null`, got `int`"),
        ('{"greeting": "' + "a" * 2001 + '"}', "^greeting: expected `str` of length <= 2000"),
        ('{"variables": {"a b": "x"}}', "^variables: 'a b' is no name"),
        ('{"variables": {"a": []}}', r"^variables\[...\]"),
        ('{"agent": "sales"}', "agent: hooks.agents of clinic does not name 'sales': add it there"),
        ('{"agent": "gone"}', "agent: this PoP has no agent 'gone' that can answer"),
    ],
)
def test_an_answer_that_cannot_be_used_says_why(answer: str, why: str) -> None:
    with pytest.raises(AnswerUnusable, match=f"^its answer is not used: {why.removeprefix('^')}"):
        read(answer)


# --- asked of a server, and of a function

FUNCTIONS = """
import asyncio, time

def tells(call, agent, door):
    greeting = f"{call['caller']} by {door} to {agent}"
    return {"greeting": greeting, "variables": {"account": call["headers"]["X-Account"]}}

async def waits():
    await asyncio.sleep(30)

def hangs(**everything):
    time.sleep(1)

def raises():
    raise KeyError("no such caller")

def refuses(call):
    return {"refuse": "We are closed."}

def other():
    return {"agent": "night"}

def unknown():
    return {"agent": "sales"}

def nothing():
    pass
"""


async def made(folder: Path, before_call: str, **hooks: Any) -> Pop:
    return await asyncio.to_thread(_made, folder, before_call, **hooks)


def _made(folder: Path, before_call: str, **hooks: Any) -> Pop:
    table = {"before_call": before_call, "before_call_ms": 300, "agents": ["night"]} | hooks
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
    (folder / "hooks.py").write_text(FUNCTIONS)
    (folder / "front-desk.toml").write_text(f'name = "front-desk"\n[hooks]\n{lines}')
    (folder / "night.toml").write_text('name = "night"\ngreeting = "Good night."\n')
    engines = Engines(ScriptedVad(), ScriptedAsr(), ScriptedLlm(), ScriptedTts())
    config = msgspec.convert({"pop": {"slots": 60}}, Config)
    return Pop(config, AgentStore(folder), engines, ToolRunner())


async def asked(pop: Pop, limit_ms: int | None = None) -> tuple[HookAnswer, HookRun]:
    """What the hook of the default agent says of a call, and what its record will say of that."""
    agent = pop.agent(None)
    with pop.admit(pop.tenant(None), agent) as slot:
        async with pop.tools:
            said = await pop.ask_hook(slot, agent, ORIGIN, "sip", limit_ms)
        assert slot.watched.hook
        return said, slot.watched.hook


@pytest.mark.parametrize(
    ("function", "outcome", "said"),
    [
        ("tells", "answered", HookAnswer(greeting="+4930123456 by sip to front-desk", variables={"account": "42"})),
        ("nothing", "answered", NO_ANSWER),
        ("other", "answered", HookAnswer(agent="night")),
        ("waits", "timeout", NO_ANSWER),
        ("hangs", "timeout", NO_ANSWER),
        ("raises", "error", NO_ANSWER),
        ("unknown", "invalid", NO_ANSWER),
    ],
)
async def test_a_function_is_asked(function: str, outcome: str, said: HookAnswer, tmp_path: Path) -> None:
    assert await asked_of(await made(tmp_path, f"hooks:{function}"), outcome) == said


@pytest.mark.parametrize(
    ("answer", "outcome", "said"),
    [
        ({"greeting": "Hello."}, "answered", HookAnswer(greeting="Hello.")),
        (204, "answered", NO_ANSWER),
        ({"agent": "night"}, "answered", HookAnswer(agent="night")),
        (SLOW, "timeout", NO_ANSWER),
        (BREAKS, "error", NO_ANSWER),
        (500, "error", NO_ANSWER),
        (302, "error", NO_ANSWER),
        ("a" * 70_000, "error", NO_ANSWER),
        ("<html>", "invalid", NO_ANSWER),
        ({"agent": "sales"}, "invalid", NO_ANSWER),
    ],
)
async def test_a_server_is_asked(answer: Any, outcome: str, said: HookAnswer, tmp_path: Path) -> None:
    async with hook_server(answer) as server:
        assert await asked_of(await made(tmp_path, server.url), outcome) == said
        call = {"caller": "+4930123456", "called": "100", "headers": {"X-Account": "42"}}
        told = server.asked[0]
        assert told["call"].pop("id").startswith("rtc_local.")
        assert told == {"event": "before_call", "call": call, "agent": "front-desk", "door": "sip", "pop": "local",
                        "tenant": "local"}  # fmt: skip


@pytest.mark.parametrize(
    ("limit_ms", "why"),
    [
        (50, "no answer within 50 ms, the most that a caller may wait here: answer faster"),
        (60_000, "no answer within 300 ms: answer faster, or raise hooks.before_call_ms"),
    ],
)
@pytest.mark.parametrize("kind", ["function", "server"])
async def test_the_smaller_limit_holds_and_the_record_says_so(
    kind: str, limit_ms: int, why: str, tmp_path: Path
) -> None:
    async with hook_server(SLOW) as server:
        pop = await made(tmp_path, server.url if kind == "server" else "hooks:waits")
        said, run = await asked(pop, limit_ms)
    assert (said, run.outcome, run.why) == (NO_ANSWER, "timeout", why)


async def test_a_server_that_is_down_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with hook_server({}) as server:
        url = server.url
    said, run = await asked(await made(tmp_path, url))
    assert (said, run.outcome) == (NO_ANSWER, "error")
    assert run.why == "127.0.0.1 cannot be reached: is its server up?"
    [line] = caplog.messages
    assert line.endswith(f"hooks.before_call of front-desk: {run.why} (the agent answers as its file says)")


@pytest.mark.parametrize("kind", ["function", "server"])
async def test_a_hook_may_refuse_the_call(kind: str, tmp_path: Path) -> None:
    async with hook_server({"refuse": "We are closed."}) as server:
        pop = await made(tmp_path, server.url if kind == "server" else "hooks:refuses")
        with pytest.raises(Declined, match="We are closed"):
            await asked(pop)


async def test_a_server_that_has_closed_a_kept_connection_is_asked_once_more(tmp_path: Path) -> None:
    async with hook_server(BREAKS, {"greeting": "Hello."}) as server:
        said, run = await asked(await made(tmp_path, server.url))
        assert (said.greeting, run.outcome) == ("Hello.", "answered")
        ids = [line for head in server.heads for line in head.splitlines() if line.startswith("webhook-id")]
        assert len(set(ids)) == 1, "so that it knows that it is the same question"


async def test_what_is_sent_is_signed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "whsec_" + base64.b64encode(b"k" * 24).decode()
    monkeypatch.setenv("HOOK_SECRET", secret)
    async with hook_server({}) as server:
        await asked(await made(tmp_path, server.url, secret_env="HOOK_SECRET"))
        headers = dict(line.lower().split(": ", 1) for line in server.heads[0].splitlines()[1:] if line)
        expected = signing.headers(
            b"k" * 24, headers["webhook-id"], int(headers["webhook-timestamp"]), server.bodies[0]
        )
        assert headers["webhook-signature"] == expected["webhook-signature"].lower()


async def test_a_secret_that_is_missing_is_told_of(tmp_path: Path) -> None:
    async with hook_server({}) as server:
        _, run = await asked(await made(tmp_path, server.url, secret_env="NOT_SET"))
    assert run.outcome == "error"
    assert run.why.startswith("hooks.secret_env: the environment variable NOT_SET is not set here")


async def test_functions_that_hang_cost_no_other_agent_s_calls_a_thread(tmp_path: Path) -> None:
    pop = await made(tmp_path, "hooks:hangs", before_call_ms=100)
    agent, local = pop.agent(None), pop.tenant(None)

    async def one() -> str:
        with pop.admit(local, agent) as slot:
            await pop.ask_hook(slot, agent, ORIGIN, "sip")
            assert slot.watched.hook
            return slot.watched.hook.outcome

    outcomes = await asyncio.gather(*(one() for _ in range(30)))  # more than a function has threads
    assert set(outcomes) <= {"timeout", "error"}
    assert pop.tools.hanging() <= 16


async def test_what_no_json_can_hold_costs_nobody_a_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.pop.test_before_call.ORIGIN", Origin("ann\udc80"))
    async with hook_server({"greeting": "Hello."}) as server:
        said, run = await asked(await made(tmp_path, server.url))
    assert (said, run.outcome) == (NO_ANSWER, "error")
    assert run.why == "it could not be called (UnicodeEncodeError): its traceback is in the log"


async def test_what_a_function_raised_is_told(tmp_path: Path) -> None:
    _, run = await asked(await made(tmp_path, "hooks:raises"))
    assert run.why == "it raised KeyError: 'no such caller' (its traceback is in the log)"


async def test_another_agent_answers_with_what_was_said_for_it(tmp_path: Path) -> None:
    pop = await made(tmp_path, "hooks:other")
    settings = pop.settings(pop.agent(None), ORIGIN, HookAnswer(agent="night", instructions="Ann calls."))
    assert (settings.agent.name, settings.agent.greeting) == ("night", "Good night.")
    assert settings.instructions == "Ann calls."
    assert pop.settings(pop.agent(None), ORIGIN, HookAnswer(agent="gone")).agent.name == "front-desk"


async def asked_of(pop: Pop, outcome: str) -> HookAnswer:
    began = time.monotonic()
    said, run = await asked(pop)
    assert (run.agent, run.outcome) == ("front-desk", outcome), run.why
    assert bool(run.why) == (outcome != "answered")
    assert run.ms <= (time.monotonic() - began) * 1000 + 1
    return said
