"""The settings with which a call begins: texts that are filled in, and what a webhook of the call's is sent."""

import asyncio
import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from tests.support.hostile_values import HOSTILE
from voicepipe.agent import Agent, HandOver, Tool, Webhook
from voicepipe.call_api import NO_ANSWER, HookAnswer
from voicepipe.call_settings import NOWHERE, Origin
from voicepipe.conversation.prompt import ToolCall, with_origin
from voicepipe.ingress.realtime.session import Session
from voicepipe.pop.agent_settings import ColleagueSettings, settings_of
from voicepipe.tools.tool_runner import ToolRunner

NOW = datetime(2026, 11, 30, 13, 5, tzinfo=UTC)
AGENT = Agent(
    "desk",
    instructions="Be kind. It is {{time}}. The caller is {{customer}}.",
    greeting="Good day, {{customer}}.",
    time_zone="Europe/Berlin",
    variables={"customer": "dear guest", "token": ""},
    transfer={"branch": "{{customer}}", "desk": "+4930"},
    tools=(Tool("book", webhook=Webhook("https://h.example/", {"authorization": "Bearer {{token}}"})),),
)


def test_texts_are_filled_with_the_file_s_values_or_the_hook_s() -> None:
    assert settings_of(AGENT, NOWHERE, NO_ANSWER, NOW).agent.greeting == "Good day, dear guest."
    its = settings_of(AGENT, Origin("+49"), HookAnswer(variables={"customer": "Ann", "token": "t1"}), NOW)
    assert its.instructions == its.agent.instructions == "Be kind. It is 2:05 pm. The caller is Ann."
    assert its.written_instructions == AGENT.instructions
    assert (its.variables, its.told_variables) == ({"customer": "Ann", "token": "t1"}, {"customer": "Ann"})
    assert its.agent.tools[0].webhook == Webhook("https://h.example/", {"authorization": "Bearer t1"})
    assert its.origin == Origin("+49")


def test_an_agent_without_variables_is_the_one_of_the_file() -> None:
    agent = Agent("desk", greeting="Hello.", instructions="Be kind.")
    its = settings_of(agent, NOWHERE, NO_ANSWER, NOW)
    assert its.agent is agent and its.variables == {}


def test_the_model_is_told_when_the_call_began_and_a_client_is_shown_the_instructions_alone() -> None:
    its = settings_of(AGENT, NOWHERE, NO_ANSWER, NOW)
    assert with_origin(its.instructions, its.origin, its.began).endswith(
        "\n\nThis call began on Monday, 30 November 2026, at 14:05 (Europe/Berlin)."
    )
    session = Session.of(its, id="sess_1")
    assert session.instructions == its.instructions and "began" not in session.instructions
    changed = session.updated({"instructions": "Say {{caller}} and {{customer}}."}).settings(its)
    assert changed.instructions == "Say {{caller}} and {{customer}}.", "a client's own words are not filled in"
    assert changed.began == its.began


def test_variables_that_the_file_does_not_list_are_logged_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    given = {"admin\r\nfake line": "1", **{f"x{n}": "" for n in range(500)}}
    assert "admin" not in settings_of(AGENT, NOWHERE, HookAnswer(variables=given), NOW).variables
    (line,) = [record.getMessage() for record in caplog.records if "left out: " in record.getMessage()]
    assert '"admin fake line"' in line and len(line) < 300


def test_a_target_that_is_none_is_left_out_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert settings_of(AGENT, NOWHERE, NO_ANSWER, NOW).agent.transfer == {"desk": "+4930"}
    assert "nobody can be called at transfer.branch" in caplog.text


