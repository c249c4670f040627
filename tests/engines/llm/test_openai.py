"""The language model by a server of the OpenAI kind: the contract, and all that such servers can do to us."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tests.engines.contract import ToolContract, texts
from tests.engines.openai_server import DONE, Event, Json, Server, called, chunk, refusal, said, serving
from tests.support.authority import Authority
from tests.support.waiting import until
from voicepipe.agent import ToolSpec
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, EngineStalled, RequestRefused
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Delta, Llm, Message, Prompt, StreamCorrection, ToolCall
from voicepipe.engines.hosting import liveness
from voicepipe.engines.llm import openai
from voicepipe.engines.llm.openai import OpenAiLlm
from voicepipe.engines.llm.openai_request import request

pytestmark = pytest.mark.slow

HELLO = Prompt((Message("user", "Hello."),))
ADD = ToolSpec("add", "Adds two numbers.", {"type": "object", "properties": {"a": {"type": "integer"}}})


def model(body: Json) -> list[Event]:
    """What a model would do that has read the contract."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return said("That ", "makes ", f"{last['content']}.")
    if isinstance(body.get("tool_choice"), dict):
        return [
            *called("call_1", body["tool_choice"]["function"]["name"], '{"a": 2,', ' "b": 3}'),
            chunk("tool_calls"),
            DONE,
        ]
    return said(*["From ", "noon ", "to ", "ten."][: body["max_tokens"]])


class TestOpenAiLlm(ToolContract):
    base_url = ""

    @pytest.fixture(autouse=True)
    async def served(self) -> AsyncIterator[None]:
        async with serving(Server(model)) as TestOpenAiLlm.base_url:
            yield

    @staticmethod
    def factory() -> Llm:
        return OpenAiLlm(OpenAiConfig(base_url=TestOpenAiLlm.base_url))


class Desk:
    """A server that answers as the test says, and an engine that has been started on it."""

    def __init__(self, server: Server, llm: OpenAiLlm, url: str) -> None:
        self.server, self.llm, self.url = server, llm, url

    def answers(self, *events: Event) -> None:
        self.server.answer = lambda body: list(events)


@asynccontextmanager
async def opened(key: str = "", **config: Any) -> AsyncIterator[Desk]:
    """`config` is of OpenAiConfig."""
    server = Server(model)
    async with serving(server) as url:
        llm = OpenAiLlm(OpenAiConfig(base_url=url, **config), key)
        await llm.start()
        server.asked.clear()
        yield Desk(server, llm, url)
        await llm.close()


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened() as desk:
        yield desk


async def reply(desk: Desk, *events: Event, prompt: Prompt = HELLO) -> list[Delta]:
    """What comes of these events."""
    desk.answers(*events)
    return [delta async for delta in desk.llm.generate(prompt)]


# --- what it asks ---------------------------------------------------------------------------------------------------


async def test_the_request() -> None:
    async with opened("secret", temperature=0.5, max_tokens=99, body={"top_p": 0.9}) as desk:
        await texts(desk.llm, Prompt((Message("system", "Be brief."), Message("user", "Hello.")), (ADD,)))
    [asked] = desk.server.asked
    assert desk.server.headers[0]["authorization"] == "Bearer secret"
    assert asked["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello."}]
    assert [tool["function"]["name"] for tool in asked["tools"]] == ["add"]
    settings = {name: value for name, value in asked.items() if name not in ("messages", "tools")}
    assert settings == {
        "model": "nano", "stream": True, "temperature": 0.5, "max_tokens": 99, "tool_choice": "auto", "top_p": 0.9
    }  # fmt: skip


@pytest.mark.parametrize(
    ("choice", "asked"),
    [("required", "required"), ("add", {"type": "function", "function": {"name": "add"}}), ("none", None)],
)
def test_tool_choice(choice: str, asked: object) -> None:
    body = request(OpenAiConfig(), "nano", Prompt(HELLO.messages, (ADD,), choice))
    assert body.get("tool_choice") == asked
    assert ("tools" in body) == (asked is not None)


def test_priority_is_sent_only_where_the_configuration_has_it() -> None:
    guess = Prompt(HELLO.messages, speculative=True)
    assert "priority" not in request(OpenAiConfig(), "nano", guess)
    config = OpenAiConfig(body={"priority": 3})
    assert [request(config, "nano", prompt)["priority"] for prompt in (HELLO, guess)] == [3, 4]


