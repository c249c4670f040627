"""What a server of the OpenAI kind can send to keep us busy or to fill our memory, and what it costs.

The bounds are generous: a step takes 20 ms at most on a small machine, and took up to 15 s where it was not bounded.
"""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import thread_time

import pytest

from tests.support.stopwatch import watched
from voicepipe.base import web_answer
from voicepipe.base.errors import EngineBusy, EngineError
from voicepipe.config.engine_config import OpenAiConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.event_stream import LONGEST_EVENT
from voicepipe.engines.llm.openai import OpenAiLlm
from voicepipe.engines.llm.openai_wire import LONGEST_ANSWER, LONGEST_TEXT, MOST_SILENT, StreamedReply, complaint

SMALL_S = 0.6
HELLO = Prompt((Message("user", "Hello."),))


def spent(work: Callable[[], object]) -> float:
    """Processor time; an EngineError is an end as well."""
    began = thread_time()
    try:
        work()
    except EngineError:
        pass
    return thread_time() - began


def fragments(*parts: bytes) -> bytes:
    return b'{"choices":[{"delta":{"tool_calls":[' + b",".join(parts) + b"]}}]}"


def text(said: bytes) -> bytes:
    return b'{"choices":[{"delta":{"content":"' + said + b'"}}]}'


# --- one event, one read --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event",
    [
        fragments(*(b'{"index":%d}' % index for index in range(60_000))),
        fragments(*(b'{"index":0,"id":"i%d","function":{"name":"n","arguments":"}"}}' % n for n in range(15_000))),
        text(b"a " * 500_000),
        b'{"choices":[],"error":{"x":[' + b",".join([b"9e303"] * 170_000) + b"]}}",
        b'{"error":' * 900 + b'"' + b"x" * 900_000 + b'"' + b"}" * 900,
    ],
    ids=["numbers", "ids", "text", "floats", "errors in errors"],
)
def test_one_event_of_a_megabyte(event: bytes) -> None:
    assert spent(lambda: StreamedReply().take(event)) < SMALL_S


def test_new_ids_on_long_arguments_that_are_open() -> None:
    reply = StreamedReply()
    reply.take(
        fragments(b'{"index":0,"id":"i","function":{"name":"n","arguments":"{\\"a\\":\\"' + b"x" * 60_000 + b'"}}')
    )
    new = fragments(*(b'{"index":0,"id":"i%d","function":{"name":"n","arguments":"x"}}' % n for n in range(15_000)))
    assert spent(lambda: reply.take(new)) < SMALL_S


@pytest.mark.parametrize("depth", [10, 900, 10_000])
def test_a_complaint_within_complaints(depth: int) -> None:
    body = b'{"error":' * depth + b'{"x":"' + b"y" * 40_000 + b'"}' + b"}" * depth
    assert spent(lambda: complaint(body)) < SMALL_S


# --- replies without end --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event", [b"{}", b"[DONE]", text(b" "), fragments(b'{"index":0}'), b'{"choices":[{"delta":{"reasoning":"a"}}]}']
)
def test_events_without_end_that_say_nothing(event: bytes) -> None:
    reply = StreamedReply()
    for _ in range(MOST_SILENT):
        reply.take(event)
    with pytest.raises(EngineError, match="say nothing"):
        reply.take(event)


@pytest.mark.parametrize("more", [text(b"Yes."), fragments(b'{"index":0,"function":{"arguments":"x"}}')])
def test_who_says_something_now_and_then_may_be_silent_for_longer(more: bytes) -> None:
    reply = StreamedReply()
    for _ in range(3):
        for _ in range(MOST_SILENT - 1):
            reply.take(b"{}")
        reply.take(more)


