"""What the driver says of the GPUs; a driver of our own making."""

import sys
from pathlib import Path

import pytest

from tests.support.fake_nvml import GIB, FakeDriver, FakeGpu
from voicepipe.base.errors import EngineMissing
from voicepipe.engines.hosting import gpus
from voicepipe.engines.hosting.gpus import Machine, Pair, VisibleGpu

TWO = [
    FakeGpu(uuid="GPU-aa"),
    FakeGpu("NVIDIA L4", 24 * GIB, 20 * GIB, "GPU-bb", mig=None, persistence=0, mode=3),
]


def test_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver(TWO, nvlink=False, peer=False).install(monkeypatch)
    assert gpus.read() == Machine(
        gpus=(
            VisibleGpu(0, "NVIDIA H100 80GB HBM3", 80 * GIB, 79 * GIB),
            VisibleGpu(1, "NVIDIA L4", 24 * GIB, 20 * GIB, persistence=False, exclusive=True),
        ),
        pairs=(Pair(0, 1, "PCIe between sockets", peer=False),),
        driver="580.65.06",
        cuda="13.0",
    )
    assert driver.shut == 1


def test_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = FakeDriver([FakeGpu(mhz=345), FakeGpu(uuid="GPU-1")]).install(monkeypatch)
    assert gpus.clocks() == [345, 1980] and driver.shut == 1
    driver.fails = True
    assert gpus.clocks() == []


@pytest.mark.parametrize(
    ("nvlink", "near", "link"),
    [
        (True, 50, "NVLink"),
        (False, 10, "PCIe"),
        (False, 30, "PCIe by the host bridge"),
        (False, 40, "PCIe by the host bridge"),
    ],
)
def test_what_connects_two(monkeypatch: pytest.MonkeyPatch, nvlink: bool, near: int, link: str) -> None:
    FakeDriver(TWO, nvlink=nvlink, near=near).install(monkeypatch)
    assert gpus.read().pairs == (Pair(0, 1, link, peer=True),)


@pytest.mark.parametrize(
    ("visible", "names"),
    [
        ("1,0", ["NVIDIA L4", "NVIDIA H100 80GB HBM3"]),
        ("GPU-bb", ["NVIDIA L4"]),
        ("0,9,1", ["NVIDIA H100 80GB HBM3"]),
        ("", []),
    ],
)
def test_only_what_cuda_shows(monkeypatch: pytest.MonkeyPatch, visible: str, names: list[str]) -> None:
    FakeDriver(TWO).install(monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    seen = gpus.read().gpus
    assert [gpu.name for gpu in seen] == names
    assert [gpu.index for gpu in seen] == list(range(len(names)))


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([], fails=True).install(monkeypatch)
    assert gpus.read() == Machine()


def test_no_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setattr(gpus, "DRIVER", tmp_path / "version")
    assert gpus.read() == Machine()
    (tmp_path / "version").write_text("NVRM version")
    with pytest.raises(EngineMissing, match=r"pip install 'voicepipe-pop\[gpu\]'"):
        gpus.read()
