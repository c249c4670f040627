"""A caller whose firewall lets nothing through but a TURN server: a real coturn, with the credentials that we give."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiortc import RTCIceServer, RTCIceTransportPolicy

from tests.ingress.fake_pop import FakePop, serving
from tests.ingress.webrtc.peer import Peer, post, web, webrtc
from tests.support.waiting import until

SECRET = "hush"


@pytest.fixture
def coturn(tmp_path: Path) -> Iterator[int]:
    """The port of a TURN server on loopback that shares SECRET with us."""
    program = shutil.which("turnserver")
    if program is None:
        pytest.skip("coturn is not installed (Debian: apt install coturn)")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        program, "-n", "--listening-ip=127.0.0.1", "--relay-ip=127.0.0.1", f"--listening-port={port}",
        "--use-auth-secret", f"--static-auth-secret={SECRET}", "--realm=test", "--allow-loopback-peers", "--no-cli",
        "--no-tls", "--no-dtls", "--log-file=stdout", f"--pidfile={tmp_path / 'pid'}", f"--userdb={tmp_path / 'db'}",
    ]  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path)
    try:
        yield port
    finally:
        server.terminate()
        server.wait(10)


async def test_a_call_through_a_relay_alone(coturn: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURN_SECRET", SECRET)
    pop = FakePop(webrtc(turn_urls=(f"turn:127.0.0.1:{coturn}?transport=udp",), turn_secret_env="TURN_SECRET"))
    async with serving(pop) as address:
        async with web(address) as client:
            (given,) = (await client.get("/v1/realtime/ice-servers")).json()["ice_servers"]
        async with asyncio.timeout(60):
            peer = await relayed(RTCIceServer(**given))
        placed = await post(address, peer.connection.localDescription.sdp)
        assert placed.status_code == 201
        await peer.answered(placed.text)
        await peer.saw("session.created")
        peer.microphone.loud = True
        await peer.saw("input_audio_buffer.speech_started")
        peer.microphone.loud = False
        await peer.saw("response.done")
        await until(lambda: peer.loudest > 3000)
        await peer.close()


async def relayed(server: RTCIceServer) -> Peer:
    """A peer with an address at the TURN server, and no other; waits until the server is there."""
    while True:
        peer = Peer(iceServers=[server], iceTransportPolicy=RTCIceTransportPolicy.RELAY)
        await peer.offer()
        if " typ relay" in peer.connection.localDescription.sdp:
            assert " typ host" not in peer.connection.localDescription.sdp
            return peer
        await peer.close()
        await asyncio.sleep(0.1)
