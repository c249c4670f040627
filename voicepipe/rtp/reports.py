"""What both ends report of one call's streams (RFC 3550, 6.4): when, and what is learnt from the peer's."""

import random
import time

from voicepipe.rtp import rtcp
from voicepipe.rtp.jitter import JitterBuffer

REPORT_S = 5.0
"""Between reports (RFC 3550, 6.2), at random from half to one and a half times that."""


class Reports:
    """Of one peer."""

    def __init__(self) -> None:
        self.rtt_s: float | None = None
        """There and back, by the peer's last report; None before there was one."""
        self.remote_lost = 0.0
        """Share of our packets that the peer missed lately, 0 to 1."""
        self._at = 0.0
        self.restart()

    def restart(self) -> None:
        """The peer's stream began anew."""
        self._last_sr, self._last_sr_at = 0, 0.0
        self._reported = 0, 0
        """Packets expected and received by the last report."""

    def due(self, now: float) -> bool:
        """Whether one is to be sent now; asked every 20 ms."""
        if now < self._at:
            return False
        first = not self._at
        self._at = now + REPORT_S * (0.5 + random.random())
        return not first

    def of(self, remote: int, buffer: JitterBuffer, clock: int, now: float) -> rtcp.RtcpReport:
        """On the stream `remote`, in its RTP clock's Hz."""
        # What came late was not lost (RFC 3550, 6.4.1): it only was of no use.
        expected, received = buffer.expected, buffer.counts.received
        due, lost = expected - self._reported[0], expected - received - (self._reported[0] - self._reported[1])
        self._reported = expected, received
        fraction = lost / due if lost > 0 and due > 0 else 0.0
        since = now - self._last_sr_at if self._last_sr else 0.0
        jitter = int(buffer.jitter * clock)
        return rtcp.RtcpReport(remote, fraction, expected - received, buffer.highest_seq, jitter, self._last_sr, since)

    def heard(self, report: rtcp.Rtcp, arrived: float, *, ours: int, remote: int | None) -> None:
        """The peer's, on our stream `ours`."""
        if report.sender and report.ssrc == remote:
            self._last_sr, self._last_sr_at = rtcp.middle(report.sender.ntp), arrived
        for block in report.reports:
            if block.ssrc == ours:
                self.remote_lost = block.fraction_lost
                if block.last_sr:
                    round_trip = (rtcp.middle(rtcp.ntp(time.time())) - block.last_sr) % 2**32 / 65536
                    self.rtt_s = max(0.0, round_trip - block.since_last_sr)
