"""This machine's GPUs, what connects them, and what would slow engines on them down."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from voicepipe.base.environment import library_folders
from voicepipe.base.errors import EngineMissing
from voicepipe.config import Config
from voicepipe.doctor import node
from voicepipe.doctor.finding import Finding
from voicepipe.engines import gpu_placement
from voicepipe.engines.hosting import gpus
from voicepipe.engines.hosting.gpus import Machine
from voicepipe.sizing.gpu_models import GIB

SHM = 1 * GIB
"""Bytes of shared memory, through which the processes of a tensor-parallel group communicate."""
CUDA = (13, 0)
"""The CUDA version that vLLM and torch are built for."""
DRIVER = "580"
"""The oldest driver that supports it."""
OF_CUDA = ("libcudart.so*", "libcublas*.so*", "libcudnn*.so*", "libnccl.so*", "libnvrtc.so*")
"""Libraries that Python's packages bring along, each in the version that it needs."""


def findings(config: Config | None) -> Iterator[Finding]:
    """Findings about this machine; `config` gives the number of GPUs that share a model."""
    try:
        machine = gpus.read()
    except EngineMissing as error:
        said, _, way_out = str(error).rpartition(": ")
        yield Finding("GPU", "note", said, way_out)
        return
    together = gpu_placement.group(config.vllm) if config and config.engines.llm == "vllm" else 0
    if machine.gpus:
        yield from judged(machine, together, node.shm_bytes())
        yield from _mixed(library_folders())
    else:
        yield _none(config)


def _none(config: Config | None) -> Finding:
    """The finding where there is no GPU."""
    if config is None or not gpu_placement.uses_gpus(config):
        return Finding("GPU", "ok", "none; the chosen engines need none")
    chosen: list[str] = [name for name in (config.engines.asr, config.engines.tts) if name in gpu_placement.PLACED]
    needing = [name for name in chosen if gpu_placement.device_index(getattr(config, name).device) is not None]
    needing += ["vllm"] if config.engines.llm == "vllm" else []
    if needing:
        return Finding(
            "GPU", "broken", f"none that a driver shows, and the configuration puts {' and '.join(needing)} on one",
            "run it where there is one with its driver (nvidia-smi lists it), or choose engines that need none",
        )  # fmt: skip
    return Finding("GPU", "note", f"none: {' and '.join(chosen)} will run on the CPU", "see pops/README.md, Size")


def judged(machine: Machine, together: int, shm: int) -> Iterator[Finding]:
    """Findings about GPUs. `together`: the number that share a model, the first ones; 0: unknown. `shm`: bytes of
    /dev/shm. Pure."""
    for (name, total), count in Counter((gpu.name, gpu.total) for gpu in machine.gpus).items():
        free = min(gpu.free for gpu in machine.gpus if gpu.name == name)
        yield Finding("GPU", "ok", f"{count} x {name}, {total / GIB:.1f} GiB, {free / GIB:.1f} free")
    yield _driver(machine)
    if machine.pairs:
        kinds = Counter(f"{pair.link}{', peer access' if pair.peer else ''}" for pair in machine.pairs)
        pairs = "; ".join(f"{kind} ({count} pairs)" if count > 1 else kind for kind, count in kinds.items())
        yield Finding("between GPUs", "ok", pairs)
    yield from _group(machine, together or len(machine.gpus), shm)
    yield from _settings(machine)


def _driver(machine: Machine) -> Finding:
    detail = f"{machine.driver}, CUDA {machine.cuda}"
    if tuple(int(part) for part in machine.cuda.split(".")) >= CUDA:
        return Finding("driver", "ok", detail)
    return Finding(
        "driver", "note", f"{detail}: today's vLLM and torch are built for CUDA {CUDA[0]}.{CUDA[1]}",
        f"install NVIDIA's driver {DRIVER} or newer, or a build of theirs for CUDA {machine.cuda}",
    )  # fmt: skip


def _group(machine: Machine, together: int, shm: int) -> Iterator[Finding]:
    """Problems of GPUs that share a model."""
    if together < 2:
        return
    members = range(together)
    slow = [pair for pair in machine.pairs if pair.first in members and pair.second in members and not pair.peer]
    if slow:
        pair = slow[0]
        yield Finding(
            "tensor parallel", "note",
            f"GPU {pair.first} and {pair.second} are connected by {pair.link} without peer access: each layer of a "
            "model that they share goes through the host's memory",
            "use one card, or cards with NVLink (voicepipe plan --interconnect pcie says what it costs); where the "
            "hardware could do it, IOMMU or ACS in the BIOS forbids it",
        )  # fmt: skip
    if any(gpu.mig for gpu in machine.gpus[:together]):
        yield Finding(
            "tensor parallel", "note", "MIG is on: its instances cannot share a model",
            "nvidia-smi -mig 0, or keep each model on one instance",
        )  # fmt: skip
    if shm < SHM:
        yield Finding(
            "/dev/shm", "note", f"{shm / 2**20:.0f} MiB: processes that share a model need {SHM // GIB} GiB",
            "docker run --shm-size=2g, or --ipc=host",
        )  # fmt: skip


def _mixed(folders: Sequence[Path]) -> Iterator[Finding]:
    """Libraries that the loader finds before those of the wheels. Reads the folders."""
    for folder in folders:
        if names := sorted({path.name for pattern in OF_CUDA for path in folder.glob(pattern)}):
            yield Finding(
                "CUDA's libraries", "note",
                f"LD_LIBRARY_PATH has {folder} ({', '.join(names)}): it goes before what Python's packages bring "
                "along, and two versions of CUDA may mix",
                "start voicepipe without it, if an engine fails to load or crashes",
            )  # fmt: skip


def _settings(machine: Machine) -> Iterator[Finding]:
    if idle := [gpu.index for gpu in machine.gpus if not gpu.persistence]:
        yield Finding(
            "persistence", "note", f"off on GPU {', '.join(map(str, idle))}: the driver is loaded anew for each start",
            "nvidia-smi -pm 1",
        )  # fmt: skip
    if alone := [gpu.index for gpu in machine.gpus if gpu.exclusive and not machine.mps]:
        yield Finding(
            "compute mode", "note",
            f"GPU {', '.join(map(str, alone))} takes one process alone; a language model's is another than the PoP's",
            "nvidia-smi -c DEFAULT, or CUDA MPS",
        )  # fmt: skip
    if machine.mps:
        yield Finding("CUDA MPS", "ok", "runs: processes on one GPU work at the same time")
    else:
        yield Finding("CUDA MPS", "ok", "does not run: processes on one GPU take turns (pops/gpu.md)")
