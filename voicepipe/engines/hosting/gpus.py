"""The GPUs of this machine and what they do, as NVIDIA's driver tells it (NVML). Asking loads nothing onto them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

from voicepipe.base.environment import mps_runs, visible_gpus
from voicepipe.base.errors import EngineMissing
from voicepipe.engines.packages import extra

T = TypeVar("T")
DRIVER = Path("/proc/driver/nvidia/version")


@dataclass(frozen=True, slots=True)
class VisibleGpu:
    """A GPU that this process sees."""

    index: int
    """CUDA's, for this process: "cuda:1" is index 1."""
    name: str
    total: int
    """Bytes."""
    free: int
    """Bytes, at the time of asking."""
    mig: bool = False
    """It is divided into instances (MIG), or is one of those."""
    persistence: bool = True
    """The driver stays loaded while nobody uses the GPU."""
    exclusive: bool = False
    """Only one process may use it."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The connection between two GPUs."""

    first: int
    second: int
    link: str
    """ "NVLink"; or by PCIe: "PCIe", "PCIe by the host bridge", "PCIe between sockets"."""
    peer: bool
    """One GPU writes into the other's memory, without a detour through the host's."""


@dataclass(frozen=True, slots=True)
class Machine:
    """All GPUs that this process sees, and their driver; none where there is no driver."""

    gpus: tuple[VisibleGpu, ...] = ()
    pairs: tuple[Pair, ...] = ()
    driver: str = ""
    """Version."""
    cuda: str = ""
    """The newest CUDA version that the driver supports: "13.0"."""
    mps: bool = False
    """Processes share the GPUs by MPS, and do not take turns."""


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """The present load of one GPU. None: this kind of GPU does not say."""

    index: int
    """As `VisibleGpu.index`."""
    name: str
    uuid: str
    memory_used: int
    """Bytes."""
    memory_size: int
    """Bytes."""
    busy: float | None
    """Share of the last moments (up to a second) in which something ran on it, 0..1."""
    celsius: int | None
    watts: float | None
    limit_watts: float | None
    """At most so much, as it is set."""
    slowed: frozenset[str] | None
    """Why its clock is lower than it could be: keys of SLOWED."""
    ecc_corrected: int | None
    """Errors of its memory since the driver was loaded."""
    ecc_uncorrected: int | None


SLOWED = {"power_cap": 0x4, "hw_slowdown": 0x8, "sw_thermal": 0x20, "hw_thermal": 0x40, "hw_power_brake": 0x80}
"""What keeps a GPU's clock down, but for its own idleness and what somebody has set: NVML's bits."""


def read() -> Machine:
    """Ask the driver. Raises EngineMissing: there is one, and the package by which it is asked is not installed."""
    try:
        import pynvml
    except ImportError:
        if DRIVER.exists():
            raise EngineMissing(
                "this machine has an NVIDIA driver, and nvidia-ml-py, by which it is asked for its GPUs, is not "
                f"installed: pip install {extra('gpu')}"
            ) from None
        return Machine()
    try:
        with _library(pynvml):
            handles = list(_handles(pynvml))
            cuda = pynvml.nvmlSystemGetCudaDriverVersion_v2()
            return Machine(
                gpus=tuple(_gpu(pynvml, index, handle) for index, handle in enumerate(handles)),
                pairs=tuple(_pair(pynvml, handles, *pair) for pair in combinations(range(len(handles)), 2)),
                driver=pynvml.nvmlSystemGetDriverVersion(),
                cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
                mps=mps_runs(),
            )
    except pynvml.NVMLError:  # no driver, or one that does not answer
        return Machine()


def loads() -> list[GpuLoad]:
    """Ask the driver what the GPUs that this process sees do now: 1 ms each, or much more of a driver that is in
    trouble. None where no driver can be asked."""
    return _of_each(_load)


def clocks() -> list[int]:
    """MHz at which the GPUs that this process sees compute now. None where no driver can be asked."""
    return _of_each(lambda nvml, index, gpu: nvml.nvmlDeviceGetClockInfo(gpu, nvml.NVML_CLOCK_SM))


def _of_each(ask: Callable[[Any, int, Any], T]) -> list[T]:
    try:
        import pynvml
    except ImportError:
        return []
    try:
        with _library(pynvml):
            return [ask(pynvml, index, handle) for index, handle in enumerate(_handles(pynvml))]
    except pynvml.NVMLError:
        return []


@contextmanager
def _library(nvml: Any) -> Iterator[None]:
    nvml.nvmlInit()
    try:
        yield
    finally:
        nvml.nvmlShutdown()