async def test_warming_asks_for_one_token_of_the_very_prompt(desk: Desk) -> None:
    prompt = Prompt((Message("system", "Be brief."),), (ADD,))
    await desk.llm.warm(prompt)
    await texts(desk.llm, prompt)
    warm, cold = desk.server.asked
    assert warm.pop("max_tokens") == 1 and cold.pop("max_tokens") == 512
    assert warm == cold


async def test_connections_are_kept(desk: Desk) -> None:
    desk.server.clients.clear()
    for _ in range(3):
        await texts(desk.llm, HELLO)
    assert len(desk.server.clients) == 1


# --- what it makes of the answers -----------------------------------------------------------------------------------


async def test_text_comes_as_it_is_generated(desk: Desk) -> None:
    assert await reply(desk, *said("\n", " From", " noon", "\u2028to", "", " ten.")) == [
        "From",
        " noon",
        "\u2028to",
        " ten.",
    ]


async def test_events_in_odd_pieces(desk: Desk) -> None:
    first, second = (json.dumps(chunk(content=piece), ensure_ascii=False) for piece in ("From", "✓"))
    text = f"event: message\r\ndata:{first}\r\n\r\n: still there\n\ndata: {second}"
    assert await reply(desk, text[:40], 0.02, text[40:90], 0.02, text[90:], 0.02, "\n\n", DONE) == ["From", "✓"]


async def test_tool_calls_are_put_together(desk: Desk) -> None:
    two = called("call_b", "hang_up", index=1)
    events = [chunk(content="One moment."), *called("call_a", "add", '{"a"', ": 2}"), *two, chunk("tool_calls"), DONE]
    assert await reply(desk, *events) == [
        "One moment.",
        ToolCall("call_a", "add", '{"a": 2}'),
        ToolCall("call_b", "hang_up", "{}"),
    ]


async def test_tool_calls_that_are_all_number_0(desk: Desk) -> None:
    calls = [*called("call_a", "add", "{}"), *called("call_b", "add", "{", "}"), *called("call_c", "end")]
    assert await reply(desk, *calls, chunk("tool_calls"), DONE) == [
        ToolCall("call_a", "add", "{}"), ToolCall("call_b", "add", "{}"), ToolCall("call_c", "end", "{}"),
    ]  # fmt: skip


PARALLEL = [ToolCall(f"call_{n}", name, f'{{"city": "{n}"}}') for n, name in enumerate(("rain", "wind", "rain"))]


def fragment(call: ToolCall, index: int, arguments: str, *, named: bool, **more: Any) -> Json:
    """Named as OpenAI and vLLM name the first one of a call."""
    first = {"id": call.call_id, "type": "function"} if named else {}
    name = {"name": call.name} if named else {}
    return {"index": index, "function": {**name, "arguments": arguments}} | first | more


@pytest.mark.parametrize("count", [2, 3])
async def test_calls_at_the_same_time_come_in_their_order(desk: Desk, count: int) -> None:
    """Begun one after the other, and their arguments interleaved, several in one event, backwards, an empty id."""
    calls = list(enumerate(PARALLEL[:count]))
    begin = [chunk(tool_calls=[fragment(call, n, "", named=True)]) for n, call in calls]
    pieces = [
        chunk(tool_calls=[fragment(call, n, call.arguments[at : at + 5], named=False, id="") for n, call in order])
        for at, order in ((0, calls), (5, calls[::-1]), (10, calls))
    ]
    rest = [chunk(tool_calls=[fragment(call, n, call.arguments[15:], named=False)]) for n, call in calls[::-1]]
    assert await reply(desk, *begin, *pieces, *rest, chunk("tool_calls"), DONE) == PARALLEL[:count]


async def test_a_new_id_for_each_piece_of_a_call_is_no_new_call(desk: Desk) -> None:
    """So vLLM has streamed calls that were forced, name and all."""
    pieces = [
        chunk(tool_calls=[fragment(call, n, piece, named=True, id=f"new_{n}_{piece}")])
        for n, call in enumerate(PARALLEL[:2])
        for piece in (call.arguments[:4], call.arguments[4:9], call.arguments[9:])
    ]
    found = [call for call in await reply(desk, *pieces, chunk("stop"), DONE) if isinstance(call, ToolCall)]
    assert [(call.name, call.arguments) for call in found] == [(call.name, call.arguments) for call in PARALLEL[:2]]


