"""The health of a PoP, as /healthz and /readyz answer it."""

from typing import Literal

import msgspec

Status = Literal["ok", "starting", "draining", "engine_down", "full", "late"]
""" "ok" while calls are taken; "full": every slot is taken; "late": one more call would be answered over the budget."""


class Vitals(msgspec.Struct, frozen=True, kw_only=True):
    """The resources that a PoP's process uses. Descriptors and memory are at most a second old."""

    tasks: int
    threads: int
    codecs: int
    """Opus encoders and decoders."""
    fds: int
    rss_kb: int
    """Memory that the system counts, in KiB."""
    heap_kb: int
    """KiB of glibc's blocks in use."""
    blocks: int
    """Memory blocks that Python has allocated."""
    cpu_s: float
    """Processor seconds so far."""
    loop_lag_p99_ms: float


class Health(Vitals, frozen=True, kw_only=True, omit_defaults=True):
    """The health of a PoP: whether it takes calls, and the figures behind that."""

    status: Status
    warning: str = ""
    """Files cannot be used as they are now: of agents, of the certificate, of a configuration that was read again."""
    down: dict[str, int] = {}
    """Engines that do not work, and for how many seconds."""
    restarts: dict[str, int] = {}
    """Engines that broke and were started again, and how often."""
    calls: int
    predicted_ms: int
    """Turn latency, 95th percentile, that one more call would bring."""
    decoders: int
    """Decoders of recognisers that are in use by utterances now."""
