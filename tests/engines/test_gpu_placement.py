"""Which stage runs where, and what is said where it has no room."""

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest

from tests.engines.sparse import configured, sparse_models
from tests.support.fake_nvml import GIB, FakeDriver, FakeGpu
from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.config import Config
from voicepipe.engines import gpu_placement, loader, packages
from voicepipe.engines.gpu_placement import LlmNeed, Need
from voicepipe.engines.hosting.gpus import VisibleGpu

MIB = 2**20


def devices(placed: Config) -> tuple[str, str, str]:
    return placed.whisper.device, placed.kokoro.device, placed.coqui.device


# --- where ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gpus", "tensor", "device"),
    [(0, 1, "cpu"), (1, 1, "cuda:0"), (2, 1, "cuda:1"), (2, 2, "cuda:0"), (4, 2, "cuda:2")],
)
def test_recognition_and_synthesis_go_beside_the_group(gpus: int, tensor: int, device: str) -> None:
    placed = gpu_placement.place(configured(vllm={"tensor_parallel_size": tensor}), gpus)
    assert devices(placed) == (device, device, device)


def test_beside_a_model_that_is_spread_over_machines_they_take_the_last() -> None:
    spread = configured(vllm={"tensor_parallel_size": 2, "args": {"distributed_executor_backend": "ray"}})
    assert devices(gpu_placement.place(spread, 4)) == ("cuda:3", "cuda:3", "cuda:3")


def test_without_a_language_model_of_ours_they_take_the_first() -> None:
    assert devices(gpu_placement.place(configured(engines={"llm": "openai"}), 2))[:2] == ("cuda:0", "cuda:0")


def test_a_configured_device_is_obeyed() -> None:
    placed = gpu_placement.place(configured(whisper={"device": "cpu"}, kokoro={"device": "cuda:1"}), 2)
    assert devices(placed) == ("cpu", "cuda:1", "cuda:1")


def test_an_engine_that_can_use_no_gpu_here() -> None:
    assert devices(gpu_placement.place(configured(), 1, on_cpu=["kokoro"])) == ("cuda:0", "cpu", "cuda:0")
    explicit = gpu_placement.place(configured(kokoro={"device": "cuda"}), 1, on_cpu=["kokoro"])
    assert explicit.kokoro.device == "cuda", "which its engine refuses, with the reason"


def test_gpus_that_there_are_not() -> None:
    with pytest.raises(EngineError, match="spread over 4 GPUs, and this process sees 2; lower"):
        gpu_placement.place(configured(vllm={"tensor_parallel_size": 4}), 2)
    with pytest.raises(EngineError, match=r"whisper.device: there is no cuda:2: this process sees 2 GPUs, from cuda:0"):
        gpu_placement.place(configured(whisper={"device": "cuda:2"}), 2)


def test_the_size_of_the_group() -> None:
    def group(**vllm: Any) -> int:
        return gpu_placement.group(configured(vllm=vllm).vllm)

    assert group(tensor_parallel_size=2, args={"pipeline_parallel_size": 2}) == 4
    assert group(tensor_parallel_size=2, args={"data_parallel_size": 2}) == 4
    assert group(tensor_parallel_size=2, args={"data_parallel_size": 8, "data_parallel_size_local": 2}) == 4
    assert group(tensor_parallel_size=16, args={"distributed_executor_backend": "ray"}) == 0
    two_hosts = {"nnodes": 2, "master_addr": "10.0.0.1", "pipeline_parallel_size": 2}
    assert group(tensor_parallel_size=4, args=two_hosts) == 4
    assert group(tensor_parallel_size=4, args={**two_hosts, "data_parallel_size": 2}) == 0


# --- memory -----------------------------------------------------------------------------------------------------

H100 = VisibleGpu(0, "H100", 80 * GIB, 79 * GIB)
SPEECH = Need("recognition", (0,), 2 * GIB, GIB)


def llm(**sizes: Any) -> LlmNeed:
    full = {"weights": 16 * GIB, "working": 2 * GIB, "cache": 20 * GIB, "cache_least": GIB, "weights_fp8": 9 * GIB}
    return LlmNeed("language model", sizes.pop("gpus", (0,)), **{**full, **sizes})


def refused(needs: list[Need], *gpus: VisibleGpu) -> str:
    with pytest.raises(EngineError) as error:
        gpu_placement.check(needs, gpus)
    return str(error.value)


