"""An authenticated peer that sends sixty times as much sound as there is, with holes, jumps and reports in between."""

from tests.attacks.rogue import calling, paced
from tests.attacks.target import Attack, Target
from voicepipe.rtp import rtcp
from voicepipe.rtp.packet import RtpPacket

EACH = 30
"""Packets every 10 ms."""
BLOCKS = 31
JUMP = 20_000
"""Of sequence numbers: over half of them our own libsrtp would take for a step back, and refuse to send."""


async def run(target: Target, seconds: float) -> None:
    """See `Attack.run`."""
    async with calling(target) as placed:
        if placed is None:
            return
        peer, number = placed.transport, 0
        report = rtcp.RtcpReport(1, 0.5, 9, 9, 9, 9, 0.1)
        async for tick in paced(seconds):
            for _ in range(EACH):
                number += 2 if number % 2000 == 5 else 1  # one that never comes, and masses behind it
                packet = RtpPacket(placed.payload_type, number & 0xFFFF, number * 960 & 0xFFFFFFFF, 7, b"\xf8\xff\xfe")
                peer.send_rtp(bytes(packet))
            peer.send_rtcp(rtcp.build(7, "x", None, (report,) * BLOCKS, goodbye=False))
            number += JUMP if tick % 100 == 99 else 0


ATTACK = Attack("rtp_flood", "3,000 RTP packets a second by an authenticated peer, with holes and jumps", run)
