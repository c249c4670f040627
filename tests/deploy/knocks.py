"""`python -m tests.deploy.knocks FILE tcp/22 ...`, in a network namespace of its own: loads the firewall's FILE, and
says which packets of a stranger get past it.

The stranger is this process, at the other end of a TUN device. Nothing listens, so what gets in is answered by the
kernel: TCP by RST, UDP by "port unreachable". Packets are answered in their order, so what was not answered before the
ping at the end was dropped.
"""

import os
import select
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.fleet.namespaces import device

HOST, STRANGER = "11.0.0.1", "11.0.0.2"
ICMP, TCP, UDP = 1, 6, 17
ECHO, ECHO_REPLY, UNREACHABLE = 8, 0, 3
ANSWERED_S = 30


def checksum(data: bytes) -> int:
    """The Internet's (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def packet(protocol: int, payload: bytes, source: str = STRANGER) -> bytes:
    """An IPv4 packet to the host."""
    ends = bytes(map(int, (*source.split("."), *HOST.split("."))))
    head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0) + ends
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def knock(kind: str, port: int, source: str = STRANGER) -> bytes:
    """The first packet of a stranger to this port."""
    if kind == "udp":
        return packet(UDP, struct.pack("!HHHH", 40_000, port, 8, 0), source)  # 0: without a checksum
    ends = bytes(map(int, (*source.split("."), *HOST.split("."))))
    segment = struct.pack("!HHIIBBHHH", 40_000, port, 1, 0, 0x50, 0x02, 1024, 0, 0)
    total = checksum(ends + struct.pack("!HH", TCP, len(segment)) + segment)
    return packet(TCP, segment[:16] + struct.pack("!H", total) + segment[18:], source)


def answered(tun: int) -> Iterator[str]:
    """The ports that the host answers, until it answers the ping."""
    while select.select([tun], [], [], ANSWERED_S)[0]:
        got = os.read(tun, 2048)
        if got[0] >> 4 != 4:
            continue
        body = got[20:]
        if got[9] == TCP:
            yield f"tcp/{struct.unpack('!H', body[:2])[0]}"
        elif got[9] == ICMP and body[0] == UNREACHABLE:
            yield f"udp/{struct.unpack('!H', body[8 + 22 : 8 + 24])[0]}"
        elif got[9] == ICMP and body[0] == ECHO_REPLY:
            return
    raise AssertionError("the host does not answer a ping")


def main(rules: str, knocks: Sequence[str]) -> int:
    """`knocks`: as "tcp/22", or "tcp/22@192.0.2.7" from there."""
    tun = device(HOST)
    Path("/proc/sys/net/ipv4/icmp_ratelimit").write_text("0")
    subprocess.run(("ip", "route", "add", "default", "dev", "wan"), check=True)
    subprocess.run(("nft", "-f", rules), check=True)
    for word in knocks:
        kind, _, port = word.partition("/")
        port, _, source = port.partition("@")
        os.write(tun, knock(kind, int(port), source or STRANGER))
    echo = struct.pack("!BBHHH", ECHO, 0, 0, 1, 1)
    os.write(tun, packet(ICMP, echo[:2] + struct.pack("!H", checksum(echo)) + echo[4:]))
    print(*answered(tun))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
