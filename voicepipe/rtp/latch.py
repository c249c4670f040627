"""The source from which a phone call's media are accepted, and the address for ours (symmetric RTP, "comedia"). Pure.

Behind a NAT a phone knows neither its address nor its port, so its SDP is wrong and the first packets tell. Taken at
their word, anybody's packets would: so a source must have the address of the SDP or that of the signalling, the first
one is locked, and another one takes its place only if it carries the stream on, or is the very one that the SDP names.
"""

from enum import IntEnum

from voicepipe.rtp.packet import newer_by

Address = tuple[str, int]
"""IPv4 address and port."""

LOOPBACK = "127.0.0.1"
"""The loopback network: no other machine has sent what comes from there."""
CONTINUES = 500
"""A sequence number that is ahead by at most so many packets, 10 s, continues a stream."""
STAYS = 50
"""Packets, 1 s, from the old source after a new description: then it does not change any more."""


class _Lock(IntEnum):
    """How sure a source is; a surer one replaces one that is less sure."""

    OLD = 0
    """The source by the description before."""
    LIKELY = 1
    """An acceptable address with another port than the SDP's: a NAT's."""
    SAID = 2
    """The SDP's address and port."""


class Latch:
    """Decides from which source a phone call's media are accepted, and where ours are sent (symmetric RTP,
    "comedia"). `said`: the address in the peer's SDP; `signalled`: the IP address that its signalling came from;
    `here`: that is one of this machine's, all of which count as one (a softphone gives its network's address and
    sends from 127.0.0.1)."""

    def __init__(self, said: Address, signalled: str, *, here: bool = False) -> None:
        self.target = said
        """The address to which our media are sent."""
        self.ssrc: int | None = None
        """SSRC of the latest stream."""
        self._source: Address | None = None
        self._lock = _Lock.OLD
        self._seq = self._heard = 0
        self._said, self._signalled, self._here = said, signalled, here

    def again(self, said: Address, signalled: str, *, here: bool = False, resumed: bool = False) -> None:
        """A new description: another source may replace the present one. Not so with one that changes nothing, such as
        a session's refresh, unless the call was `resumed` from a hold, in which a NAT may have forgotten the phone.
        c=0.0.0.0 (hold) gives no address, and changes nothing."""
        unchanged = (said, signalled) == (self._said, self._signalled)
        if said[0] == "0.0.0.0" or (unchanged and not resumed):
            return
        if not unchanged:
            self.target = said
        self._said, self._signalled, self._here = said, signalled, here
        self._lock, self._heard = _Lock.OLD, 0
        if self._source and not self.acceptable(self._source):
            self._source = None

    def acceptable(self, source: Address) -> bool:
        """Whether a datagram from there can be the peer's at all; a cheap test before all others."""
        return source[0] in (self._said[0], self._signalled) or self._here and source[0] == LOOPBACK

    def takes(self, source: Address, ssrc: int, seq: int) -> bool:
        """Whether an RTP packet, authentic where there is SRTP, is the peer's. If so, its source may become the one
        that is used."""
        if source != self._source and not self._moves_to(source, ssrc, seq):
            return False
        self.ssrc, self._seq = ssrc, seq
        if self._lock is _Lock.OLD:
            self._heard += 1
            if self._heard == STAYS:
                self._lock_on(source)
        return True

    def _moves_to(self, source: Address, ssrc: int, seq: int) -> bool:
        if not self.acceptable(source):
            return False
        carries_on = ssrc == self.ssrc and 0 < newer_by(seq, self._seq, 16) <= CONTINUES
        rank = _Lock.SAID if source == self._said else _Lock.LIKELY
        if self._source is not None and rank <= self._lock and not carries_on:
            return False
        self._lock_on(source)
        return True

    def _lock_on(self, source: Address) -> None:
        self._source = self.target = source
        self._lock = _Lock.SAID if source == self._said else _Lock.LIKELY
