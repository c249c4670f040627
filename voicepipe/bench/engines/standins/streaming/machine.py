"""What a figure means nothing without: versions, driver, clocks, memory."""

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

import torch
import transformers

from voicepipe.bench.engines.standins.device import Device

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
    folder = Path(os.environ.get("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"))
    if not (folder / "control").exists():
        return {}
    return {name: value for name, value in os.environ.items() if name.startswith("CUDA_MPS_")} | {"daemon": "runs"}


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
