"""The image is built, and answers calls as it is deployed: not root, nothing writable, by compose as a fleet.

`make test-containers`: it takes 10 minutes, root, and a network. Started by hand, since CI has no time for it.
"""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from tests.containers.builds import base, built, podman, run, run_options, runtime, with_program
from tests.support.paths import ROOT

COMPOSE = ROOT / "pops" / "deploy" / "containers"
MOST_MB = 500
PYTHON = str(ROOT / ".venv" / "bin" / "python")


@pytest.fixture(scope="module")
def slim(tmp_path_factory: pytest.TempPathFactory) -> str:
    return base("slim", ["python3", "ca-certificates"], tmp_path_factory.mktemp("slim"))


@pytest.fixture(scope="module")
def image(slim: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The target `cpu`; VOICEPIPE_IMAGE names one that is there already."""
    if made := os.environ.get("VOICEPIPE_IMAGE"):
        return made
    packages = ["python3", "python3-venv", "python3-pip", "ca-certificates"]
    return built(slim, base("builder", packages, tmp_path_factory.mktemp("builder")))


def waited(for_: Callable[[], bool], within_s: float) -> float:
    """Seconds until something is so."""
    began = time.monotonic()
    while not for_():
        assert time.monotonic() - began < within_s, "it never was"
        time.sleep(0.1)
    return time.monotonic() - began


def answers(url: str, key: str = "") -> Callable[[], bool]:
    def asked() -> bool:
        try:
            headers = {"Authorization": f"Bearer {key}"} if key else {}
            return httpx.get(url, headers=headers, timeout=2).status_code == 200
        except httpx.HTTPError:
            return False

    return asked


def called(*options: str) -> list[dict[str, object]]:
    """The turns of one spoken call, as a probe tells of them."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "call.json"
        probe = (PYTHON, "-m", "latency_probes", "--set", "finished", "--calls", "1", "--p95-ms", "5000")
        run(*probe, "--json", str(file), *options)
        turns: list[dict[str, object]] = json.loads(file.read_text())["figures"]["run"]["turns"]
        return turns


def test_its_compressed_size(image: str, tmp_path: Path) -> None:
    run("buildah", "push", "-q", "--format", "oci", image, f"oci:{tmp_path}/image:x")
    size = sum(path.stat().st_size for path in (tmp_path / "image").rglob("*")) / 1e6
    print(f"compressed: {size:.0f} MB")
    assert size <= MOST_MB


def test_a_call_is_answered_without_root_and_nothing_is_writable(image: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # The container's user reads it.
    (tmp_path / "local.toml").write_text('[pop]\nid = "c1"\n[http]\nport = 18555\n')
    began = time.monotonic()
    podman("run", "-d", "--name", "voicepipe-test", "--network", "host", "--read-only", "--tmpfs", "/tmp", "--cap-drop",
           "all", "--security-opt", "no-new-privileges", *run_options(), "-v", f"{tmp_path}:/etc/voicepipe:ro", image,
           "pop", "--pop", "/etc/voicepipe/local.toml")  # fmt: skip
    try:
        waited(answers("http://127.0.0.1:18555/readyz"), 120)
        print(f"ready {time.monotonic() - began:.1f} s after `podman run`")
        assert podman("exec", "voicepipe-test", "id", "-u").strip() == "10001"
        with pytest.raises(AssertionError, match="Read-only file system"):
            podman("exec", "voicepipe-test", "touch", "/opt/voicepipe/x")
        assert any(turn["outcome"] == "right" for turn in called("ws://127.0.0.1:18555/v1/realtime"))
        podman("stop", "--time", "60", "voicepipe-test")
        assert podman("inspect", "voicepipe-test", "--format", "{{.State.ExitCode}}").strip() == "0"
    finally:
        podman("rm", "-f", "voicepipe-test")


@pytest.fixture
def fleet(image: str, slim: str, tmp_path: Path) -> Iterator[Path]:
    """compose.yaml's fleet; the folder of its secrets."""
    shutil.copytree(ROOT / "pops", tmp_path / "pops")
    folder = tmp_path / "pops" / "deploy" / "containers"
    run(str(folder / "secrets.sh"))
    environment = os.environ | {
        "VOICEPIPE_IMAGE": image,
        "NATS_IMAGE": with_program("nats", slim, "/usr/sbin/nats-server"),
        "PROMETHEUS_IMAGE": with_program("prometheus", slim, shutil.which("prometheus") or ""),
    }
    compose = [str(Path(PYTHON).parent / "podman-compose"), "--in-pod=false", f"--podman-args=--runtime {runtime()}",
               f"--podman-run-args={' '.join(run_options())}"]  # fmt: skip
    try:
        subprocess.run([*compose, "up", "-d"], cwd=folder, env=environment, check=True, timeout=300)
        yield folder / "secrets"
    finally:
        subprocess.run([*compose, "down", "-t", "5"], cwd=folder, env=environment, check=True, timeout=300)


def test_a_fleet_by_compose(fleet: Path) -> None:
    caller, operator = ((fleet / name).read_text().strip() for name in ("caller", "operator"))
    directory = "http://127.0.0.1:8090"

    def pops() -> list[str]:
        answer = httpx.get(f"{directory}/v1/pops", headers={"Authorization": f"Bearer {operator}"}, timeout=2)
        return [row["pop"] for row in answer.json()["pops"] if row["status"] == "ok"]

    waited(answers(f"{directory}/readyz"), 120)
    waited(lambda: sorted(pops()) == ["fra1", "iad1"], 120)
    turns = called("--via", directory, "--place", "48.9,2.4", "--key", caller)
    assert any(turn["outcome"] == "right" and turn["pop"] == "fra1" for turn in turns)

    def up() -> list[str]:
        query = {"query": "up == 1"}
        found = httpx.get("http://127.0.0.1:9090/api/v1/query", params=query, timeout=2).json()["data"]["result"]
        return sorted(each["metric"]["instance"].rpartition(":")[2] for each in found)

    waited(lambda: up() == ["8081", "8082", "8090", "9465"], 60)
    waited(lambda: 'pop="iad1"' in httpx.get("http://127.0.0.1:9465/metrics").text, 120)
