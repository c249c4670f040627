"""The turn latency that engines' time makes, and how load lengthens that time. Pure."""

NOMINAL_MS = 160.0
"""Turn latency when the engines are fast enough: the silence that a complete sentence requires, and passing it on."""
BEFORE_COMPUTE_MS = 80.0
"""From the caller's last voiced sample to *prepare*, with the words of that moment."""
SLOWING = 0.25
"""At full load engines take a quarter longer than when idle, growing with the square of the load."""


def slowing(load: float) -> float:
    """The factor, of 1 or more, by which engines take longer at `load` (calls per slot) than when idle."""
    return 1 + SLOWING * load * load


def latency_ms(compute_ms: float) -> float:
    """The turn latency for so much compute: the wait for a turn's end hides most of it."""
    return max(NOMINAL_MS, BEFORE_COMPUTE_MS + compute_ms)


def with_more(predicted_ms: float, load: float, more: float) -> float:
    """A latency in ms that was predicted for `load`, corrected for a load that is higher by `more`."""
    compute_ms = max(0.0, predicted_ms - BEFORE_COMPUTE_MS)
    return max(predicted_ms, latency_ms(compute_ms * slowing(load + more) / slowing(load)))
