"""Messages and sockets between two processes of a PoP, over a real Unix socket."""

import asyncio
import os
import socket
from dataclasses import dataclass, field

from tests.support.waiting import until
from voicepipe.pop.takeover_channel import (
    Message,
    ProcessStarted,
    SipDatagram,
    SocketsHandedOver,
    TakeoverChannel,
    TakesCalls,
    encoded,
)


@dataclass
class End:
    """One end of the channel, and what has come there."""

    end: socket.socket
    came: list[tuple[Message, list[socket.socket]]] = field(default_factory=list)
    closed: int = 0

    def open(self) -> TakeoverChannel:
        return TakeoverChannel(self.end, lambda message, sockets: self.came.append((message, sockets)), self._over)

    def _over(self) -> None:
        self.closed += 1


def ends() -> tuple[End, End]:
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    return End(one), End(other)


async def test_messages_come_whole_and_in_order_however_large() -> None:
    one, other = ends()
    channel, there = one.open(), other.open()
    sent: list[Message] = [
        ProcessStarted(7, "0.1.0"),
        SocketsHandedOver({"keys": os.urandom(3_000_000)}, 1),
        SipDatagram(b"INVITE", "127.0.0.1", 5060),
    ]
    for message in sent:
        channel.send(message)
    await until(lambda: len(other.came) == 3)
    assert [message for message, _ in other.came] == sent
    there.send(TakesCalls())
    await until(lambda: bool(one.came))
    channel.close()
    there.close()


async def test_sockets_come_with_their_message() -> None:
    one, other = ends()
    channel, there = one.open(), other.open()
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        channel.send(SocketsHandedOver({"large": bytes(1_000_000)}, 1))
        channel.send(SocketsHandedOver({}, 2), tcp, udp)
        channel.send(TakesCalls())
        await until(lambda: len(other.came) == 3)
        (_, first), (_, second), (_, third) = other.came
        assert not first and not third
        assert [one.getsockname() for one in second] == [tcp.getsockname(), udp.getsockname()]
        assert all(os.get_inheritable(one.fileno()) is False for one in second)
        for taken in second:
            taken.close()
    channel.close()
    there.close()


async def test_the_end_of_the_other_process_is_told_once() -> None:
    one, other = ends()
    channel = one.open()
    other.end.close()
    await until(lambda: one.closed == 1)
    channel.send(TakesCalls())
    channel.close()
    channel.close()
    await asyncio.sleep(0)
    assert one.closed == 1


async def test_a_message_that_this_version_does_not_know_is_skipped() -> None:
    one, other = ends()
    channel = one.open()
    other.end.sendall(encoded(TakesCalls()).replace(b"serving", b"unknown") + encoded(ProcessStarted(1, "2")))
    await until(lambda: bool(one.came))
    assert [message for message, _ in one.came] == [ProcessStarted(1, "2")]
    channel.close()
    other.end.close()