@pytest.mark.parametrize("begin", [b"Well. ", b"<think>"])
def test_a_text_without_end(begin: bytes) -> None:
    reply = StreamedReply()
    reply.take(text(begin))
    for _ in range(LONGEST_TEXT // 1024 - 1):
        reply.take(text(b"a " * 512))
    with pytest.raises(EngineError, match="more than 262144 characters"):
        reply.take(text(b"a " * 512))


# --- a whole server -------------------------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nTransfer-Encoding: chunked\r\n"
GZIP = b"Content-Encoding: gzip\r\n"
BOMB = gzip.compress(bytes(16_000_000))


def chunked(body: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(body), body)


class Wild:
    """A server that answers every request with the same head, and then pieces without end."""

    def __init__(self) -> None:
        self.head, self.piece = OK, b""
        self.sent = 0
        self.asked = b""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            self.asked = await reader.readuntil(b"\r\n\r\n")
            writer.write(self.head + b"\r\n")
            while self.sent < 50_000_000:
                writer.write(self.piece)
                self.sent += len(self.piece)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def wild() -> AsyncIterator[tuple[Wild, OpenAiLlm]]:
    served = Wild()
    async with await asyncio.start_server(served.serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        llm = OpenAiLlm(OpenAiConfig(base_url=f"http://127.0.0.1:{port}/v1", model="m", timeout_ms=5000))
        llm._client = await asyncio.to_thread(llm._connected)
        yield served, llm
        await llm.close()


async def longest_step(llm: OpenAiLlm, seconds: float = 60.0) -> tuple[float, str]:
    """Processor time for which the loop was kept from others, and how the reply ended."""
    async with watched() as longest:
        try:
            async with asyncio.timeout(seconds):
                async for _ in llm.generate(HELLO):
                    pass
            ended = "well"
        except (EngineError, TimeoutError) as error:
            ended = f"{type(error).__name__} {error}"
    return longest.step_s, ended


@pytest.mark.parametrize(
    ("piece", "says"),
    [
        (chunked(b"data:{}\n" * 8000), "say nothing"),
        (chunked(b"data:" + text(b"a a a a ") + b"\n\n") * 1000, "more than 262144 characters"),
        (chunked((b"data:" + text(b"a" + b" " * 1000) + b"\n\n") * 60), "more than 262144 characters"),
    ],
    ids=["silent events", "an event a chunk", "spaces"],
)
async def test_a_stream_without_end(piece: bytes, says: str) -> None:
    async with wild() as (server, llm):
        server.piece = piece
        longest, ended = await longest_step(llm, 30.0)
    assert says in ended
    assert longest < SMALL_S


async def test_chunks_of_one_byte_let_others_run() -> None:
    async with wild() as (server, llm):
        server.piece = chunked(b"x") * 10_000
        longest, ended = await longest_step(llm, 1.0)
    assert ended.startswith("TimeoutError")
    assert longest < SMALL_S


async def test_no_compressed_reply_is_asked_for_or_read() -> None:
    async with wild() as (server, llm):
        server.head, server.piece = OK + GZIP, chunked(BOMB)
        longest, ended = await longest_step(llm)
    assert b"accept-encoding: identity\r\n" in server.asked.lower()
    assert ended.startswith("EngineError") and "compresses its replies (gzip)" in ended
    assert longest < SMALL_S


async def test_of_what_is_compressed_no_more_than_that_is_read() -> None:
    async with wild() as (server, llm):
        server.head, server.piece = BUSY + GZIP, chunked(BOMB)
        async with watched() as longest:
            with pytest.raises(EngineBusy):
                await anext(llm.generate(HELLO))
            server.head = OK + GZIP
            assert await llm._models() == []
    assert longest.step_s < SMALL_S


async def test_a_charset_where_the_compression_belongs_is_none() -> None:
    async with wild() as (server, llm):
        server.head, server.piece = OK + b"Content-Encoding: utf-8\r\n", chunked(b"data: {}\n\n")
        _, ended = await longest_step(llm)
    assert "events that say nothing" in ended


@pytest.mark.parametrize("piece", [chunked(b"x" * 60_000), chunked(b"x" * 100) * 100])
async def test_answers_without_end_are_read_to_a_bound(piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    pieces = web_answer.pieces

    async def counted(*args: object) -> AsyncIterator[bytes]:
        async for piece in pieces(*args):  # type: ignore[arg-type]
            read[-1] += len(piece)
            yield piece

    monkeypatch.setattr(web_answer, "pieces", counted)
    async with wild() as (server, llm):
        server.piece = piece
        read.append(0)
        assert await llm._there()
        read.append(0)
        assert await llm._models() == []
        server.head = BUSY
        read.append(0)
        with pytest.raises(EngineBusy):
            await anext(llm.generate(HELLO))
    bounds = LONGEST_EVENT, LONGEST_EVENT, LONGEST_ANSWER
    assert all(most <= length < most + 60_000 for most, length in zip(bounds, read, strict=True))