async def test_a_tool_call_without_an_id_gets_one(desk: Desk) -> None:
    [call] = await reply(desk, *called(None, "add", "{}"), chunk("stop"))
    assert isinstance(call, ToolCall) and call.call_id


async def test_a_reason_to_finish_is_an_end(desk: Desk) -> None:
    assert await reply(desk, chunk(content="Yes."), chunk("length")) == ["Yes."]


async def test_once_it_says_why_it_ends_nothing_that_follows_matters(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also a connection that stays open, or breaks."""
    monkeypatch.setattr(openai, "ENDS_S", 0.1)
    dies = cast("Event", object())  # what cannot be sent ends the connection
    ends: list[list[Event]] = [
        [{"error": {"message": "late"}}], ["data: {\n\n"], [30.0], [DONE, 30.0], [dies], ["data: ping\n\n", DONE],
    ]  # fmt: skip
    for more in ends:
        assert await reply(desk, *said("From noon.")[:-2], *more) == ["From noon."]
    assert desk.llm.alive


async def test_a_server_that_does_not_stream(desk: Desk) -> None:
    message = {"role": "assistant", "content": "From noon."}
    desk.server.answer = lambda body: JSONResponse({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert await texts(desk.llm, HELLO) == ["From noon."]


async def test_a_stream_that_ends_as_it_should_without_a_reason_is_complete(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(2):
        assert await reply(desk, chunk(content="From noon.")) == ["From noon."]
    assert sum("without a finish_reason" in line for line in caplog.messages) == 1


async def test_what_was_no_answer_is_withdrawn_and_the_next_replies_are_held(desk: Desk) -> None:
    thinks: list[Event] = [
        chunk(content="They greet me."),
        chunk(content=" So"),
        chunk(content=" I greet.</think>Hello."),
        chunk("stop"),
        DONE,
    ]
    assert await reply(desk, *thinks) == ["They greet me.", " So", StreamCorrection.WITHDRAWN, "Hello."]
    assert await reply(desk, *thinks) == ["Hello."]
    assert await reply(desk, chunk(content="They gr"), chunk("length"), DONE) == []
    assert await reply(desk, *said("From noon.")) == ["From noon."]


async def test_a_setting_holds_replies_from_the_first() -> None:
    async with opened(thinks_first=True) as desk:
        assert await reply(desk, *said("They greet me.", "</think>", "Hello.")) == ["Hello."]


async def test_a_call_of_a_tool_in_words(desk: Desk) -> None:
    call = json.dumps({"name": "add", "arguments": {"a": 1}})
    assert await reply(desk, *said("Let me see. ", call[:9], call[9:])) == [
        "Let me see.",
        StreamCorrection.CALL_AS_TEXT,
    ]


def newer(body: Json) -> list[Event] | Response:
    """As OpenAI's models from o1 on."""
    if "max_tokens" in body:
        return refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    if body.get("temperature", 1) != 1:
        return refusal(400, "Unsupported value: 'temperature' does not support 0.0 with this model.")
    if body["max_completion_tokens"] < 16:
        return refusal(400, "Could not finish the message because the output limit was reached.")
    return said("From noon.")


async def test_what_a_server_refuses_is_found_out_at_the_start_and_not_paid_for_by_replies() -> None:
    server = Server(newer)
    async with serving(server) as url:
        llm = OpenAiLlm(OpenAiConfig(base_url=url))
        await llm.start()
        server.asked.clear()
        assert await texts(llm, HELLO) == ["From noon."]
        [asked] = server.asked
        assert "temperature" not in asked and "max_tokens" not in asked and asked["max_completion_tokens"] == 512
        await llm.close()


async def test_a_field_that_only_some_requests_have_is_left_out_in_the_reply_that_meets_it(desk: Desk) -> None:
    desk.server.answer = lambda body: (
        refusal(422, "tool_choice: Extra inputs are not permitted") if "tool_choice" in body else said("Yes.")
    )
    prompt = Prompt(HELLO.messages, (ADD,))
    for count in (2, 3):
        assert await texts(desk.llm, prompt) == ["Yes."]
        assert len(desk.server.asked) == count and desk.server.asked[-1]["tools"]


async def test_a_server_that_refuses_for_ever_is_asked_once_for_each_field(desk: Desk) -> None:
    desk.server.answer = lambda body: refusal(400, f"Unknown parameter: '{sorted(body)[-1]}' and 'temperature'")
    with pytest.raises(RequestRefused):
        await texts(desk.llm, Prompt(HELLO.messages, (ADD,)))
    assert len(desk.server.asked) < 6


# --- what can go wrong ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("events", "error", "says"),
    [
        ([chunk(content="From"), "data: {\n\n"], EngineError, "no chat completion"),
        (['data: {"choices": 5}\n\n'], EngineError, 'before its first word: {"choices": 5}'),
        (
            [chunk(content="From"), {"error": {"message": "CUDA out of memory", "code": 500}}],
            EngineError,
            "CUDA out of memory",
        ),
        ([{"object": "error", "message": "too long"}], EngineError, "too long"),
        ([chunk()], EngineError, "before its first word"),
        (
            [chunk(content="From"), f"data: {json.dumps(chunk(content=' noon'))[:40]}"],
            EngineError,
            "no chat completion",
        ),
        (["<html>", "hello"], EngineError, "does not stream"),
        (["x" * 600_000, "x" * 600_000], EngineError, "no events"),
    ],
)
async def test_bad_streams(desk: Desk, events: list[Event], error: type[EngineError], says: str) -> None:
    with pytest.raises(error, match=says) as raised:
        await reply(desk, *events)
    assert type(raised.value) is error
    assert await reply(desk, *said("Yes.")) == ["Yes."], "the next reply is none the worse"


