"""Attacks are found, and their sockets come from where they are to come from."""

import asyncio
import socket

import pytest

from tests.attacks.bench.discovery import found
from tests.attacks.bench.sources import MANY, Sources, sending_from
from tests.attacks.target import Target


def test_attacks_are_found_by_their_names() -> None:
    attacks = found()
    assert "healthz_flood" in attacks
    assert all(name == attack.name and attack.says for name, attack in attacks.items())


@pytest.mark.parametrize("host", ["192.0.2.1", "10.0.0.1", "0.0.0.0", "::2"])
def test_nothing_but_loopback_is_attacked(host: str) -> None:
    with pytest.raises(ValueError, match="loopback"):
        Target(host, 8080)


async def test_connections_come_from_the_addresses_in_turn() -> None:
    peers: list[str] = []

    def come(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername")[0])
        writer.close()

    server = await asyncio.start_server(come, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    with sending_from(Sources(MANY)):
        for _ in range(60):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            await reader.read()
            writer.close()
    server.close()
    assert len(set(peers)) == 50
    assert socket.socket.__name__ == "socket"


@pytest.mark.parametrize("moved", [False, True])
async def test_datagrams_come_from_there_too(moved: bool) -> None:
    """A socket that is bound keeps its address, unless it is moved: media go to where a peer said that it is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("127.0.0.1", 0))
        here.settimeout(5)
        with sending_from(Sources(MANY, moved=moved)):
            transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(
                asyncio.DatagramProtocol, ("127.0.0.1", 0)
            )
            transport.sendto(b"?", here.getsockname())
            _, (came_from, _) = await asyncio.to_thread(here.recvfrom, 10)
            transport.close()
    assert (came_from in MANY) == moved


def test_all_that_is_sent_is_counted_together() -> None:
    sources = Sources(bits_per_second=8e6)
    waits: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.attacks.bench.sources.time.monotonic", lambda: sum(waits))
        patch.setattr("tests.attacks.bench.sources.time.sleep", waits.append)
        for _ in range(1000):
            sources.sent(1000)
    assert sum(waits) == pytest.approx(1.0, abs=0.06), "a million bytes take a second"
    assert sources.total == 1_000_000
