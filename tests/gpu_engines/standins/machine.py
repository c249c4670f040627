"""What a figure means nothing without: versions, driver, clocks, memory."""

import os
import platform
import subprocess
from typing import Any

import torch
import transformers

from tests.gpu_engines.standins.device import Device
from voicepipe.base.environment import mps_runs

ASKED = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.draw,power.limit,temperature.gpu"


def versions(device: Device) -> dict[str, Any]:
    mps = {name: value for name, value in os.environ.items() if name.startswith("CUDA_MPS_")} | {"daemon": "runs"}
    return {
        "device": device.described,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "mps": mps if mps_runs() else {},
        "cudnn": torch.backends.cudnn.version() if device.cuda else None,
    }


def state(device: Device) -> dict[str, Any]:
    """As nvidia-smi tells it now, which is only read; and GiB: of torch in this process, of all processes together."""
    if not device.cuda:
        return {}
    command = ["nvidia-smi", f"--query-gpu={ASKED}", "--format=csv,noheader"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout.splitlines()[0]
        free, total = torch.cuda.mem_get_info()
    except (OSError, subprocess.SubprocessError, RuntimeError) as error:  # torch's, after an error on the device
        return {"error": str(error)[:200]}
    return dict(zip(ASKED.split(","), map(str.strip, said.split(",")), strict=False)) | {
        "torch_reserved_gib": round(torch.cuda.memory_reserved() / 2**30, 2),
        "device_used_gib": round((total - free) / 2**30, 2),
    }
