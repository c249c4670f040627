"""GPUs by the names that people and nvidia-smi have for them."""

import pytest

from voicepipe.base.errors import ConfigError
from voicepipe.sizing.gpu_models import GPUS, LINKS, link, parsed


@pytest.mark.parametrize(
    ("text", "name", "count"),
    [
        ("H100", "h100", 1),
        ("l4", "l4", 1),
        ("h100:2", "h100", 2),
        ("2xH100", "h100", 2),
        ("2 x H100", "h100", 2),
        ("H100x2", "h100", 2),
        ("H100 x 16", "h100", 16),
        ("A100:8", "a100-80", 8),
        ("4090", "rtx-4090", 1),
        ("RTX4090", "rtx-4090", 1),
        ("RTX 4090", "rtx-4090", 1),
        ("RTX 4090:2", "rtx-4090", 2),
        ("2xRTX4090", "rtx-4090", 2),
        ("RTX4090x2", "rtx-4090", 2),
        ("rtx_5090", "rtx-5090", 1),
        (" L4 ", "l4", 1),
        ("NVIDIA H100 80GB HBM3", "h100", 1),
        ("4 x NVIDIA H100 80GB HBM3", "h100", 4),
        ("NVIDIA H100 PCIe", "h100-pcie", 1),
        ("NVIDIA H200", "h200", 1),
        ("NVIDIA B200", "b200", 1),
        ("NVIDIA L4", "l4", 1),
        ("NVIDIA L40S", "l40s", 1),
        ("NVIDIA A10", "a10", 1),
        ("NVIDIA GeForce RTX 4090", "rtx-4090", 1),
        ("NVIDIA GeForce RTX 5090", "rtx-5090", 1),
        ("NVIDIA A100-SXM4-80GB", "a100-80", 1),
        ("NVIDIA A100-SXM4-40GB", "a100-40", 1),
    ],
)
def test_a_name(text: str, name: str, count: int) -> None:
    assert parsed(text) == (GPUS[name], count)


def test_every_gpu_is_known_by_its_own_name() -> None:
    for gpu in GPUS.values():
        assert parsed(gpu.name) == (gpu, 1) and parsed(f"{gpu.name}:3") == parsed(f"3x{gpu.name}") == (gpu, 3)


@pytest.mark.parametrize("text", ["H100:0", "H100:x", "H100:", "H100:-1", "0xH100", "H100x0", "65 x H100"])
def test_a_number_that_is_none(text: str) -> None:
    with pytest.raises(ConfigError, match=f"--gpus: {text}: give how many .* as a number from 1 to 64, such as H100:2"):
        parsed(text)


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("H10O", "H100"),
        ("2xH101", "H100"),
        ("RTX 4091", "RTX-4090"),
        ("A10G", "A10"),
        ("L40", "L40S"),
        ("NVIDIA H100 NVL", "H100"),
        ("NVIDIA GeForce RTX 4090 D", "RTX-4090"),
        ("NVIDIA A100-PCIE-40GB", "A100-40"),
    ],
)
def test_a_near_miss(text: str, near: str) -> None:
    with pytest.raises(
        ConfigError, match=f"^--gpus: {text}: no data sheet of it; did you mean {near}\\? known: B200, "
    ):
        parsed(text)


@pytest.mark.parametrize("text", ["TPU", "", ":2", "x", "2x3xH100", "NVIDIA"])
def test_what_is_no_known_gpu(text: str) -> None:
    with pytest.raises(ConfigError, match=f"^--gpus: {text}: no data sheet of it; .*known: B200, .*\\(two: H100:2\\)$"):
        parsed(text)


def test_what_connects_them() -> None:
    assert link("", GPUS["h100"]) is LINKS["nvlink"] and link("", GPUS["l4"]) is LINKS["pcie"]
