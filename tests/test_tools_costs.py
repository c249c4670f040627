"""Webhooks that answer in ways which cost much or cannot be read, and arguments that cannot be sent to them."""

import gzip
from collections.abc import AsyncIterator, Iterator
from itertools import repeat
from time import thread_time

import httpx
import pytest

from tests.support.stopwatch import watched
from voicepipe.agent import Tool, Webhook
from voicepipe.errors import OutcomeUnknown, ToolError
from voicepipe.tools import BODY_BYTES, ToolRunner
from voicepipe.turn.prompt import ToolCall

BOOK = Tool("book", webhook=Webhook("https://tools.example"))
SMALL_S = 0.6


class Stream(httpx.AsyncByteStream):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.read += len(piece)
            yield piece


class Web:
    """A web server that answers every request with one response."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.asked: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self.response


async def used(web: Web, arguments: str = "{}", tool: Tool = BOOK) -> str:
    async with ToolRunner(httpx.MockTransport(web)) as runner:
        return await runner.begin(tool, ToolCall("call_1", tool.name, arguments), {"id": "rtc_1"}, "use_1", "acme")


async def test_of_what_is_compressed_no_more_than_that_is_read() -> None:
    bomb = Stream(iter([gzip.compress(b"a" * 66_000_000)]))
    web = Web(httpx.Response(200, headers={"content-encoding": "gzip"}, stream=bomb))
    async with watched() as longest:
        assert (await used(web)).startswith("aaa")
    assert longest.step_s < SMALL_S
    assert web.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip"])
async def test_what_cannot_be_read(coding: str, caplog: pytest.LogCaptureFixture) -> None:
    """What came of it is unknown to the model, so a repeat has the same key."""
    web = Web(httpx.Response(200, headers={"content-encoding": coding}, stream=Stream(iter([b"no gzip"]))))
    with pytest.raises(OutcomeUnknown, match="^the answer of book cannot be read; nobody knows whether it was done$"):
        await used(web)
    assert "the answer of book cannot be read" in caplog.text


@pytest.mark.parametrize("coding", ["utf-8", "UTF-8", "", "none", "8bit", "aws-chunked"])
async def test_what_is_no_compression_changes_nothing(coding: str) -> None:
    """Servers write charsets there."""
    web = Web(httpx.Response(200, headers={"content-encoding": coding}, stream=Stream(iter([b"Booked."]))))
    assert await used(web) == "Booked."


async def test_an_answer_that_says_it_is_not_encoded() -> None:
    assert await used(Web(httpx.Response(200, headers={"content-encoding": "Identity"}, text="Booked."))) == "Booked."


async def test_an_answer_in_bytes_lets_others_run() -> None:
    """A piece costs little, whatever came before it."""
    stream = Stream(repeat(b"x"))
    webhook = Web(httpx.Response(200, stream=stream))
    async with watched() as longest:
        result = await used(webhook, tool=Tool("book", webhook=BOOK.webhook, timeout_ms=30_000))
    assert result.startswith("xxx") and stream.read == BODY_BYTES
    assert longest.step_s < SMALL_S


@pytest.mark.parametrize(
    "arguments",
    ['{"a": 1e999}', '{"a": NaN}', '{"a": "\\ud800"}', '{"\\udfff": 1}'],
)
async def test_arguments_that_cannot_be_sent(arguments: str, caplog: pytest.LogCaptureFixture) -> None:
    web = Web(httpx.Response(200, text="Booked."))
    with pytest.raises(ToolError, match="nothing was sent") as raised:
        await used(web, arguments)
    assert not isinstance(raised.value, OutcomeUnknown)
    assert not web.asked and "Traceback" not in caplog.text


@pytest.mark.parametrize(("depth", "sent"), [(500, 1), (100_000, 0)])
async def test_arguments_in_arguments(depth: int, sent: int) -> None:
    web = Web(httpx.Response(200, text="Booked."))
    try:
        await used(web, '{"a": ' + "[" * depth + "]" * depth + "}")
    except ToolError as error:
        assert not isinstance(error, OutcomeUnknown)
    assert len(web.asked) == sent


@pytest.mark.parametrize(("own", "type_"), [({}, "application/json"), ({"content-type": "text/x-json"}, "text/x-json")])
async def test_the_request_is_json(own: dict[str, str], type_: str) -> None:
    web = Web(httpx.Response(200, text="Booked."))
    await used(web, '{"name": "Zoë"}', Tool("book", webhook=Webhook("https://tools.example", own)))
    [asked] = web.asked
    assert asked.headers.get_list("content-type") == [type_]
    assert asked.headers["content-length"] == str(len(asked.content)) and "Zoë" in asked.content.decode()


@pytest.mark.parametrize(
    ("charset", "body", "read"),
    [
        ("utf-8", "Zoë".encode(), "Zoë"),
        ("latin-1", "Zoë".encode("latin-1"), "Zoë"),
        ("utf-16", "Zoë".encode("utf-16"), "Zoë"),
        ("hex", "Zoë".encode(), "Zoë"),
        ("zlib", b"\xff!", "�!"),
        ("undefined", "Zoë".encode(), "Zoë"),
        ("idna", "Zoë".encode(), "Zoë"),
        ("nowhere", "Zoë".encode(), "Zoë"),
        ("%00", "Zoë".encode(), "Zoë"),
        ('""', "Zoë".encode(), "Zoë"),
        ("x" * 5000, "Zoë".encode(), "Zoë"),
    ],
)
async def test_a_success_in_any_charset_is_a_success(charset: str, body: bytes, read: str) -> None:
    web = Web(httpx.Response(200, headers={"content-type": f"text/plain; charset={charset}"}, content=body))
    assert await used(web) == read


async def test_a_charset_that_takes_long() -> None:
    body = b"-" + b"a" * BODY_BYTES
    web = Web(httpx.Response(200, headers={"content-type": "text/plain; charset=punycode"}, content=body))
    began = thread_time()
    assert (await used(web)).startswith("-aaa")
    assert thread_time() - began < SMALL_S
