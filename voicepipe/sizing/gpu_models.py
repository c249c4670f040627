"""GPUs and what connects them, by their data sheets."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from voicepipe.base.errors import ConfigError

GIB = 2**30


@dataclass(frozen=True, slots=True)
class GpuModel:
    """A GPU by its data sheet."""

    name: str
    memory_gib: float
    """Memory as the driver reports it."""
    bandwidth_gbs: float
    """Bandwidth of its memory, GB/s."""
    bf16_tflops: float
    """Dense bf16, accumulated in float32."""
    fp8_tflops: float = 0.0
    """Dense fp8, accumulated in float32; 0: it computes in no fp8, so that such weights only save memory."""
    nvlink_gbs: float = 0.0
    """NVLink, both ways together, GB/s; 0: none."""


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
    """The interconnect of the GPUs of a group."""

    name: str
    latency_us: float
    """Latency of one all-reduce of a few kilobytes among two GPUs; half as much again for each doubling of them."""
    gbs: float
    """Rate that an all-reduce reaches, one way, GB/s."""


LINKS = {
    "nvlink": Link("NVLink", 9, 300),
    "pcie": Link("PCIe", 25, 20),
    "ethernet": Link("Ethernet", 120, 10),
}
"""NVLink: vLLM's one-shot all-reduce. PCIe: generation 4 with peer access. Ethernet: 100 Gbit/s, NCCL over sockets
(RDMA has a quarter of the latency). Orders of magnitude: NVIDIA's nccl-tests measure one's own."""


ALIASES = {"a100": "a100-80", "h100-80": "h100"} | {name.removeprefix("rtx-"): name for name in GPUS}
FILLING = re.compile(r"nvidia|geforce|sxm\d?|hbm\d")
"""Parts of nvidia-smi's names that all of these GPUs may have."""
MOST = 64
"""GPUs of one host."""


def parsed(text: str) -> tuple[GpuModel, int]:
    """ "H100:2", "2 x H100" or "NVIDIA H100 80GB HBM3" -> the GPU and how many of them. Raises ConfigError."""
    readings = [(_plain(name), count) for name, count in _readings(text)]
    for name, count in readings:
        if gpu := GPUS.get(ALIASES.get(name, name)):
            if count.isdecimal() and 1 <= int(count) <= MOST:
                return gpu, int(count)
            raise ConfigError(
                f"--gpus: {text}: give how many there are in one host as a number from 1 to {MOST}, such as "
                f"{gpu.name}:2"
            )
    # Like it, of the same series if there are any.
    series = {name: [key for key in GPUS if key.startswith(name.split("-")[0])] or GPUS for name, _ in readings}
    near = [key for name, keys in series.items() for key in get_close_matches(name, keys, n=1)]
    raise ConfigError(
        f"--gpus: {text}: no data sheet of it; {f'did you mean {GPUS[near[0]].name}? ' if near else ''}known: "
        f"{', '.join(gpu.name for gpu in GPUS.values())} (two: H100:2)"
    )


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Name and number, as the text may mean them. A name may have an x in it: RTX4090 is not 4090 of a kind."""
    yield text, "1"
    for way in (r"(?P<name>.*?):(?P<count>.*)", r"(?P<count>\d+) *x *(?P<name>.*)", r"(?P<name>.*) *x *(?P<count>\d+)"):
        if found := re.fullmatch(way, text.strip(), re.IGNORECASE):
            yield found["name"], found["count"]


def _plain(name: str) -> str:
    """A name in the form of the keys of `GPUS`."""
    spaced = re.sub(r"\brtx(?=\d)", "rtx-", re.sub(r"[\s_-]+", "-", name.lower()))
    parts = (part for part in spaced.split("-") if part and not FILLING.fullmatch(part))
    return "-".join(re.sub(r"(?<=\d)gb$", "", part) for part in parts)


def link(name: str, gpu: GpuModel) -> Link:
    """The interconnect; by default NVLink where the GPU has it, else PCIe."""
    return LINKS[name or ("nvlink" if gpu.nvlink_gbs else "pcie")]
