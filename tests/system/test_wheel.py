"""voicepipe as a wheel, in an environment without the repository: what a host installs."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from latency_probes.own_server import started
from tests.support.paths import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.e2e]
AT_MOST_MB = 600


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


def built(folder: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-cache-dir", "-w", str(folder), str(ROOT)]
    subprocess.run(command, check=True, cwd=folder, timeout=600)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An environment with the wheel and what it needs, and nothing else; the folder of its programs."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=300)
    before = size_mb(folder)
    programs = folder / "bin"
    pip = [str(programs / "python"), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), str(wheel)]
    subprocess.run(pip, check=True, cwd=folder, timeout=900)
    assert size_mb(folder) - before <= AT_MOST_MB
    yield programs


def size_mb(folder: Path) -> float:
    return sum(path.lstat().st_size for path in folder.rglob("*")) / 1e6


def run(programs: Path, folder: Path, *arguments: str, within_s: float = 300) -> str:
    """What the command prints; it ends well, away from the repository."""
    done = subprocess.run([programs / arguments[0], *arguments[1:]], cwd=folder, env=environment(), timeout=within_s,
                          text=True, capture_output=True)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV", "PYTEST"))}


def test_it_is_built_twice_to_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == "voicepipe_pop-0.1.0-py3-none-any.whl"
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (wheel, built(tmp_path)))
    assert first == second


def test_what_is_optional_is_not_installed(installed: Path, tmp_path: Path) -> None:
    names = {row["name"].lower() for row in json.loads(run(installed, tmp_path, "pip", "list", "--format", "json"))}
    assert "voicepipe-pop" in names
    assert not names & {"espeakng-loader", "onnx", "plotly", "torch", "kokoro-onnx", "pytest", "opentelemetry-sdk"}


def test_its_files_are_there_by_name(installed: Path, tmp_path: Path) -> None:
    listed = run(installed, tmp_path, "voicepipe", "configs", "list")
    for name in (
        "configs/gpu.toml",
        "pops/fra1.toml",
        "pops/alerts/voicepipe.rules.yml",
        "pops/deploy/kubernetes/base/deletion_cost.py",
    ):
        assert name in listed
    run(installed, tmp_path, "voicepipe", "configs", "copy", "gpu.toml")
    assert (tmp_path / "gpu.toml").read_bytes() == (ROOT / "configs" / "gpu.toml").read_bytes()


def test_an_agent_of_one_s_own_is_begun_checked_and_called(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "voicepipe", "new", "desk")
    assert "ok (agent)" in run(installed, tmp_path, "voicepipe", "check", "desk/agent.toml")
    said = run(installed, tmp_path, "voicepipe", "demo", "--once", "--port", "0", "--sip-port", "0")
    assert "ms" in said


def test_gpus_are_planned_and_probes_listed(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "voicepipe", "configs", "copy", "local.toml")
    config = {"hidden_size": 1024, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8,
              "head_dim": 128, "intermediate_size": 3072, "vocab_size": 151_936, "torch_dtype": "bfloat16",
              "max_position_embeddings": 40_960, "model_type": "qwen3", "tie_word_embeddings": True}  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert "calls" in run(installed, tmp_path, "voicepipe", "plan", "--model", "config.json", "--gpus", "L4")
    assert "finished" in run(installed, tmp_path, "python", "-m", "latency_probes", "--list")


def test_a_pop_and_a_directory_answer(installed: Path, tmp_path: Path) -> None:
    run(installed, tmp_path, "voicepipe", "configs", "copy", "local.toml")
    pop = (str(installed / "voicepipe"), "pop", "--pop", "local.toml", "--port", "0")
    with started(pop, environment(), tmp_path) as its:
        assert httpx.get(f"{its.url}/readyz").status_code == 200
        assert httpx.get(f"{its.url}/vendor/plotly.min.js").status_code == 200
        assert "voicepipe" in httpx.get(its.url).text
    key = tmp_path / "directory.pem"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", str(key)], check=True, timeout=30)
    (tmp_path / "directory.toml").write_text(
        f'[directory]\nkey = "{key}"\nplace = [50.1, 8.7]\n[bus]\nservers = ["nats://127.0.0.1:1"]\n'
    )
    directory = (str(installed / "voicepipe"), "directory", "--config", "directory.toml", "--port", "0")
    with started(directory, environment(), tmp_path) as its:
        assert httpx.get(f"{its.url}/healthz").status_code in (200, 503)
