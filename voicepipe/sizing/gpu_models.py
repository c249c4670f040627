"""GPUs and what connects them, by their data sheets."""

from dataclasses import dataclass

from voicepipe.errors import ConfigError

GIB = 2**30


@dataclass(frozen=True, slots=True)
class GpuModel:
    name: str
    memory_gib: float
    """As the driver reports it."""
    bandwidth_gbs: float
    """Of its memory, GB/s."""
    bf16_tflops: float
    """Dense, accumulated in float32."""
    fp8_tflops: float = 0.0
    """Likewise; 0: it computes in no fp8, so that such weights only save memory."""
    nvlink_gbs: float = 0.0
    """Both ways together, GB/s; 0: none."""


GPUS = {
    gpu.name.lower(): gpu
    for gpu in (
        GpuModel("B200", 179.1, 8000, 2250, 4500, 1800),
        GpuModel("H200", 140.4, 4800, 989, 1979, 900),
        GpuModel("H100", 79.6, 3350, 989, 1979, 900),
        GpuModel("H100-PCIe", 79.6, 2000, 756, 1513),
        GpuModel("A100-80", 80.0, 2039, 312, 0, 600),
        GpuModel("A100-40", 40.0, 1555, 312, 0, 600),
        GpuModel("L40S", 45.0, 864, 362, 733),
        GpuModel("L4", 22.5, 300, 121, 242),
        GpuModel("A10", 22.5, 600, 125),
        GpuModel("RTX-5090", 31.8, 1792, 209, 419),
        GpuModel("RTX-4090", 24.0, 1008, 165, 330),
    )
}


@dataclass(frozen=True, slots=True)
class Link:
    """What connects the GPUs of a group."""

    name: str
    latency_us: float
    """Of one all-reduce of a few kilobytes among two GPUs; half as much again for each doubling of them."""
    gbs: float
    """That an all-reduce reaches, one way, GB/s."""


LINKS = {
    "nvlink": Link("NVLink", 9, 300),
    "pcie": Link("PCIe", 25, 20),
    "ethernet": Link("Ethernet", 120, 10),
}
"""NVLink: vLLM's one-shot all-reduce. PCIe: generation 4 with peer access. Ethernet: 100 Gbit/s, NCCL over sockets
(RDMA has a quarter of the latency). Orders of magnitude: NVIDIA's nccl-tests measure one's own."""


def gpus(text: str) -> tuple[GpuModel, int]:
    """ "H100:2" -> the GPU and how many of them. Raises ConfigError."""
    name, _, count = text.partition(":")
    name = name.lower().replace(" ", "-").replace("_", "-")
    gpu = GPUS.get(name) or GPUS.get(f"rtx-{name}") or GPUS.get({"a100": "a100-80"}.get(name, ""))
    if gpu is None:
        raise ConfigError(
            f"--gpus: {text}: no data sheet of it; known: {', '.join(gpu.name for gpu in GPUS.values())} (two: H100:2)"
        )
    if not (count or "1").isdecimal() or not 1 <= int(count or 1) <= 64:
        raise ConfigError(f"--gpus: {text}: give how many there are in one host as a number, such as {gpu.name}:2")
    return gpu, int(count or 1)


def link(name: str, gpu: GpuModel) -> Link:
    """The interconnect; by default NVLink where the GPU has it, else PCIe."""
    return LINKS[name or ("nvlink" if gpu.nvlink_gbs else "pcie")]
