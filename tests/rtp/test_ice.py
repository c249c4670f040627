"""A PoP's memory does not grow by the addresses of its callers."""

import subprocess
import sys

REMEMBERED = """
import gc, socket, uvloop
from collections import OrderedDict
from tests.support.sinks import NoSrtp
from voicepipe.rtp.ice import IceConnection, UdpNetwork

def remembered():
    caches = [found for found in gc.get_objects() if type(found).__name__ == "LruCache"]
    return sum(len(part) for cache in caches for part in gc.get_referents(cache) if isinstance(part, OrderedDict))

async def main():
    ice = IceConnection(UdpNetwork(), NoSrtp())
    await ice.gather_candidates()
    [protocol] = ice._protocols
    before = remembered()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        for port in range(20_000, 20_100):
            protocol.transport.sendto(b"x", ("127.0.0.1", port))
        protocol.transport.sendto(b"heard", peer.getsockname())
        assert peer.recv(10) == b"heard"
    print(remembered() - before)
    await ice.close()

uvloop.run(main())
"""


def test_the_loop_remembers_no_address_that_media_went_to() -> None:
    """uvloop does so of what its own transports send: here it would be 101. In a process where nothing is frozen."""
    said = subprocess.run([sys.executable, "-c", REMEMBERED], capture_output=True, text=True, timeout=60)
    assert (said.stdout.strip(), said.stderr) == ("0", "")
