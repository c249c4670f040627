"""How good a caller sounds by what their network does to the sound: MOS by the E-model (ITU-T G.107). Pure."""

from voicepipe.line import Network

RATING = 93.2
"""Of a call without any loss or delay (G.107, default values)."""
ROBUST = 25.1
"""Against random loss: G.711 with concealment (G.113, appendix I). Opus bears more; so this errs on the low side."""
TIRING_MS = 177.3
"""One way. From here on people notice that they speak over one another (Cole and Rosenbluth's form of G.107)."""


def mos(network: Network) -> float | None:
    """From 1 (bad) to 4.4 (as good as a phone call gets); None: nothing is known of the network. An unknown round
    trip counts as none: the estimate is too good then."""
    if network.loss_percent is None:
        return None
    one_way_ms = (network.rtt_ms or 0.0) / 2 + (network.jitter_ms or 0.0)  # a jitter buffer waits for about as long
    delayed = 0.024 * one_way_ms + 0.11 * max(0.0, one_way_ms - TIRING_MS)
    lost = 95.0 * network.loss_percent / (network.loss_percent + ROBUST)
    rating = max(0.0, RATING - delayed - lost)
    return max(1.0, 1 + 0.035 * rating + rating * (rating - 60) * (100 - rating) * 7e-6)