async def test_a_server_that_dies_in_the_middle(desk: Desk) -> None:
    def die(body: Json) -> list[Event]:
        return [chunk(content="From"), 0.05, cast("Event", object())]  # what cannot be sent ends the connection

    desk.server.answer = die
    with pytest.raises(EngineDead, match="broke off"):
        await texts(desk.llm, HELLO)


@pytest.mark.parametrize(
    ("answer", "error", "says"),
    [
        (refusal(401, "Unauthorized"), EngineError, "VOICEPIPE_TEST_KEY"),
        (refusal(404, "Not Found"), EngineError, "mostly ends in /v1"),
        (refusal(429, "slow down"), EngineBusy, "slow down"),
        (refusal(503, "overloaded"), EngineBusy, "overloaded"),
        (refusal(400, "context length is 1024"), RequestRefused, "status 400: context length is 1024"),
        (PlainTextResponse("Internal Server Error", 500), EngineError, "status 500: Internal Server Error"),
        (JSONResponse({"detail": [{"msg": "no"}]}, 422), RequestRefused, "status 422"),
    ],
)
async def test_refusals(answer: Response, error: type[EngineError], says: str) -> None:
    async with opened("wrong", api_key_env="VOICEPIPE_TEST_KEY") as desk:
        desk.server.answer = lambda body: answer
        with pytest.raises(error, match=re.escape(says)) as raised:
            await texts(desk.llm, HELLO)
        assert type(raised.value) is error


def hurried(desk: Desk) -> None:
    """From now on it is waited for 1 s: a start may take longer on a busy machine."""
    desk.llm._config = msgspec.structs.replace(desk.llm._config, timeout_ms=1000)


async def test_thoughts_are_not_spoken(desk: Desk) -> None:
    desk.answers(chunk(content="<thi"), chunk(content="nk>Let me see.</think>\n"), *said("From noon."))
    assert "".join(await texts(desk.llm, HELLO)) == "From noon."


async def test_a_tool_that_is_not_offered_is_not_asked_for() -> None:
    prompt = Prompt(HELLO.messages, (ToolSpec("add"),), tool_choice="gone")
    assert request(OpenAiConfig(), "m", prompt)["tool_choice"] == "auto"


async def test_a_slow_first_token() -> None:
    async with opened() as desk:
        hurried(desk)
        with pytest.raises(EngineBusy, match="1000 ms"):
            await reply(desk, 30.0, *said("Yes."))
        await until(lambda: desk.server.abandoned)


