"""The deployment for Kubernetes, as `kubectl kustomize` renders it."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.paths import ROOT

needs_kubectl = pytest.mark.skipif(
    not shutil.which("kubectl"), reason="needs kubectl (Debian: apt install kubernetes-client)"
)
KUBERNETES = ROOT / "pops" / "deploy" / "kubernetes"
OVERLAYS = ("cpu", "gpu", "mps", "two-regions/eu", "two-regions/us")
PARTS = (*(f"overlays/{name}" for name in OVERLAYS), "autoscaling/keda", "autoscaling/prometheus")
"""Folders that are applied, and KEDA's autoscaler, which takes the place of the other."""
Object = dict[str, Any]
"""An object of Kubernetes."""


@cache
def rendered(part: str) -> tuple[Object, ...]:
    """The objects of a folder below pops/deploy/kubernetes. Raises AssertionError: it cannot be rendered."""
    said = subprocess.run(("kubectl", "kustomize", str(KUBERNETES / part)), capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    return tuple(yaml.safe_load_all(said.stdout))


def named(objects: Sequence[Object], kind: str, name: str) -> Object:
    """The object of this kind and name; its name may end with kustomize's hash. Raises StopIteration: none is."""
    return next(
        each
        for each in objects
        if each["kind"] == kind and (each["metadata"]["name"] == name or _without_hash(each) == name)
    )


def _without_hash(one: Object) -> str:
    return str(one["metadata"]["name"]).rpartition("-")[0] if one["kind"] == "ConfigMap" else ""


def pods(objects: Sequence[Object]) -> Iterator[tuple[str, Object]]:
    """The name of each Deployment, and the `spec` of its pods."""
    for each in objects:
        if each["kind"] == "Deployment":
            yield each["metadata"]["name"], each["spec"]["template"]["spec"]


def containers(pod: Object) -> list[Object]:
    """Those that begin a pod, and those that run in it."""
    return [*pod.get("initContainers", ()), *pod["containers"]]


def written(config_map: Object, folder: Path) -> None:
    """Write its files as a kubelet does: names lead through `..data`, which a change replaces as a whole."""
    (folder / "..first").mkdir(parents=True)
    (folder / "..data").symlink_to("..first")
    for name, text in config_map["data"].items():
        (folder / "..first" / name).write_text(text)
        (folder / name).symlink_to(Path("..data", name))
