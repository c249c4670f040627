"""What webhooks answer: compressed, endless, or in a charset that costs much or cannot be read."""

import gzip
from collections.abc import AsyncIterator, Iterator
from itertools import repeat
from time import thread_time

import httpx
import pytest

from tests.support.stopwatch import watched
from tests.support.tools import BOOK, Web
from voicepipe.agent import Tool
from voicepipe.base.errors import OutcomeUnknown
from voicepipe.tools.python_tools import RESULT_CHARS
from voicepipe.tools.tool_runner import BODY_BYTES

SMALL_S = 0.6


class Stream(httpx.AsyncByteStream):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.read = 0

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            self.read += len(piece)
            yield piece


async def test_of_what_is_compressed_no_more_than_that_is_read() -> None:
    bomb = Stream(iter([gzip.compress(b"a" * 66_000_000)]))
    web = Web(httpx.Response(200, headers={"content-encoding": "gzip"}, stream=bomb))
    async with watched() as longest:
        assert (await web.used()).startswith("aaa")
    assert longest.step_s < SMALL_S
    assert web.asked[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, gzip", "gzip"])
async def test_what_cannot_be_read(coding: str, caplog: pytest.LogCaptureFixture) -> None:
    """What came of it is unknown to the model, so a repeat has the same key."""
    web = Web(httpx.Response(200, headers={"content-encoding": coding}, stream=Stream(iter([b"no gzip"]))))
    with pytest.raises(OutcomeUnknown, match="^the answer of book cannot be read; nobody knows whether it was done$"):
        await web.used()
    assert "the answer of book cannot be read" in caplog.text


@pytest.mark.parametrize("coding", ["utf-8", "UTF-8", "", "none", "8bit", "aws-chunked"])
async def test_what_is_no_compression_changes_nothing(coding: str) -> None:
    """Servers write charsets there."""
    web = Web(httpx.Response(200, headers={"content-encoding": coding}, stream=Stream(iter([b"Booked."]))))
    assert await web.used() == "Booked."


async def test_an_answer_that_says_it_is_not_encoded() -> None:
    assert await Web(httpx.Response(200, headers={"content-encoding": "Identity"}, text="Booked.")).used() == "Booked."


async def test_an_endless_answer_in_bytes_is_not_read_to_its_end_and_lets_others_run() -> None:
    """A piece costs little, whatever came before it."""
    stream = Stream(repeat(b"x"))
    web = Web(httpx.Response(200, stream=stream))
    async with watched() as longest:
        result = await web.used(tool=Tool("book", webhook=BOOK.webhook, timeout_ms=30_000))
    assert result.startswith("xxx") and len(result) == RESULT_CHARS and stream.read == BODY_BYTES
    assert longest.step_s < SMALL_S


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
    assert await web.used() == read


async def test_a_charset_that_takes_long() -> None:
    body = b"-" + b"a" * BODY_BYTES
    web = Web(httpx.Response(200, headers={"content-type": "text/plain; charset=punycode"}, content=body))
    began = thread_time()
    assert (await web.used()).startswith("-aaa")
    assert thread_time() - began < SMALL_S