def test_what_fits() -> None:
    gpu_placement.check([llm(), SPEECH], [H100])
    gpu_placement.check([llm(rest=0.92, cache=0)], [H100])


def test_a_cache_that_is_too_large() -> None:
    said = refused([llm(cache=60 * GIB), SPEECH], H100)
    assert said.startswith(
        "GPU 0 (H100) has 79.0 GiB free, and 81.0 GiB are to be put on it: language model 16.0 GiB weights + 60.0 GiB "
        "KV cache + 2.0 GiB, recognition 2.0 GiB weights + 1.0 GiB; what would fit: "
    )
    assert f"vllm.kv_cache_memory_bytes = {58 * GIB:_} (58.0 GiB), or weights in fp8" in said
    gpu_placement.check([llm(cache=58 * GIB), SPEECH], [H100])


def test_weights_that_are_too_large() -> None:
    card = VisibleGpu(0, "L4", 22 * GIB, 22 * GIB)
    said = refused([llm(cache=4 * GIB), SPEECH], card)
    assert 'fp8 (vllm.args.quantization = "fp8", saves 7.0 GiB)' in said
    assert 'recognition on the CPU (device = "cpu")' in said
    assert "tensor_parallel_size" not in said
    said = refused([llm(cache=4 * GIB), SPEECH], card, VisibleGpu(1, "L4", 22 * GIB, 21 * GIB))
    assert "vllm.tensor_parallel_size = 2" in said
    assert 'recognition on GPU 1 (device = "cuda:1")' in said
    assert refused([llm(weights=160 * GIB, weights_fp8=0)], card).endswith("what would fit: take a smaller model")


def test_others_on_the_gpu() -> None:
    busy = VisibleGpu(0, "H100", 80 * GIB, 30 * GIB)
    assert "end what else runs on the GPU (nvidia-smi shows it; 50.0 GiB are taken)" in refused([llm()], busy)
    assert "vllm.args.gpu_memory_utilization = 0.37" in refused([llm(rest=0.92, cache=0)], busy)


def test_a_cache_without_a_size_beside_others() -> None:
    said = refused([llm(rest=0.92, cache=0), SPEECH], H100)
    assert said.startswith(
        "vllm.kv_cache_memory_bytes is 0, so that vLLM would take 92 % of GPU 0, where recognition must"
    )
    size = int(said.split("set it to ")[1].split()[0])
    gpu_placement.check([llm(cache=size), SPEECH], [H100])


def test_no_size_is_named_that_would_be_refused() -> None:
    card = VisibleGpu(0, "L4", 22 * GIB, 22 * GIB)
    said = refused([llm(rest=0.92, cache=0, weights=17 * GIB, cache_least=2 * GIB), SPEECH], card)
    assert "set it to" not in said and "what would fit: " in said
    assert "gpu_memory_utilization =" not in said, "beside others no share of the GPU is a size"


def test_no_gpu_is_named_that_is_full_itself() -> None:
    cards = [VisibleGpu(index, "L4", 22 * GIB, 22 * GIB) for index in range(2)]
    said = refused([llm(gpus=(0, 1), weights=16 * GIB, cache=4 * GIB), SPEECH], *cards)
    assert "on GPU 1" not in said and 'on the CPU (device = "cpu")' in said


def test_a_cache_that_vllm_would_not_start_with() -> None:
    assert f"set it to {GIB:_} (1.0 GiB) or more, or lower vllm.max_model_len" in refused([llm(cache=MIB)], H100)


@pytest.fixture
def models(tmp_path: Path) -> Config:
    return sparse_models(tmp_path)


# --- all of it, before anything is loaded -----------------------------------------------------------------------


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "PACKAGES", {})


def test_the_loader_places(monkeypatch: pytest.MonkeyPatch, models: Config) -> None:
    FakeDriver([FakeGpu(), FakeGpu(uuid="GPU-1")]).install(monkeypatch)
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CUDAExecutionProvider"])
    assert devices(loader.placed(models)) == ("cuda:1", "cuda:1", "cuda:1")
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    assert devices(loader.placed(models)) == ("cuda:1", "cpu", "cuda:1")


