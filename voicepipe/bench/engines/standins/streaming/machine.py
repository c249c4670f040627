"""What a figure means nothing without: versions, driver, clocks, memory."""

import platform
import subprocess
from typing import Any

import torch
import transformers

from voicepipe.bench.engines.standins.device import Device
from voicepipe.environment import mps_runs, mps_settings

ASKED = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu"


def versions(device: Device) -> dict[str, Any]:
    return {
        "device": device.described,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "mps": mps(),
        "cudnn": torch.backends.cudnn.version() if device.cuda else None,
    }


def mps() -> dict[str, str]:
    """CUDA MPS's settings; empty where its control daemon does not run."""
    return mps_settings() | {"daemon": "runs"} if mps_runs() else {}


def state(device: Device) -> dict[str, str]:
    """As nvidia-smi tells it now; only read."""
    if not device.cuda:
        return {}
    try:
        told = subprocess.run(
            ["nvidia-smi", f"--query-gpu={ASKED}", "--format=csv,noheader"],
            capture_output=True, text=True, timeout=5, check=True,
        ).stdout  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return {"error": str(error)[:200]}
    return dict(zip(ASKED.split(","), (value.strip() for value in told.splitlines()[0].split(",")), strict=False))


def memory(device: Device) -> dict[str, float]:
    """GiB: what torch holds in this process, and what all processes hold on the device."""
    if not device.cuda:
        return {}
    try:
        free, total = torch.cuda.mem_get_info()
    except RuntimeError:  # as of everything after an error on the device
        return {}
    return {
        "torch_reserved_gib": round(torch.cuda.memory_reserved() / 2**30, 2),
        "device_used_gib": round((total - free) / 2**30, 2),
    }