def test_an_agent_that_takes_over_has_what_the_hook_gave_and_its_own_file_s_values_and_the_call_s_time(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first = settings_of(AGENT, Origin("+49"), HookAnswer(variables={"customer": "Ann"}), NOW)
    billing = Agent("billing", greeting="{{customer}} {{token}} {{invoice}} {{caller}} {{time}}", time_zone="UTC",
                    variables={"customer": "you", "token": "none", "invoice": "0"})  # fmt: skip
    colleagues = ColleagueSettings(first, NOW)
    its = colleagues.of(billing)
    assert its.agent.greeting == "Ann none 0 +49 1:05 pm" and its.origin == first.origin
    assert colleagues.of(billing) is its, "asked for with each prompt, made once"
    assert colleagues.of(replace(billing, greeting="Hello.")) is its, "an edit does not reach a live call"
    assert "billing" not in caplog.text


class OneRequestServer:
    """A real server of webhooks, which keeps the bytes of what it is sent."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await self._head(reader):
            self.heads.append(head)
            (length,) = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            self.bodies.append(await reader.readexactly(int(length.partition(b":")[2])))
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        writer.close()

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        try:
            return await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            return b""


async def test_whatever_a_stranger_sends_a_webhook_s_request_is_the_one_that_was_meant() -> None:
    """Once as the stranger's own values, once as what a hook has looked up for them."""
    web = OneRequestServer()
    server = await asyncio.start_server(web.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    url = f"http://127.0.0.1:{port}/book/{{{{caller}}}}?to={{{{called}}}}&name={{{{name}}}}"
    headers = {"x-caller": "{{caller}}", "x-name": "n {{name}} n"}
    agent = Agent("desk", variables={"name": ""}, tools=(Tool("book", webhook=Webhook(url, headers)),))
    async with server, ToolRunner() as tools:
        for number, value in enumerate(HOSTILE):
            settings = settings_of(agent, Origin(value, value), HookAnswer(variables={"name": value}), NOW)
            call = ToolCall("call_1", "book", "{}")
            about = {"id": "rtc_1", "caller": "", "called": "", "headers": {}}
            asked = tools.begin(settings.agent.tools[0], call, about, f"key{number}", lambda text: None, "acme")
            assert await asked == "ok", ascii(value)
    assert len(web.heads) == len(HOSTILE) >= 40
    for value, head, body in zip(HOSTILE, web.heads, web.bodies, strict=True):
        first, *lines = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
        method, target, version = first.split(" ")
        path, _, query = target.partition("?")
        assert (method, version) == ("POST", "HTTP/1.1"), ascii(value)
        assert path.startswith("/book/") and path.count("/") == 2 and ".." not in path, ascii(value)
        assert [pair.partition("=")[0] for pair in query.split("&")] == ["to", "name"], ascii(value)
        sent = dict(line.split(": ", 1) for line in lines)
        assert len(sent) == len(lines) and not {"X-Admin", "x-admin"} & sent.keys(), ascii(value)
        assert sent["Host"] == f"127.0.0.1:{port}"
        assert sent["x-name"].startswith("n ") and sent["x-name"].endswith(" n")
        assert json.loads(body)["name"] == "book"


def test_what_a_hook_says_is_laid_over_the_agent_that_answers_as_it_is() -> None:
    agent = Agent("night", greeting="Good night, {{name}}.", instructions="Be brief.", variables={"name": "you"})
    now = datetime(2026, 11, 30, tzinfo=UTC)
    plain = settings_of(agent, NOWHERE, NO_ANSWER, now)
    assert (plain.agent.greeting, plain.instructions) == ("Good night, you.", "Be brief.")
    said = HookAnswer(greeting="", instructions="The caller is {{name}}.")
    settings = settings_of(agent, NOWHERE, said, now)
    assert (settings.agent.greeting, settings.instructions) == ("", "Be brief.\n\nThe caller is {{name}}.")
    assert settings_of(Agent("mute"), NOWHERE, said, now).instructions == "The caller is {{name}}."


def test_whoever_takes_over_has_the_hook_s_values_for_names_that_the_first_agent_does_not_have() -> None:
    reception = Agent("reception", hand_over={"billing": HandOver("Invoices.")})
    billing = Agent("billing", instructions="Invoice {{invoice}} of {{patient}}.",
                    variables={"invoice": "none", "patient": "unknown"})  # fmt: skip
    first = settings_of(reception, NOWHERE, HookAnswer(variables={"invoice": "17"}), NOW)
    assert first.variables == {}
    assert ColleagueSettings(first, NOW).of(billing).instructions == "Invoice 17 of unknown."


def test_what_is_a_secret_for_a_colleague_stands_in_no_record() -> None:
    token = {"crm_token": "sk-secret"}
    look = Tool("look", webhook=Webhook("https://h.example/", {"x-key": "{{crm_token}}"}))
    billing = Agent("billing", variables=token, tools=(look,))
    desk = Agent("desk", variables=token, hand_over={"billing": HandOver("Invoices.")})
    assert settings_of(desk, NOWHERE, NO_ANSWER, NOW, [billing]).told_variables == {}
