"""A PoP that is well."""

from voicepipe.health import Health

HEALTHY = Health(
    status="ok", calls=1, predicted_ms=160, decoders=0, tasks=9, threads=4, codecs=0, fds=20, rss_kb=100_000,
    heap_kb=50_000, blocks=400_000, cpu_s=1.0, loop_lag_p99_ms=1.26,
)  # fmt: skip