async def test_a_stall_after_the_first_token() -> None:
    async with opened() as desk:
        desk.answers(chunk(content="From"), ": still there\n\n", 30.0, *said("noon"))
        deltas = desk.llm.generate(HELLO)
        assert await anext(deltas) == "From"
        hurried(desk)
        with pytest.raises(EngineStalled, match="1000 ms"):
            await anext(deltas)


async def test_the_server_sees_a_reply_closed_or_cancelled(desk: Desk) -> None:
    desk.answers(chunk(content="From"), 30.0)
    deltas = desk.llm.generate(HELLO)
    await anext(deltas)
    await deltas.aclose()
    await until(lambda: desk.server.abandoned == 1)
    task = asyncio.ensure_future(texts(desk.llm, HELLO))
    await until(lambda: len(desk.server.asked) == 2)
    task.cancel()
    await until(lambda: desk.server.abandoned == 2)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_server_that_comes_back() -> None:
    async with opened() as desk:
        port = int(desk.url.split(":")[2].split("/")[0])
        assert await reply(desk, *said("Yes.")) == ["Yes."]
    llm = OpenAiLlm(OpenAiConfig(base_url=desk.url, model="nano"))
    with pytest.raises(EngineDead, match="start it"):
        await llm.start()
    async with serving(desk.server, port):
        assert await texts(llm, HELLO) == ["Yes."]
    with pytest.raises(EngineDead):
        await texts(llm, HELLO)
    async with serving(desk.server, port):
        assert await texts(llm, HELLO) == ["Yes."]
    await llm.close()


async def test_readiness_knows_that_the_server_is_gone_and_that_it_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has asked for a reply: the PoP would take calls that nobody can answer."""
    monkeypatch.setattr(openai, "PROBE_S", 0.01)
    server, port = Server(model), 0
    async with serving(server) as url:
        port = int(url.split(":")[2].split("/")[0])
        llm = OpenAiLlm(OpenAiConfig(base_url=url))
        await llm.start()
        assert llm.alive
    await until(lambda: not llm.alive)
    async with serving(server, port):
        await until(lambda: llm.alive)
    await llm.close()


async def test_readiness_knows_of_a_server_that_is_there_and_answers_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Callers give up before it is late, and all of it but replies may work."""
    monkeypatch.setattr(openai, "PROBE_S", 0.01)
    monkeypatch.setattr(liveness, "SOON_S", 0.05)
    async with opened(timeout_ms=300) as desk:
        desk.answers(60.0)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await texts(desk.llm, HELLO)
        assert desk.llm.alive, "it may be slow"
        await until(lambda: not desk.llm.alive)
        desk.answers(*said("Yes."))
        await until(lambda: desk.llm.alive)


