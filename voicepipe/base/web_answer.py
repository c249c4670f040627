"""Reads a web server's answer, in small steps, and only as far as needed.

We ask for answers that are not compressed, since a few bytes may become a thousand times as many at one stroke. Some
servers compress them all the same, and some write a charset where the compression belongs.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx

PLAIN = {"Accept-Encoding": "identity"}
AT_A_TIME = 32
"""Chunks of an answer after which others have their turn: one read may contain thousands."""
ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
CODINGS = ZLIB | {"br", "zstd", "compress", "x-compress"}
"""Codings that compress (IANA's registry of HTTP content codings). Others change nothing."""


def coding(response: httpx.Response) -> str:
    """The compression of the body; empty: none."""
    written = response.headers.get("content-encoding", "").lower().split(",")
    return ", ".join(name for word in written if (name := word.strip()) in CODINGS)


async def pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body in chunks as it comes, still compressed."""
    number = 0
    async for piece in response.aiter_raw() if coding(response) else response.aiter_bytes():
        yield piece
        number += 1
        if number % AT_A_TIME == 0:
            await asyncio.sleep(0)


async def whole(response: httpx.Response, most: int) -> bytes:
    """The first `most` bytes of the body, which must not be compressed. Raises httpx.HTTPError: it broke off, or cannot
    be read."""
    body = bytearray()
    async with aclosing(pieces(response)) as found:
        async for piece in found:
            body += piece
            if len(body) >= most:
                break
    return _plain(bytes(body), coding(response), most)[:most]


def _plain(body: bytes, how: str, most: int) -> bytes:
    if not how:
        return body
    if how not in ZLIB:
        raise httpx.DecodingError(f"it is compressed ({how})")
    try:
        return zlib.decompressobj(wbits=47).decompress(body, most)  # 32 + 15: gzip or zlib, by its first bytes
    except zlib.error as error:
        raise httpx.DecodingError(f"it is no {how} ({error})") from None
