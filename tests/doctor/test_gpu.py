"""What doctor says of GPUs; a driver of our own making."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.fake_nvml import FakeDriver, FakeGpu
from voicepipe import config, doctor
from voicepipe.base.errors import EngineMissing
from voicepipe.doctor import demo_needs, gpu
from voicepipe.doctor.finding import Finding
from voicepipe.engines import packages
from voicepipe.engines.asr import cublas
from voicepipe.engines.hosting import gpus
from voicepipe.engines.hosting.gpus import Machine, Pair, VisibleGpu

GIB = 2**30
NVLINK = (Pair(0, 1, "NVLink", peer=True),)
PCIE = (Pair(0, 1, "PCIe between sockets", peer=False),)


def machine(
    *changes: dict[str, Any], pairs: tuple[Pair, ...] = NVLINK, cuda: str = "13.0", mps: bool = False
) -> Machine:
    cards = tuple(
        VisibleGpu(index, "H100", 80 * GIB, 79 * GIB, **change) for index, change in enumerate(changes or ({}, {}))
    )
    return Machine(cards, pairs, "580.65.06", cuda, mps)


def notes(seen: Machine, together: int = 2, shm: int = GIB) -> list[Finding]:
    return [finding for finding in gpu.judged(seen, together, shm) if finding.state != "ok"]


def test_a_good_machine() -> None:
    rows = {finding.what: finding.detail for finding in gpu.judged(machine(), 2, GIB)}
    assert rows["GPU"] == "2 x H100, 80.0 GiB, 79.0 free"
    assert rows["driver"] == "580.65.06, CUDA 13.0"
    assert rows["between GPUs"] == "NVLink, peer access"
    assert rows["CUDA MPS"].startswith("does not run")
    assert notes(machine()) == []
    assert "runs" in next(gpu for gpu in gpu.judged(machine(mps=True), 2, GIB) if gpu.what == "CUDA MPS").detail


def test_a_systems_cuda_that_is_found_before_the_wheels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    system, empty = tmp_path / "cuda-12" / "lib64", tmp_path / "empty"
    system.mkdir(parents=True)
    empty.mkdir()
    for name in ("libcublas.so.12", "libcudnn.so.9", "libssl.so.3"):
        (system / name).touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{empty}::{tmp_path / 'nowhere'}")
    assert "CUDA's libraries" not in {finding.what for finding in gpu.findings(None)}
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{empty}:{system}")
    (found,) = [finding for finding in gpu.findings(None) if finding.what == "CUDA's libraries"]
    assert found.state == "note" and f"{system} (libcublas.so.12, libcudnn.so.9)" in found.detail
    assert "LD_LIBRARY_PATH" in found.detail and found.way_out


@pytest.mark.parametrize(
    ("seen", "together", "shm", "what", "said"),
    [
        (machine(pairs=PCIE), 2, GIB, "tensor parallel", "by PCIe between sockets without peer access"),
        (machine({"mig": True}, {}), 2, GIB, "tensor parallel", "MIG is on"),
        (machine(), 2, 64 * 2**20, "/dev/shm", "64 MiB: processes that share a model need 1 GiB"),
        (machine(cuda="12.4"), 1, GIB, "driver", "CUDA 12.4: today's vLLM and torch are built for CUDA 13.0"),
        (machine({"persistence": False}), 1, GIB, "persistence", "off on GPU 0"),
        (machine({"exclusive": True}), 1, GIB, "compute mode", "GPU 0 takes one process alone"),
    ],
)  # fmt: skip
def test_what_hurts(seen: Machine, together: int, shm: int, what: str, said: str) -> None:
    (finding,) = notes(seen, together, shm)
    assert finding.what == what and said in finding.detail and finding.way_out


def test_one_gpu_does_not_mind() -> None:
    assert notes(machine({}, pairs=()), 0, 0) == []
    assert notes(machine(pairs=PCIE), 1, 0) == []
    assert notes(machine({"exclusive": True}, mps=True), 1) == []


def test_a_driver_that_cannot_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> Machine:
        raise EngineMissing("it is not installed: pip install 'voicepipe-pop[gpu]'")

    monkeypatch.setattr(gpus, "read", unknown)
    (finding,) = gpu.findings(None)
    assert (finding.state, finding.way_out) == ("note", "pip install 'voicepipe-pop[gpu]'")


@pytest.mark.parametrize(
    ("tables", "state"),
    [
        ({"engines": {"llm": "vllm"}}, "broken"),
        ({"whisper": {"device": "cuda"}}, "broken"),
        ({"whisper": {"device": "auto"}}, "note"),
        ({}, "ok"),
    ],
)
def test_no_gpu(monkeypatch: pytest.MonkeyPatch, tables: dict[str, Any], state: str) -> None:
    monkeypatch.setattr(gpus, "read", Machine)
    (finding,) = gpu.findings(config.parse(tables))
    assert finding.state == state


# --- the chosen engines ------------------------------


def report(monkeypatch: pytest.MonkeyPatch, file: Path) -> tuple[int, str]:
    monkeypatch.setattr(demo_needs, "OF_MACHINE", ())
    monkeypatch.setattr(demo_needs, "OF_CONFIG", ())
    text = io.StringIO()
    status = doctor.run(file, Console(file=text, width=250))
    return status, text.getvalue()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "asr").mkdir()
    (tmp_path / "asr" / "model.bin").write_bytes(b"weights")
    (tmp_path / "my.toml").write_text("[whisper]\nmodel = 'asr'\ndevice = 'auto'")
    return tmp_path / "my.toml"


def test_engines_that_could_start(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    monkeypatch.setattr(cublas, "find_cublas", lambda: True)
    status, said = report(monkeypatch, file)
    assert status == 0
    assert "whisper is chosen" in said and "whisper on cuda:0" in said
    assert f"A PoP can run: voicepipe pop --config {file}" in said


def test_a_missing_model_and_package(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    monkeypatch.setattr(packages, "PACKAGES", {"vllm": "no_such_package"})
    file.write_text("[engines]\nllm = 'vllm'\n[vllm]\nmodel = '/nowhere/model'")
    status, said = report(monkeypatch, file)
    assert status == 1
    assert "vllm: its package no_such_package is not installed" in said and "pip install no_such_package" in said
    assert "vllm.model: there is no '/nowhere/model'" in said
    assert "broken: language, model" in said


def test_no_cublas_for_whisper(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    monkeypatch.setattr(cublas, "find_cublas", lambda: False)
    status, said = report(monkeypatch, file)
    assert status == 1
    assert "whisper is put on cuda:0 and finds no libcublas.so.12" in said
    assert "pip install nvidia-cublas-cu12" in said


def test_kokoro_that_would_run_on_the_cpu_of_a_gpu_host(
    monkeypatch: pytest.MonkeyPatch, file: Path, tmp_path: Path
) -> None:
    for name in ("kokoro.onnx", "voices.bin"):
        (tmp_path / name).write_bytes(b"weights")
    file.write_text("[engines]\ntts = 'kokoro'\n[kokoro]\nmodel = './kokoro.onnx'\nvoices = './voices.bin'")
    note = "on the CPU: this onnxruntime has no CUDA"
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    FakeDriver([FakeGpu()]).install(monkeypatch)
    status, said = report(monkeypatch, file)
    assert status == 0 and note in said and "pip install onnxruntime-gpu" in said
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])
    assert note not in report(monkeypatch, file)[1]
    FakeDriver([]).install(monkeypatch)
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    assert note not in report(monkeypatch, file)[1]


def test_the_way_out_names_the_file_and_a_stage_is_broken_once(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    file.write_text("[engines]\nasr = 'whisper'\ntts = 'kokoro'\n[whisper]\nmodel = 'org/none'\ndevice = 'auto'")
    _, said = report(monkeypatch, file)
    assert f"voicepipe models pull {file}" in said and "CONFIG" not in said
    assert said.splitlines()[-1] == "broken: model"


def test_no_room(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    FakeDriver([FakeGpu("NVIDIA T4", GIB, GIB // 2)]).install(monkeypatch)
    status, said = report(monkeypatch, file)
    assert status == 1
    assert "GPU 0 (NVIDIA T4) has 0.5 GiB free, and 1.8 GiB are to be put on it" in said
    assert 'what would fit: recognition on the CPU (device = "cpu")' in said


@pytest.mark.parametrize(
    ("args", "where"),
    [
        ({}, "its first 2 GPUs"),
        ({"distributed_executor_backend": "ray"}, "the machines that its executor finds"),
        ({"nnodes": 2, "master_addr": "10.0.0.1"}, "cuda:0, and 1 of each of 1 more hosts"),
    ],
)
def test_a_group_of_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, args: dict[str, Any], where: str) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {})
    monkeypatch.setattr(packages, "find_spec", str)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    FakeDriver([FakeGpu(), FakeGpu(), FakeGpu()]).install(monkeypatch)
    tables = {"model": str(tmp_path), "tensor_parallel_size": 2, "kv_cache_memory_bytes": GIB, "args": args}
    settings = config.parse({"engines": {"llm": "vllm"}, "vllm": tables})
    assert list(gpu.engines(settings, tmp_path))[-1].detail == f"vllm on {where}"


def test_ray_without_a_cluster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    args = {"distributed_executor_backend": "ray"}
    settings = config.parse({"engines": {"llm": "vllm"}, "vllm": {"model": str(tmp_path), "args": args}})
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    lacking = [finding for finding in gpu.engines(settings, tmp_path) if "ray" in finding.detail]
    assert [(each.state, each.way_out) for each in lacking] == [("broken", "pip install 'ray[cgraph]'")]

    def said() -> tuple[str, str]:
        (row,) = (finding for finding in gpu.engines(settings, tmp_path) if finding.what == "Ray")
        return row.state, row.detail

    monkeypatch.setattr(packages, "find_spec", str)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_TMPDIR", str(tmp_path))
    assert said() == ("note", "no cluster address: vLLM would begin a cluster of this machine alone")
    (tmp_path / "ray").mkdir()
    (tmp_path / "ray" / "ray_current_cluster").write_text("10.0.0.1:6379")
    assert said()[0] == "ok"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert said() == ("ok", "its cluster is at 10.0.0.1:6379 (RAY_ADDRESS)")
