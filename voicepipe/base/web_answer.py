"""What a web server answers us, in bytes: read in small steps, and no further than asked for.

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
"""Pieces of an answer after which others have their turn: one read may hold thousands."""
ZLIB = frozenset({"gzip", "x-gzip", "deflate"})
CODINGS = ZLIB | {"br", "zstd", "compress", "x-compress"}
"""What compresses (IANA's registry of HTTP content codings). Whatever else a server writes there changes nothing."""


def coding(response: httpx.Response) -> str:
    """How the body is compressed; empty: it is not."""
    written = response.headers.get("content-encoding", "").lower().split(",")
    return ", ".join(name for word in written if (name := word.strip()) in CODINGS)


async def pieces(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The body as it comes, compressed as it is."""
    number = 0
    async for piece in response.aiter_raw() if coding(response) else response.aiter_bytes():
        yield piece
        number += 1
        if number % AT_A_TIME == 0:
            await asyncio.sleep(0)


async def whole(response: httpx.Response, most: int) -> bytes:
    """`most` bytes of the body, none of it compressed. Raises httpx.HTTPError: it broke off, or cannot be read."""
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