def _handles(nvml: Any) -> Iterator[Any]:
    """The GPUs that CUDA shows to this process, in its order: by bus, unless CUDA_VISIBLE_DEVICES says otherwise.

    (CUDA by itself puts faster GPUs first; in a host whose GPUs differ set CUDA_DEVICE_ORDER=PCI_BUS_ID.)
    """
    handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
    visible = visible_gpus()
    if visible is None:
        yield from handles
        return
    uuids = [nvml.nvmlDeviceGetUUID(handle) for handle in handles]
    for name in (part.strip() for part in visible.split(",")):
        if name.isdecimal() and int(name) < len(handles):
            yield handles[int(name)]
        elif name.startswith("MIG-"):
            yield nvml.nvmlDeviceGetHandleByUUID(name)
        elif name and (found := [handle for handle, uuid in zip(handles, uuids, strict=True) if uuid.startswith(name)]):
            yield found[0]
        else:
            return  # as CUDA does: what follows a name that there is not is not seen, either


def _gpu(nvml: Any, index: int, handle: Any) -> VisibleGpu:
    memory = nvml.nvmlDeviceGetMemoryInfo(handle)
    return VisibleGpu(
        index=index,
        name=nvml.nvmlDeviceGetName(handle),
        total=memory.total,
        free=memory.free,
        mig=_asked(nvml, lambda: nvml.nvmlDeviceGetMigMode(handle)[0] == 1, False),
        persistence=_asked(nvml, lambda: nvml.nvmlDeviceGetPersistenceMode(handle) == 1, True),
        exclusive=_asked(
            nvml, lambda: nvml.nvmlDeviceGetComputeMode(handle) == nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS, False
        ),
    )


def _load(nvml: Any, index: int, gpu: Any) -> GpuLoad:
    def asked(question: Callable[[], T]) -> T | None:
        return _asked(nvml, question, None)

    memory = nvml.nvmlDeviceGetMemoryInfo(gpu)
    busy = asked(lambda: nvml.nvmlDeviceGetUtilizationRates(gpu).gpu)
    watts = asked(lambda: nvml.nvmlDeviceGetPowerUsage(gpu))
    limit = asked(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(gpu))
    slowed = asked(lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(gpu))
    corrected, uncorrected = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
    return GpuLoad(
        index=index,
        name=nvml.nvmlDeviceGetName(gpu),
        uuid=nvml.nvmlDeviceGetUUID(gpu),
        memory_used=memory.used,
        memory_size=memory.total,
        busy=None if busy is None else busy / 100,
        celsius=asked(lambda: nvml.nvmlDeviceGetTemperature(gpu, nvml.NVML_TEMPERATURE_GPU)),
        watts=None if watts is None else watts / 1000,
        limit_watts=None if limit is None else limit / 1000,
        slowed=None if slowed is None else frozenset(reason for reason, bit in SLOWED.items() if slowed & bit),
        ecc_corrected=asked(lambda: nvml.nvmlDeviceGetTotalEccErrors(gpu, corrected, nvml.NVML_VOLATILE_ECC)),
        ecc_uncorrected=asked(lambda: nvml.nvmlDeviceGetTotalEccErrors(gpu, uncorrected, nvml.NVML_VOLATILE_ECC)),
    )


def _pair(nvml: Any, handles: list[Any], first: int, second: int) -> Pair:
    def can(capability: int) -> bool:
        status = nvml.nvmlDeviceGetP2PStatus(handles[first], handles[second], capability)
        return bool(status == nvml.NVML_P2P_STATUS_OK)

    near = _asked(nvml, lambda: nvml.nvmlDeviceGetTopologyCommonAncestor(handles[first], handles[second]), None)
    if _asked(nvml, lambda: can(nvml.NVML_P2P_CAPS_INDEX_NVLINK), False):
        link = "NVLink"
    elif near is None or near < nvml.NVML_TOPOLOGY_HOSTBRIDGE:
        link = "PCIe"
    else:
        link = "PCIe between sockets" if near >= nvml.NVML_TOPOLOGY_SYSTEM else "PCIe by the host bridge"
    return Pair(first, second, link, _asked(nvml, lambda: can(nvml.NVML_P2P_CAPS_INDEX_WRITE), False))


def _asked(nvml: Any, question: Callable[[], T], otherwise: T) -> T:
    """The answer, or `otherwise` where this kind of GPU gives none."""
    try:
        return question()
    except nvml.NVMLError:
        return otherwise
