"""Hosts that systemd has booted, in namespaces of this machine: each root is this machine's, with changes in memory."""

import os
import site
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from voicepipe.base.environment import models_directory

SYSTEMD = Path("/lib/systemd/systemd")
HOST_ROOT = Path(__file__).parent / "host_root.sh"
CGROUPS = Path("/sys/fs/cgroup")
UP_S = 60.0

NAMESPACES = ("unshare", "--mount", "--pid", "--uts", "--ipc", "--net", "--cgroup", "--fork", "--kill-child")


def forbidden() -> str:
    """Why this machine cannot boot one; empty: it can."""
    if os.geteuid() != 0:
        return "it takes root"
    if not SYSTEMD.exists():
        return "systemd is missing (apt install systemd)"
    trial = (*NAMESPACES, "mount", "-t", "tmpfs", "trial", "/mnt")
    return subprocess.run(trial, capture_output=True, text=True, check=False).stderr.strip()


needs_systemd = pytest.mark.skipif(bool(why := forbidden()), reason=f"no systemd can be booted in namespaces: {why}")


class BootedHost:
    """Has a network of its own, without a way out but to the host that it is `joined` with."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        """Its systemd's."""

    def run(self, *command: str, check: bool = True, given: str | None = None) -> str:
        """What the command writes to standard output, as root of the host. `given`: its standard input. Raises
        AssertionError: it fails."""
        done = subprocess.run(
            ("nsenter", "--target", str(self.pid), "--all", "--wdns=/", *command),
            capture_output=True, text=True, input=given, check=False, timeout=300,
        )  # fmt: skip
        assert not check or done.returncode == 0, (command, done.stdout, done.stderr)
        return done.stdout

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """A file of root's."""
        self.run("install", f"-Dm{mode:o}", "/dev/stdin", path, given=text)

    def shows(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "show", "--value", f"--property={name}", unit).strip()

    def wait(self, unit: str, name: str, value: str, seconds: float = 120.0) -> None:
        """The property has this value. Raises AssertionError: not within `seconds`."""
        deadline = time.monotonic() + seconds
        while (seen := self.shows(unit, name)) != value:
            assert time.monotonic() < deadline, (unit, name, seen, self.log(unit))
            time.sleep(0.1)

    def log(self, unit: str) -> str:
        """What the unit's processes wrote, and systemd about them."""
        return self.run("journalctl", "--no-pager", "--output=cat", f"--unit={unit}")


def joined(one: BootedHost, other: BootedHost, addresses: tuple[str, str]) -> None:
    """Lay a cable between two hosts, with these addresses (IPv4, as "10.1.0.1/24") at its ends."""
    ends = ("netns", str(one.pid), "type", "veth", "peer", "name", "eth0", "netns", str(other.pid))
    subprocess.run(("ip", "link", "add", "eth0", *ends), check=True)
    for host, address in zip((one, other), addresses, strict=True):
        host.run("ip", "addr", "add", address, "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")


@contextmanager
def booted(folder: Path) -> Iterator[BootedHost]:
    """One that runs."""
    groups = list(_groups(f"voicepipe-test-{os.getpid()}-{folder.name}"))
    for group in groups:
        group.mkdir()
    enter = "".join(f"echo $$ >{group}/cgroup.procs; " for group in groups)
    begin = ("setpriv", "--pdeathsig", "KILL", *NAMESPACES, "--propagation", "private", "bash", str(HOST_ROOT))
    packages = site.getsitepackages()[0]
    inputs = (folder, ROOT, sys.base_prefix, packages, models_directory())
    log = folder.with_suffix(".log")
    folder.mkdir()
    with log.open("w") as output:
        process = subprocess.Popen(
            ("bash", "-c", f'{enter}exec "$@"', "enter", *begin, *map(str, inputs)),
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        yield _up(process, log)
    finally:
        process.kill()  # --kill-child: and with it the namespace's first process, and so all.
        process.wait()
        for group in groups:
            _removed(group)


def _groups(name: str) -> Iterator[Path]:
    """A control group below this process's in each hierarchy in which systemd makes some: it then stays below."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        unified = "unified" if (CGROUPS / "unified").exists() else ""
        hierarchy = CGROUPS / (controllers.removeprefix("name=") or unified)
        if hierarchy.exists() and controllers not in ("cpuset", "freezer"):
            yield hierarchy / path.lstrip("/") / name


def _up(process: "subprocess.Popen[bytes]", log: Path) -> BootedHost:
    """Once systemd has started. Raises AssertionError."""
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        assert process.poll() is None, log.read_text()
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        if children and Path(f"/proc/{children[0]}/comm").read_text().strip() == "systemd":
            host = BootedHost(int(children[0]))
            state = host.run("systemctl", "is-system-running", check=False).strip()
            if state in ("running", "degraded"):
                return host
        time.sleep(0.1)
    raise AssertionError(f"systemd did not start: {log.read_text()}")


def _removed(group: Path) -> None:
    """Its processes have been killed, and are soon gone."""
    for _ in range(100):
        try:
            for below in sorted(group.rglob("*/"), key=lambda path: -len(path.parts)):
                if below.is_dir():
                    below.rmdir()
            group.rmdir()
            return
        except OSError:
            time.sleep(0.1)
