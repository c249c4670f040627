"""This machine's GPUs, what connects them, what would slow engines on them down, and whether the chosen engines could
start on them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from voicepipe.base.environment import library_folders, variable
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.doctor import node
from voicepipe.doctor.demo_needs import PARTS
from voicepipe.doctor.finding import Finding
from voicepipe.engines import loader, packages
from voicepipe.engines.asr import cublas
from voicepipe.engines.gpu_placement import PLACED, device_index, group, may_use_gpu, uses_gpus
from voicepipe.engines.hosting import gpus
from voicepipe.engines.hosting.gpus import Machine
from voicepipe.engines.weights import hub, needed_models
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
    together = group(config.vllm) if config and config.engines.llm == "vllm" else 0
    if machine.gpus:
        yield from judged(machine, together, node.shm_bytes())
        yield from _mixed(library_folders())
    else:
        yield _none(config)


def _none(config: Config | None) -> Finding:
    """The finding where there is no GPU."""
    if config is None or not uses_gpus(config):
        return Finding("GPU", "ok", "none; the chosen engines need none")
    chosen: list[str] = [name for name in (config.engines.asr, config.engines.tts) if name in PLACED]
    needing = [name for name in chosen if device_index(getattr(config, name).device) is not None]
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


def engines(config: Config, file: Path) -> Iterator[Finding]:
    """Whether the engines that may use a GPU could start here, without loading them: a row for each stage, for each
    model that is missing (known ones are `demo_needs.models`'), and for the GPUs that they use. `file`: the
    configuration's."""
    named = {stage: getattr(config.engines, part) for part, stage in PARTS.items()}
    chosen = {stage: engine for stage, engine in named.items() if may_use_gpu(config, engine)}
    for stage, engine in chosen.items():
        problems = list(packages.lacks(engine, config))
        yield from (_broken(stage, problem) for problem in problems)
        if not problems:
            yield Finding(stage, "ok", f"{engine} is chosen")
            if engine == "vllm" and config.vllm.by_ray:
                yield _ray()
    missing = [(model, problem) for model in needed_models.chosen(config) if (problem := model.problem())]
    for model, problem in missing:
        if not model.known:
            yield _broken("model", hub.copyable(problem, file))
    if missing or packages.problems(config) or not uses_gpus(config):
        return
    try:
        placed = loader.placed(config)
    except EngineError as error:
        yield _broken("placement", str(error))
        return
    yield Finding("placement", "ok", ", ".join(f"{engine} on {_where(placed, engine)}" for engine in chosen.values()))
    if loader.kokoro_lacks_cuda(config) and gpus.read().gpus:
        yield Finding("Kokoro", "note", "on the CPU: this onnxruntime has no CUDA", loader.ONNX_WITH_CUDA)
    hears_on_gpu = placed.engines.asr == "whisper" and device_index(placed.whisper.device) is not None
    if hears_on_gpu and not cublas.find_cublas():
        yield Finding(
            "cuBLAS", "broken", f"whisper is put on {placed.whisper.device} and finds no {cublas.CUBLAS}",
            f"pip install {cublas.CUBLAS_PACKAGE}",
        )  # fmt: skip


def _ray() -> Finding:
    """The Ray cluster that vLLM will find from here: by its address, else by what `ray start` leaves behind."""
    if address := variable("RAY_ADDRESS"):
        return Finding("Ray", "ok", f"its cluster is at {address} (RAY_ADDRESS)")
    found = Path(variable("RAY_TMPDIR") or "/tmp") / "ray" / "ray_current_cluster"
    if found.exists():
        return Finding("Ray", "ok", f"its cluster is the one that {found} names")
    return Finding(
        "Ray", "note", "no cluster address: vLLM would begin a cluster of this machine alone",
        "ray start --address=HEAD:6379 here, and RAY_ADDRESS=HEAD:6379 for the PoP, see pops/gpu.md",
    )  # fmt: skip


def _where(placed: Config, engine: str) -> str:
    if engine != "vllm":
        return str(getattr(placed, engine).device)
    count = group(placed.vllm)
    here = {0: "the machines that its executor finds", 1: "cuda:0"}.get(count, f"its first {count} GPUs")
    more = placed.vllm.hosts - 1
    return f"{here}, and {count} of each of {more} more hosts" if more and count else here


def _broken(what: str, problem: str) -> Finding:
    said, _, way_out = problem.partition("; ")
    return Finding(what, "broken", said, way_out)
