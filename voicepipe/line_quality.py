"""How the network to a caller fares."""

import msgspec


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """Since the call began. None: the line does not know."""

    loss_percent: float | None = None
    """Of the caller's packets, those that did not come."""
    jitter_ms: float | None = None
    """Of their arrival."""
    rtt_ms: float | None = None
    """A round trip: by the caller's last report, or as the system has measured it for TCP."""


HIDDEN = Network()
"""By TCP, which sends again what is lost and tells nobody."""
