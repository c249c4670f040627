"""What a client sends, parsed in small pieces."""

import asyncio

from tests.ingress.test_connection import ended, raw
from tests.ingress.test_connection_bodies import serving
from voicepipe.ingress.chunked_parser import LARGEST_CHUNK, ChunkedParser


async def test_what_waits_of_pipelined_requests_is_parsed_in_small_steps(parsed: list[int]) -> None:
    said = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
    last = b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    async with serving() as address, raw(address, said + last) as streams:
        assert (await ended(streams)).count(b" 401 ") == 21
    assert max(parsed) <= LARGEST_CHUNK


class Socket:
    """A transport of which only reading matters."""

    def __init__(self) -> None:
        self.reads = True
        self.closing = False

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


class Parser(ChunkedParser):
    """Takes 4 bytes at a time; of an "x" it has to think."""

    def __init__(self) -> None:
        super().__init__()
        self.socket = Socket()
        self.transport = self.socket  # type: ignore[assignment]
        self.loop = asyncio.get_running_loop()
        self.parsed: list[bytes] = []
        self.thinks = False

    def _parsing_paused(self) -> bool:
        return self.thinks

    def _size(self) -> int:
        return 4

    def _parse(self, piece: bytes) -> None:
        self.parsed.append(piece)
        self.thinks = b"x" in piece


async def test_each_piece_is_parsed_in_a_step_of_its_own_and_nothing_is_read_meanwhile() -> None:
    parser = Parser()
    parser._came(b"0123456789")
    assert parser.parsed == [b"0123"] and not parser.socket.reads
    await asyncio.sleep(0)
    assert parser.parsed == [b"0123", b"4567"] and not parser.socket.reads
    await asyncio.sleep(0)
    assert parser.parsed == [b"0123", b"4567", b"89"] and parser.socket.reads


async def test_what_comes_while_pieces_wait_is_parsed_behind_them() -> None:
    parser = Parser()
    parser._came(b"01234")
    parser._came(b"567")
    assert parser.parsed == [b"0123"]
    await asyncio.sleep(0)
    assert parser.parsed == [b"0123", b"4567"] and parser.socket.reads


async def test_a_parser_that_has_to_think_gets_no_more_until_it_says_so() -> None:
    parser = Parser()
    parser._came(b"0x23456")
    await asyncio.sleep(0.01)
    assert parser.parsed == [b"0x23"] and not parser.socket.reads
    parser.thinks = False
    parser._decide_reading()
    await asyncio.sleep(0)
    assert parser.parsed == [b"0x23", b"456"] and parser.socket.reads


async def test_of_a_connection_that_closes_nothing_more_is_parsed() -> None:
    parser = Parser()
    parser._came(b"01234567")
    parser.socket.closing = True
    parser._decide_reading()
    await asyncio.sleep(0.01)
    assert parser.parsed == [b"0123"]
    forgets = Parser()
    forgets._came(b"01234567")
    forgets._forget()
    await asyncio.sleep(0.01)
    assert forgets.parsed == [b"0123"]
