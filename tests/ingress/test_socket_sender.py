"""What a WebSocket is sent: in order, at its client's pace, and no more than may wait."""

import asyncio
from typing import Any

import pytest
from starlette.websockets import WebSocketDisconnect

from voicepipe.ingress import socket_sender
from voicepipe.ingress.asgi_scope import PEER
from voicepipe.ingress.socket_sender import Outbox, SocketSender


async def drained(outbox: Outbox) -> list[bytes]:
    messages = []
    while (message := await outbox.get()) is not None:
        messages.append(message)
    return messages


async def test_messages_come_in_order_and_those_queued_before_the_end_are_delivered() -> None:
    outbox = Outbox(100, lambda: None)
    for message in (b"1", b"2", b"3"):
        outbox.put(message)
    outbox.close()
    outbox.put(b"4")
    assert await drained(outbox) == [b"1", b"2", b"3"] and outbox.closed


async def test_who_reads_waits_for_the_next_one() -> None:
    outbox = Outbox(100, lambda: None)
    reading = asyncio.create_task(drained(outbox))
    await asyncio.sleep(0.01)
    assert not reading.done()
    outbox.put(b"1")
    await asyncio.sleep(0.01)
    outbox.close()
    assert await reading == [b"1"]


async def test_a_client_that_takes_nothing_is_cut_off_once() -> None:
    full: list[bool] = []
    outbox = Outbox(10, lambda: full.append(outbox.closed))
    for message in (b"12345", b"67890", b"x", b"y"):
        outbox.put(message)
    assert full == [True] and await drained(outbox) == []


async def test_what_was_taken_makes_room() -> None:
    full: list[bool] = []
    outbox = Outbox(10, lambda: full.append(True))
    for number in range(20):
        outbox.put(b"%010d" % number)
        assert await outbox.get() == b"%010d" % number
    assert not full


class Socket:
    """Of which what is sent is kept; `gone`: the client is."""

    def __init__(self, gone: bool = False, slow: bool = False, peer: Any = None) -> None:
        self.scope = {"extensions": {PEER: peer or Peer()}}
        self.sent: list[str | int] = []
        self._gone, self._slow = gone, slow

    async def send_text(self, text: str) -> None:
        if self._gone:
            raise WebSocketDisconnect(1006)
        if self._slow:
            await asyncio.Event().wait()
        self.sent.append(text)

    async def close(self, code: int) -> None:
        self.sent.append(code)


class Peer:
    def __init__(self) -> None:
        self.done: list[str] = []

    def abort(self) -> None:
        self.done.append("abort")


def writer(socket: Socket) -> SocketSender:
    return SocketSender(socket)  # type: ignore[arg-type]


async def test_the_close_code_is_the_one_of_the_end() -> None:
    socket, outbox, codes = Socket(), Outbox(100, lambda: None), [1000]
    writing = asyncio.create_task(writer(socket).write(outbox, lambda: codes[-1]))
    outbox.put(b"hello")
    await asyncio.sleep(0.01)
    codes.append(1012)
    outbox.close()
    await writing
    assert socket.sent == ["hello", 1012]


async def test_for_a_client_that_is_gone_nothing_more_is_queued() -> None:
    outbox = Outbox(100, lambda: None)
    outbox.put(b"hello")
    await writer(Socket(gone=True)).write(outbox)
    assert outbox.closed


async def test_what_is_left_is_waited_for_a_while_and_then_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_sender, "LINGER", 0.02)
    peer, outbox = Peer(), Outbox(100, lambda: None)
    sends = writer(Socket(slow=True, peer=peer))
    outbox.put(b"hello")
    outbox.close()
    writing = asyncio.create_task(sends.write(outbox))
    await sends.flush(writing)
    await asyncio.wait({writing})
    assert writing.cancelled() and peer.done == ["abort"]


async def test_a_client_that_takes_it_in_time_is_not_dropped() -> None:
    peer, outbox = Peer(), Outbox(100, lambda: None)
    socket = Socket(peer=peer)
    sends = writer(socket)
    outbox.put(b"hello")
    outbox.close()
    await sends.flush(asyncio.create_task(sends.write(outbox)))
    assert socket.sent == ["hello", 1000] and peer.done == []
