"""What a server says of itself: /healthz, and its dashboard."""

import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

import msgspec

from latency_probes.realtime import trusted
from voicepipe.base.errors import ProbeError


def vitals(url: str) -> str:
    """One line on how the server is after a run, as far as it tells."""
    try:
        seen = figures(url)
    except ProbeError:
        return "the server shows no figures of its own"
    lag = seen.get("loop_lag_p99_ms", 0.0)
    return f"the server's event loop ran {lag:.1f} ms late (p99 of its last half minute)"


def figures(url: str) -> dict[str, float]:
    """The numbers of /healthz on the server behind `url` (ws or http). Blocks; raises ProbeError."""
    found = _got(url, "/healthz")
    return {key: float(value) for key, value in found.items() if isinstance(value, int | float)}


def latencies(url: str, key: str, seconds: float) -> list[float]:
    """Turn latencies, in ms, that the server's dashboard lists of its last `seconds`, 300 at most; `key` may see them.

    Blocks; raises ProbeError.
    """
    view = _got(url, "/v1/dashboard?minutes=5", key)
    turns = [turn for turn in view["turns"] if turn["at"] >= view["now"] - seconds]
    return [turn["latency_ms"] for turn in turns if turn["latency_ms"] is not None]


def slots(url: str, key: str) -> int:
    """Calls that the server takes at a time. Blocks; raises ProbeError."""
    return int(_got(url, "/v1/dashboard?minutes=5", key)["slots"])


def _got(url: str, path: str, key: str = "") -> dict[str, Any]:
    parts = urlsplit(url if "://" in url else f"ws://{url}")
    address = f"{parts.scheme.replace('ws', 'http')}://{parts.netloc}{path}"
    request = urllib.request.Request(address, headers={"Authorization": f"Bearer {key}"} if key else {})
    try:
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted())
        )
        with opener.open(request, timeout=5) as answer:
            return msgspec.json.decode(answer.read(), type=dict[str, Any])
    except (OSError, urllib.error.URLError, msgspec.DecodeError) as error:
        raise ProbeError(f"the server's own figures are needed, and {address} has none: {error}") from error
