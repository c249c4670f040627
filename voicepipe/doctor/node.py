"""One of several machines that share a model (pipeline parallel by Ray): what they must have in common."""

import json
import platform
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from voicepipe import __version__
from voicepipe.base.errors import ConfigError, EngineMissing
from voicepipe.config import Config
from voicepipe.doctor.finding import Finding, State
from voicepipe.engines.hosting import gpus
from voicepipe.engines.packages import version
from voicepipe.engines.weights import hub

NETWORK = Path("/sys/class/net")
INFINIBAND = Path("/sys/class/infiniband")
SHM = Path("/dev/shm")
PACKAGES = ("vllm", "torch", "ray", "transformers", "nvidia-nccl-cu13", "nvidia-nccl-cu12")
SLOW_MBITS = 25_000
"""Mbit/s; a slower network is too slow for a model."""


class Nic(msgspec.Struct, frozen=True):
    """A network interface."""

    name: str
    mtu: int
    mbits: int
    """Mbit/s; 0: unknown."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """The output of `voicepipe doctor --json`: one of several machines that share a model."""

    host: str
    voicepipe: str
    python: str
    driver: str
    cuda: str
    gpus: tuple[str, ...]
    links: tuple[str, ...]
    nics: tuple[Nic, ...]
    """Interfaces that are up, the fastest first; without loopback and those of containers."""
    infiniband: tuple[str, ...]
    packages: dict[str, str]
    model: str
    dtype: str
    """Type of the weights: by vllm.args, else by the model's config.json."""
    shm_bytes: int


def read(config: Config) -> Node:
    """Describe this machine, for the model of `config`."""
    try:
        machine = gpus.read()
    except EngineMissing:
        machine = gpus.Machine()
    return Node(
        host=platform.node(),
        voicepipe=__version__,
        python=platform.python_version(),
        driver=machine.driver,
        cuda=machine.cuda,
        gpus=tuple(gpu.name for gpu in machine.gpus),
        links=tuple(sorted({pair.link for pair in machine.pairs})),
        nics=tuple(sorted(_nics(), key=lambda nic: (-nic.mbits, nic.name))),
        infiniband=tuple(sorted(device.name for device in INFINIBAND.glob("*"))),
        packages={name: found for name in PACKAGES if (found := version(name))},
        model=hub.title(config.vllm.model, config.vllm.revision),
        dtype=_dtype(config),
        shm_bytes=shm_bytes(),
    )


def load(file: Path) -> Node:
    """Read a file of `--json`. Raises ConfigError."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=Node)
    except (OSError, msgspec.MsgspecError) as error:
        raise ConfigError(
            f"{file}: cannot be read: {error}; write it on that machine: voicepipe doctor --json"
        ) from None


def differences(nodes: Sequence[Node]) -> list[Finding]:
    """Differences between the machines, worst first. Pure."""
    found = []
    for what, state, of, way_out in COMPARED:
        values = [of(node) for node in nodes]
        if len({json.dumps(value, sort_keys=True) for value in values}) > 1:
            each = "; ".join(f"{node.host} {_text(value)}" for node, value in zip(nodes, values, strict=True))
            found.append(Finding(what, state, each, way_out))
    found += [
        Finding(
            "network", "note", f"{node.host} {node.nics[0].name} has {node.nics[0].mbits / 1000:g} Gbit/s",
            "keep each layer within a machine: tensor_parallel_size up to its GPUs, args.pipeline_parallel_size beyond",
        )
        for node in nodes
        if node.nics and 0 < node.nics[0].mbits < SLOW_MBITS and not node.infiniband
    ]  # fmt: skip
    return sorted(found, key=lambda finding: ("broken", "note", "ok").index(finding.state))


def shm_bytes() -> int:
    """Bytes of shared memory."""
    return shutil.disk_usage(SHM).total if SHM.exists() else 0


COMPARED: tuple[tuple[str, State, Callable[[Node], Any], str], ...] = (
    ("model", "broken", lambda node: node.model, "give all the same vllm.model, and vllm.args.revision"),
    ("dtype", "broken", lambda node: node.dtype, "fetch the same model on all, and set vllm.args.dtype"),
    ("packages", "broken", lambda node: node.packages, "install the same versions on all: pip install NAME==VERSION"),
    ("driver", "broken", lambda node: node.driver.split(".")[0], "install the same driver on all"),
    (
        "MTU",
        "broken",
        lambda node: node.nics[0].mtu if node.nics else None,
        "set the same on all (ip link set NIC mtu 9000): NCCL hangs on packets that are dropped",
    ),
    ("voicepipe", "note", lambda node: node.voicepipe, "install the same version on all"),
    ("Python", "note", lambda node: node.python.rpartition(".")[0], "Ray wants the same minor version on all"),
    ("GPUs", "note", lambda node: list(node.gpus), "the slowest and the smallest of them sets the pace and the room"),
    ("links", "note", lambda node: list(node.links), "the slowest sets the pace"),
    (
        "NIC",
        "note",
        lambda node: node.nics[0].name if node.nics else None,
        "tell each its own: NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME",
    ),
    ("network", "note", lambda node: node.nics[0].mbits if node.nics else None, "the slowest sets the pace"),
    ("InfiniBand", "note", lambda node: list(node.infiniband), "NCCL uses it only where all have it"),
)
"""Each property, how bad a difference is, where it is found, and what to do."""


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {version}" for key, version in value.items()) or "none"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value) if value else "none"


def _nics() -> Iterator[Nic]:
    for directory in NETWORK.glob("*"):
        if not (directory / "device").exists():  # loopback, bridges, containers
            continue
        if _line(directory / "operstate") == "up":
            speed = _line(directory / "speed")
            yield Nic(directory.name, int(_line(directory / "mtu") or 0), max(0, int(speed)) if speed else 0)


def _line(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:  # some say no speed
        return ""


def _dtype(config: Config) -> str:
    if said := config.vllm.args.get("dtype"):
        return str(said)
    try:
        described = hub.json_object(hub.local(config.vllm.model, config.vllm.revision) / "config.json")
    except EngineMissing:
        return ""
    quantised = described.get("quantization_config", {}).get("quant_method", "")
    return str(quantised or described.get("dtype") or described.get("torch_dtype") or "")
