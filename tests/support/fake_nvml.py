"""NVIDIA's driver as `pynvml` shows it, without a GPU."""

import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

GIB = 2**30


class NVMLError(Exception):
    pass


@dataclass
class FakeGpu:
    name: str = "NVIDIA H100 80GB HBM3"
    total: int = 80 * GIB
    free: int = 79 * GIB
    uuid: str = "GPU-0"
    mig: bool | None = False
    """None: it knows no MIG."""
    persistence: int = 1
    mode: int = 0
    busy: int = 0
    celsius: int = 40
    milliwatts: int = 120_000
    throttled: int = 0
    mhz: int = 1980
    ecc: tuple[int, int] | None = (0, 0)
    """Corrected, uncorrected; None: it has no such memory."""


@dataclass
class FakeDriver:
    gpus: list[FakeGpu]
    nvlink: bool = True
    peer: bool = True
    near: int = 50
    driver: str = "580.65.06"
    cuda: int = 13_000
    fails: bool = False
    """There is no driver."""
    shut: int = field(default=0, init=False)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> "FakeDriver":
        monkeypatch.setitem(sys.modules, "pynvml", self.module())
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        return self

    def module(self) -> ModuleType:
        nvml: Any = ModuleType("pynvml")
        nvml.NVMLError = NVMLError
        nvml.NVML_COMPUTEMODE_EXCLUSIVE_PROCESS = 3
        nvml.NVML_P2P_STATUS_OK, nvml.NVML_P2P_CAPS_INDEX_WRITE, nvml.NVML_P2P_CAPS_INDEX_NVLINK = 0, 1, 2
        nvml.NVML_TOPOLOGY_HOSTBRIDGE, nvml.NVML_TOPOLOGY_SYSTEM = 30, 50
        nvml.nvmlInit, nvml.nvmlShutdown = self._init, self._shutdown
        nvml.NVML_CLOCK_SM = 1
        nvml.nvmlDeviceGetClockInfo = lambda gpu, kind: gpu.mhz
        nvml.nvmlSystemGetDriverVersion = lambda: self.driver
        nvml.nvmlSystemGetCudaDriverVersion_v2 = lambda: self.cuda
        nvml.nvmlDeviceGetCount = lambda: len(self.gpus)
        nvml.nvmlDeviceGetHandleByIndex = lambda index: self.gpus[index]
        nvml.nvmlDeviceGetHandleByUUID = lambda uuid: next(gpu for gpu in self.gpus if gpu.uuid == uuid)
        nvml.nvmlDeviceGetUUID = lambda gpu: gpu.uuid
        nvml.nvmlDeviceGetName = lambda gpu: gpu.name
        nvml.nvmlDeviceGetMemoryInfo = lambda gpu: SimpleNamespace(
            total=gpu.total, free=gpu.free, used=gpu.total - gpu.free
        )
        nvml.NVML_TEMPERATURE_GPU, nvml.NVML_VOLATILE_ECC = 0, 0
        nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED = 0, 1
        nvml.nvmlDeviceGetUtilizationRates = lambda gpu: SimpleNamespace(gpu=gpu.busy, memory=0)
        nvml.nvmlDeviceGetTemperature = lambda gpu, sensor: gpu.celsius
        nvml.nvmlDeviceGetPowerUsage = lambda gpu: gpu.milliwatts
        nvml.nvmlDeviceGetEnforcedPowerLimit = lambda gpu: 700_000
        nvml.nvmlDeviceGetCurrentClocksThrottleReasons = lambda gpu: gpu.throttled
        nvml.nvmlDeviceGetTotalEccErrors = self._ecc
        nvml.nvmlDeviceGetMigMode = self._mig
        nvml.nvmlDeviceGetPersistenceMode = lambda gpu: gpu.persistence
        nvml.nvmlDeviceGetComputeMode = lambda gpu: gpu.mode
        nvml.nvmlDeviceGetTopologyCommonAncestor = lambda first, second: self.near
        nvml.nvmlDeviceGetP2PStatus = lambda first, second, index: (
            0 if (self.nvlink if index == 2 else self.peer) else 5
        )
        return nvml  # type: ignore[no-any-return]

    def _init(self) -> None:
        if self.fails:
            raise NVMLError("Driver Not Loaded")

    def _shutdown(self) -> None:
        self.shut += 1

    def _ecc(self, gpu: FakeGpu, kind: int, since: int) -> int:
        if gpu.ecc is None:
            raise NVMLError("Not Supported")
        return gpu.ecc[kind]

    def _mig(self, gpu: FakeGpu) -> list[int]:
        if gpu.mig is None:
            raise NVMLError("Not Supported")
        return [int(gpu.mig), int(gpu.mig)]
