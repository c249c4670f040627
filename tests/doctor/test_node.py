"""Machines that are to share a model: what differs, and what that breaks."""

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from tests.support.fake_nvml import FakeDriver, FakeGpu
from voicepipe import config, doctor
from voicepipe.base.errors import ConfigError
from voicepipe.commands import cli
from voicepipe.doctor import node
from voicepipe.doctor.node import Nic, Node

ONE = Node(
    host="one", voicepipe="0.1.0", python="3.12.3", driver="580.65.06", cuda="13.0", gpus=("H100", "H100"),
    links=("NVLink",), nics=(Nic("eth0", 9000, 100_000),), infiniband=(),
    packages={"vllm": "0.33.0", "torch": "2.14.0"}, model="org/name", dtype="bfloat16", shm_bytes=2**34,
)  # fmt: skip


def differing(**changes: Any) -> list[tuple[str, str]]:
    other = msgspec.structs.replace(ONE, host="two", **changes)
    return [(finding.state, finding.what) for finding in node.differences([ONE, other])]


def test_nothing_differs() -> None:
    assert differing() == []
    assert differing(driver="580.95.05", python="3.12.9", shm_bytes=1) == [], "as far as it matters"


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"driver": "570.10"}, ("broken", "driver")),
        ({"dtype": "float16"}, ("broken", "dtype")),
        ({"model": "org/other"}, ("broken", "model")),
        ({"packages": {"vllm": "0.33.0", "torch": "2.13.0"}}, ("broken", "packages")),
        ({"nics": (Nic("eth0", 1500, 100_000),)}, ("broken", "MTU")),
        ({"nics": (Nic("ens5", 9000, 100_000),)}, ("note", "NIC")),
        ({"gpus": ("H100",)}, ("note", "GPUs")),
        ({"python": "3.11.7"}, ("note", "Python")),
        ({"infiniband": ("mlx5_0",)}, ("note", "InfiniBand")),
    ],
)
def test_what_differs(changes: dict[str, Any], found: tuple[str, str]) -> None:
    assert differing(**changes) == [found]


def test_a_slow_network() -> None:
    slow = {"nics": (Nic("eth0", 9000, 10_000),)}
    assert differing(**slow) == [("note", "network"), ("note", "network")]
    (finding,) = node.differences([msgspec.structs.replace(ONE, **slow)])
    assert "one eth0 has 10 Gbit/s" in finding.detail


def test_the_worst_comes_first() -> None:
    assert [state for state, _ in differing(gpus=(), dtype="float16")] == ["broken", "note"]


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A fast NIC, one that is down, one that tells no speed, loopback."""
    found = (("eth0", 1500, "1000", "up"), ("ib0", 4092, "200000", "up"), ("eth1", 1500, "-1", "up"),
             ("eth2", 1500, "", "down"), ("lo", 65536, "", "unknown"))  # fmt: skip
    for name, mtu, speed, state in found:
        directory = tmp_path / "net" / name
        directory.mkdir(parents=True)
        if name != "lo":
            (directory / "device").mkdir()
        (directory / "mtu").write_text(f"{mtu}\n")
        (directory / "operstate").write_text(f"{state}\n")
        if speed:
            (directory / "speed").write_text(f"{speed}\n")
    (tmp_path / "infiniband" / "mlx5_0").mkdir(parents=True)
    monkeypatch.setattr(node, "NETWORK", tmp_path / "net")
    monkeypatch.setattr(node, "INFINIBAND", tmp_path / "infiniband")


def test_this_machine(monkeypatch: pytest.MonkeyPatch, network: None, tmp_path: Path) -> None:
    FakeDriver([FakeGpu("H100"), FakeGpu("H100")]).install(monkeypatch)
    (tmp_path / "config.json").write_text('{"torch_dtype": "bfloat16"}')
    (tmp_path / "model.safetensors").write_bytes(b"")
    seen = node.read(config.parse({"vllm": {"model": str(tmp_path)}}))
    assert seen.nics == (Nic("ib0", 4092, 200_000), Nic("eth0", 1500, 1000), Nic("eth1", 1500, 0))
    assert (seen.gpus, seen.links, seen.driver, seen.cuda) == (("H100", "H100"), ("NVLink",), "580.65.06", "13.0")
    assert (seen.infiniband, seen.dtype) == (("mlx5_0",), "bfloat16")
    assert node.read(config.parse({"vllm": {"args": {"dtype": "half"}}})).dtype == "half"


def test_from_file_to_table(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    first, second = tmp_path / "one.json", tmp_path / "two.json"
    first.write_text(written := capsys.readouterr().out)
    second.write_text(json.dumps({**json.loads(written), "host": "two", "dtype": "float16"}))
    assert cli.main(["doctor", "--compare", str(first), str(first)]) == 0
    assert cli.main(["doctor", "--compare", str(first)]) == 2, "with nothing to compare it with"
    assert "2 machines, nothing differs" in capsys.readouterr().out
    text = io.StringIO()
    assert doctor.compare([first, second], Console(file=text, width=200)) == 1
    assert "two float16" in text.getvalue() and "fetch the same model on all" in text.getvalue()


def test_a_file_that_is_no_machine(tmp_path: Path) -> None:
    (tmp_path / "one.json").write_text("{}")
    with pytest.raises(ConfigError, match="cannot be read: .*; write it on that machine: voicepipe doctor --json"):
        node.load(tmp_path / "one.json")
