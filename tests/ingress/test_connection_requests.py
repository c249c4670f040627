"""HTTP requests that cost more to parse than to send."""

import asyncio

import h11
import pytest

from tests.ingress.test_connection import ended, raw
from tests.ingress.test_connection_bodies import serving, shout
from voicepipe.ingress import connection
from voicepipe.ingress.chunked_parser import LARGEST_CHUNK, LEAST_CHUNK
from voicepipe.ingress.connection import SMALL_CHUNK, AnswerTransport, RequestParser

POST = b"POST %s HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize("empty", [b"1\r\nx\r\n", b"7f\r\n" + b"x" * 127 + b"\r\n"])
async def test_masses_of_small_chunks_are_refused_after_small_steps(empty: bytes, parsed: list[int]) -> None:
    async with serving() as address, raw(address, POST % b"/length" + CHUNKED) as streams:
        said = await shout(streams, empty * 10_000, 1)
    assert said.startswith(b"HTTP/1.1 400") and b"send larger ones" in said
    most = 2 * connection.CHUNKS.burst * len(empty) + LARGEST_CHUNK
    assert sum(parsed) <= most
    assert max(parsed) <= (LEAST_CHUNK if len(empty) < 10 else LARGEST_CHUNK)


@pytest.mark.parametrize(
    "head", [b"GET / HTTP/1.1\r\nHost: a\r\n", POST % b"/length" + CHUNKED + b"0\r\n"], ids=["headers", "trailers"]
)
@pytest.mark.parametrize("line", [b"a:\r\n", b"a:\n", b" \n"], ids=["short", "shorter", "folded"])
async def test_masses_of_headers_are_refused_before_they_are_parsed(
    head: bytes, line: bytes, parsed: list[int]
) -> None:
    async with serving() as address, raw(address, head + b"a: b\r\n" + line * 16_000 + b"\r\n") as streams:
        said = await ended(streams)
    assert said.startswith(b"HTTP/1.1 431") and b"Too many headers" in said
    assert sum(parsed) < 2048 and max(parsed) <= LEAST_CHUNK


async def test_a_hundred_headers_are_taken() -> None:
    async with serving() as address:
        head = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n" + b"X-Some-Header: y\r\n" * 98
        async with raw(address, head + b"\r\n") as streams:
            assert b" 401 " in await ended(streams)


HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"


def events(requests: RequestParser, said: bytes) -> list[str]:
    """Of a client's bytes, by their names."""
    requests.receive_data(said)
    found = []
    while (event := requests.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
        found.append(type(event).__name__)
    return found


def test_small_chunks_are_counted_and_large_or_partial_ones_are_not() -> None:
    requests = RequestParser()
    events(requests, HEAD + CHUNKED + b"1\r\nx\r\n" * 3 + b"80\r\n" + b"x" * SMALL_CHUNK + b"\r\n" + b"4\r\nxx")
    assert requests.small_chunks == 3
    events(requests, b"xx\r\n2\r\nxx\r\n")
    assert requests.small_chunks == 4, "one that came in two parts does not count"


def test_lines_of_headers_or_trailers_that_are_not_complete_are_counted() -> None:
    requests = RequestParser()
    assert events(requests, HEAD + b"a: b\r\nc: d\r\n") == []
    assert requests.lines_waiting() == 4
    assert events(requests, CHUNKED) == ["Request"] and requests.lines_waiting() == 0
    events(requests, b"0\r\na: b\r\nc: d\r\n")
    assert requests.lines_waiting() == 2
    assert events(requests, b"\r\n") == ["EndOfMessage"]
    requests.receive_data(b"\n" * 50)
    assert requests.lines_waiting() == 0, "the next request waits for its turn"


def test_only_of_a_body_of_known_length_what_comes_is_taken_as_it_is() -> None:
    plain, chunked = RequestParser(), RequestParser()
    events(plain, HEAD + b"Content-Length: 5\r\n\r\nxx")
    events(chunked, HEAD + CHUNKED + b"2\r\nxx\r\n")
    assert plain.in_plain_body and not chunked.in_plain_body
    events(plain, b"xxx")
    assert not plain.in_plain_body


@pytest.mark.parametrize(("sent", "closes"), [(b"xx", True), (b"xxxxx", False)])
def test_an_answer_before_the_body_is_complete_ends_the_connection(sent: bytes, closes: bool) -> None:
    requests = RequestParser()
    events(requests, HEAD + b"Content-Length: 5\r\n\r\n" + sent)
    answer = requests.send(h11.Response(status_code=401, headers=[(b"content-length", b"0")]))
    assert (b"connection: close" in answer.lower()) == closes


def test_a_connection_that_has_gone_is_closed_by_nobody() -> None:
    done: list[str] = []
    rein = AnswerTransport(asyncio.Transport(), lambda: done.append("decide"), lambda: done.append("close"))
    for act in (rein.pause_reading, rein.resume_reading, rein.close):
        act()
    assert done == ["decide", "decide", "close"]
    rein.drop()
    for act in (rein.pause_reading, rein.resume_reading, rein.close):
        act()
    assert len(done) == 3
