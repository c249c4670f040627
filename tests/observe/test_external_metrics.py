"""What vLLM counts, and what NVIDIA's driver says of the GPUs, in what a PoP tells Prometheus."""

import threading

import pytest
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Gauge, Histogram

from tests.observe.test_metrics import HEALTH, POP, read
from tests.support.fake_nvml import GIB, FakeDriver, FakeGpu
from voicepipe.engines.hosting.gpus import GpuLoad
from voicepipe.observe.external_metrics import GpuMetrics, VllmLoad, VllmMetrics, vllm_loads
from voicepipe.observe.metrics import Metrics

HERE = ("fra1", "eu-central")


def test_what_vllm_counts_is_passed_on_under_its_names_and_with_our_labels() -> None:
    theirs = CollectorRegistry()
    labels = {"model_name": "qwen3-8b", "engine": "0"}
    Gauge("vllm:kv_cache_usage_perc", "KV-cache usage.", labels, registry=theirs).labels(**labels).set(0.9)
    Counter("vllm:num_preemptions", "Preemptions.", labels, registry=theirs).labels(**labels).inc(3)
    Histogram("vllm:time_to_first_token_seconds", "To the first.", labels, registry=theirs).labels(**labels).observe(1)
    Counter("python_gc_collections", "Not theirs.", registry=theirs)
    families = {family.name: family for family in VllmMetrics(HERE, theirs).collect()}
    assert set(families) == {"vllm:kv_cache_usage_perc", "vllm:num_preemptions", "vllm:time_to_first_token_seconds"}
    [usage] = families["vllm:kv_cache_usage_perc"].samples
    assert usage.value == 0.9 and usage.labels == {"pop": "fra1", "region": "eu-central", **labels}
    [preempted] = families["vllm:num_preemptions"].samples
    assert (preempted.name, preempted.value) == ("vllm:num_preemptions_total", 3)
    assert families["vllm:num_preemptions"].type == "counter" and families["vllm:kv_cache_usage_perc"].type == "gauge"


def test_what_each_of_vllms_engines_has_to_do() -> None:
    theirs = CollectorRegistry()
    assert vllm_loads(theirs) == []
    figures = {"kv_cache_usage_perc": (0.7, 0.1), "num_requests_running": (3, 4), "num_requests_waiting": (0, 6)}
    for name, values in figures.items():
        gauge = Gauge(f"vllm:{name}", "One of theirs.", ("model_name", "engine"), registry=theirs)
        for engine, value in enumerate(values):
            gauge.labels("qwen3-8b", str(engine)).set(value)
    assert vllm_loads(theirs) == [VllmLoad(0.7, 3, 0), VllmLoad(0.1, 4, 6)]


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text;version=1.0.0"])
def test_their_names_keep_the_colon_in_every_format(accept: str) -> None:
    """Alerts and dashboards ask for them so."""
    gauge = Gauge("vllm:kv_cache_usage_perc", "KV-cache usage.")
    gauge.set(0.9)
    try:
        text, _ = Metrics(POP, lambda: HEALTH).read(accept)()
    finally:
        REGISTRY.unregister(gauge)
    assert b'\nvllm:kv_cache_usage_perc{pop="fra1",region="eu-central"} 0.9\n' in text


def test_without_vllm_and_without_a_driver_there_is_nothing_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([], fails=True).install(monkeypatch)
    assert not any(name.startswith(("vllm", "voicepipe_gpu")) for name in read(Metrics(POP, lambda: HEALTH)))


def test_gpus_as_the_driver_tells_it(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = FakeGpu(free=8 * GIB, busy=87, celsius=83, milliwatts=612_500, throttled=0x60, ecc=(4, 1))
    driver = FakeDriver([busy, FakeGpu("NVIDIA L4", 24 * GIB, 20 * GIB, "GPU-1", ecc=None)]).install(monkeypatch)
    seen = read(Metrics(POP, lambda: HEALTH))
    assert seen["voicepipe_gpu_info{gpu=0,name=NVIDIA H100 80GB HBM3,uuid=GPU-0}"] == 1
    assert seen["voicepipe_gpu_utilization_ratio{gpu=0}"] == 0.87
    assert seen["voicepipe_gpu_memory_used_bytes{gpu=0}"] == 72 * GIB
    assert seen["voicepipe_gpu_memory_size_bytes{gpu=1}"] == 24 * GIB
    assert seen["voicepipe_gpu_temperature_celsius{gpu=0}"] == 83
    assert seen["voicepipe_gpu_power_watts{gpu=0}"] == 612.5 and seen["voicepipe_gpu_power_limit_watts{gpu=0}"] == 700
    throttled = {reason: seen[f"voicepipe_gpu_throttled{{gpu=0,reason={reason}}}"] for reason in
                 ("power_cap", "hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake")}  # fmt: skip
    assert [reason for reason, now in throttled.items() if now] == ["sw_thermal", "hw_thermal"]
    assert seen["voicepipe_gpu_ecc_errors_total{gpu=0,kind=corrected}"] == 4
    assert seen["voicepipe_gpu_ecc_errors_total{gpu=0,kind=uncorrected}"] == 1
    assert "voicepipe_gpu_ecc_errors_total{gpu=1,kind=uncorrected}" not in seen, "it has no such memory"
    assert driver.shut == 1


def test_a_driver_that_hangs_takes_one_thread_and_no_more_scrapes() -> None:
    answers, asked = threading.Event(), threading.Event()

    def hang() -> list[GpuLoad]:
        asked.set()
        answers.wait(10)
        return []

    gpus = GpuMetrics(HERE, hang)
    first = threading.Thread(target=lambda: list(gpus.collect()))
    first.start()
    assert asked.wait(10)
    assert list(gpus.collect()) == []
    answers.set()
    first.join(10)
    asked.clear()
    list(gpus.collect())
    assert asked.is_set(), "it is asked again once it has answered"
