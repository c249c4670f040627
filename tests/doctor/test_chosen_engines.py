"""Whether the engines that a configuration puts on GPUs could start; a driver of our own making."""

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.support.fake_nvml import FakeDriver, FakeGpu
from voicepipe import config, doctor
from voicepipe.doctor import chosen_engines, demo_needs
from voicepipe.engines import packages
from voicepipe.engines.asr import whisper_model

GIB = 2**30


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
    monkeypatch.setattr(whisper_model, "find_cublas", lambda: True)
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
    monkeypatch.setattr(whisper_model, "find_cublas", lambda: False)
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
    [({}, "its first 2 GPUs"), ({"distributed_executor_backend": "ray"}, "the machines that its executor finds")],
)
def test_a_group_of_gpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, args: dict[str, Any], where: str) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {})
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    FakeDriver([FakeGpu(), FakeGpu(), FakeGpu()]).install(monkeypatch)
    tables = {"model": str(tmp_path), "tensor_parallel_size": 2, "kv_cache_memory_bytes": GIB, "args": args}
    settings = config.parse({"engines": {"llm": "vllm"}, "vllm": tables})
    assert list(chosen_engines.findings(settings, tmp_path))[-1].detail == f"vllm on {where}"