def test_kokoro_runs_on_the_cpu_where_another_onnxruntime_lies_over_the_one_with_cuda(
    monkeypatch: pytest.MonkeyPatch, models: Config, caplog: pytest.LogCaptureFixture
) -> None:
    """Two packages bring one module. Both are installed then, and the one that came last is imported."""
    FakeDriver([FakeGpu(), FakeGpu(uuid="GPU-1")]).install(monkeypatch)
    found = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: found(name.removesuffix("-gpu")))
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: ["CPUExecutionProvider"])
    assert devices(loader.placed(models)) == ("cuda:1", "cpu", "cuda:1")
    assert "kokoro runs on the CPU" in caplog.text and "onnxruntime-gpu" in caplog.text


@pytest.mark.parametrize(
    ("script", "device", "placed_on"),
    [
        ("echo 'RuntimeError: no kernel image is available' >&2; exit 1", "auto", "cpu"),
        ("kill -9 $$", "auto", "cpu"),
        ("exit 0", "auto", "cuda:0"),
        ('[ "$3" = cuda:0 ]', "auto", "cuda:0"),  # that one is tried on which it is to run
        ("exit 1", "cuda", "cuda"),  # refused by the engine, with the reason
    ],
)
def test_coqui_goes_where_its_own_torch_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture,
    script: str, device: str, placed_on: str,
) -> None:  # fmt: skip
    FakeDriver([FakeGpu(), FakeGpu(uuid="GPU-1")]).install(monkeypatch)
    (tmp_path / "model.pth").write_bytes(b"")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    coqui = {"python": str(python), "model": str(tmp_path), "device": device}
    placed = loader.placed(configured(engines={"asr": "scripted", "llm": "frontdesk", "tts": "coqui"}, coqui=coqui))
    assert placed.coqui.device == placed_on
    assert ("coqui.python cannot use its GPU: " in caplog.text) == (placed_on == "cpu")
    assert "RuntimeError" not in script or "no kernel image is available" in caplog.text


async def test_the_loader_loads_nothing_where_there_is_no_room(monkeypatch: pytest.MonkeyPatch, models: Config) -> None:
    FakeDriver([FakeGpu("NVIDIA L4", 23 * GIB, 22 * GIB)]).install(monkeypatch)
    monkeypatch.setattr(loader, "choose", lambda *args: pytest.fail("it must not come to that"))
    with pytest.raises(EngineError, match=r"GPU 0 \(NVIDIA L4\) has 22.0 GiB free"):
        async with loader.loaded(models):
            pass


def test_a_missing_model_is_said_before_anything_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    with pytest.raises(EngineMissing, match="there is no '/nowhere'"):
        loader.placed(configured(whisper={"model": "/nowhere"}))


def test_a_neutts_without_a_voice_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    with pytest.raises(EngineMissing, match=r"neutts: it has no voice; add a table \[neutts.voices.NAME\]"):
        loader.placed(configured(engines={"asr": "scripted", "llm": "frontdesk", "tts": "neutts"}))


def test_that_it_has_no_voice_does_not_hide_that_its_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    monkeypatch.setattr(packages, "PACKAGES", {"neutts": "no_such_package"})
    with pytest.raises(
        EngineMissing, match=r"it has no voice(.|\n)*no_such_package is not installed(.|\n)*neutts.codec"
    ):
        loader.placed(configured(engines={"asr": "scripted", "llm": "frontdesk", "tts": "neutts"}))


def test_all_that_is_missing_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    FakeDriver([FakeGpu()]).install(monkeypatch)
    monkeypatch.setattr(packages, "PACKAGES", {"vllm": "no_such_package"})
    kokoro = {"model": "/no where/k.onnx", "voices": "/nowhere/v.bin"}
    with pytest.raises(EngineMissing) as error:
        loader.placed(configured(whisper={"model": "/nowhere"}, vllm={"model": "/none"}, kokoro=kokoro))
    lines = str(error.value).splitlines()
    assert [line.partition(": ")[0] for line in lines] == [
        "vllm", "whisper.model", "vllm.model", "kokoro.model", "kokoro.voices",
    ]  # fmt: skip
    assert "there is no /no where/k.onnx; fetch it with `voicepipe models pull CONFIG`" in lines[3]


def test_embedded_engines_ask_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicepipe.engines.hosting.gpus.read", lambda: pytest.fail("nobody needs to know"))
    assert loader.placed(Config()) == Config()