@pytest.mark.parametrize("all_fail", [False, True])
async def test_failures_in_a_row_close_the_pop_only_if_a_trial_fails_too(
    all_fail: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client's tool may be one that the server's template fails at."""
    monkeypatch.setattr(openai, "PROBE_S", 0.01)
    async with opened() as desk:

        def answer(body: Json) -> list[Event] | Response:
            return PlainTextResponse("error", 500) if all_fail or body.get("tools") else said("Yes.")

        desk.server.answer = answer
        tried = len(desk.server.asked)
        for _ in range(5):
            with pytest.raises(EngineError):
                await texts(desk.llm, Prompt(HELLO.messages, (ToolSpec("add"),)))
        await until(lambda: len(desk.server.asked) > tried + 5)
        if all_fail:
            await until(lambda: not desk.llm.alive)
        else:
            await asyncio.sleep(0.1)
            assert desk.llm.alive


async def test_replies_that_begin_well_and_break_off_close_the_pop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai, "PROBE_S", 0.01)
    async with opened() as desk:
        desk.answers(*said("We are", "open.")[:2], cast("Event", object()))  # what cannot be sent ends the connection
        for _ in range(3):
            with pytest.raises(EngineDead, match="broke off"):
                await texts(desk.llm, HELLO)
        await until(lambda: not desk.llm.alive)
        desk.answers(*said("Yes."))
        await until(lambda: desk.llm.alive)


@pytest.mark.parametrize("status", [503, 500, 404])
async def test_a_server_that_loads_its_model_is_not_back_yet(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers so until it has."""
    monkeypatch.setattr(openai, "PROBE_S", 0.01)
    server = Server(model)
    async with serving(server) as url:
        port = int(url.split(":")[2].split("/")[0])
        llm = OpenAiLlm(OpenAiConfig(base_url=url))
        await llm.start()
    await until(lambda: not llm.alive)
    server.answer = lambda body: PlainTextResponse("loading model", status)
    asked = len(server.asked)
    async with serving(server, port):
        await until(lambda: len(server.asked) > asked + 3)
        assert not llm.alive
        server.answer = model
        await until(lambda: llm.alive)
    await llm.close()


async def test_nothing_is_answered_once_it_is_closed(desk: Desk) -> None:
    await desk.llm.close()
    with pytest.raises(EngineError, match="closed"):
        await texts(desk.llm, HELLO)


# --- the start ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("models", "named", "says"),
    [
        (["a", "b"], "", "several models, name one of them: a, b"),
        ([], "", "lists no model"),
        (["a", "b"], "c", "no model 'c'; set openai.model to one of: a, b"),
    ],
)
async def test_the_model_must_be_known(models: list[str], named: str, says: str) -> None:
    server = Server(model)
    server.models = models
    async with serving(server) as url:
        with pytest.raises(EngineError, match=re.escape(says)):
            await OpenAiLlm(OpenAiConfig(base_url=url, model=named)).start()


@pytest.mark.parametrize(
    ("base_url", "says"),
    [("", "openai.base_url is empty"), ("http://☃..b/v1", "no address")],
)
async def test_the_address_must_be_one(base_url: str, says: str) -> None:
    with pytest.raises(EngineError, match=says):
        await OpenAiLlm(OpenAiConfig(base_url=base_url)).start()


@pytest.mark.parametrize("end", ["", DONE])
@pytest.mark.parametrize(
    "report",
    [
        'error: {"code":500,"message":"boom","type":"server_error"}\n\n',
        '{"error":{"message":"boom"}}\n',
        '{"detail":"boom"}\n',
        '{\n "detail": "boom"\n}\n',
        'data: {"code":500,"message":"boom"}\n\n',
        "data: Error: boom\n\n",
        "event: error\ndata: boom\n\n",
        'event: error\ndata: {\ndata: "message": "boom"}\n\n',
        "error: boom\n\n",
    ],
)
@pytest.mark.parametrize("words", [["We are "], []])
async def test_a_reply_that_the_server_broke_off_is_not_complete(
    desk: Desk, words: list[str], report: str, end: str
) -> None:
    """llama.cpp, ggml-org/llama.cpp#16109, and others: the connection ends as it should."""
    await desk.llm.start()
    desk.server.answer = lambda body: [*(chunk(content=word) for word in words), report, end]
    said: list[Delta] = []
    with pytest.raises(EngineError, match="boom"):
        async for delta in desk.llm.generate(HELLO):
            said += [delta]
    assert said == [word.strip() for word in words]


@pytest.mark.parametrize(
    "behind", ["data: ping\n\n", "data: null\n\n", ": bye\n\n", 'data: {"usage": {}}\n\n', "id: 1\n\n"]
)
async def test_what_servers_send_beside_a_reply_breaks_nothing_off(desk: Desk, behind: str) -> None:
    await desk.llm.start()
    desk.server.answer = lambda body: [chunk(content="Hi."), behind]
    assert [delta async for delta in desk.llm.generate(HELLO)] == ["Hi."]


async def test_a_server_of_a_private_authority_is_trusted_where_that_is_named(tmp_path: Path) -> None:
    authority = await asyncio.to_thread(Authority, tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*await asyncio.to_thread(authority.certified))
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0, ssl=context)
    async with server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        with pytest.raises(EngineDead, match=r"its certificate is not trusted here .* as tls\.ca"):
            await OpenAiLlm(OpenAiConfig(base_url=url, model="m")).start()
        with pytest.raises(EngineDead, match="broke off"):  # It was trusted, and this one says nothing.
            await OpenAiLlm(OpenAiConfig(base_url=url, model="m"), ca=str(authority.ca)).start()
