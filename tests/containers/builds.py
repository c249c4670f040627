"""Images as they can be built where no base image can be fetched: on Debian's own packages, by buildah, without a
daemon."""

import os
import resource
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.support.paths import ROOT

MIRROR, SUITE = "http://deb.debian.org/debian", "bookworm"
IMAGE = "localhost/voicepipe-pop:test"
FOLDERS = ("/opt/wheels", "/opt/pypi", "/opt/pypi-more", "/etc/xdg/pip", "/etc/ssl/certs")
"""Of this machine, which builds may see: where its pip finds packages, and whom it trusts."""
LEFT_OUT = ("var/cache/apt/archives", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale")


def run(*command: str, within_s: float = 1200) -> str:
    """What a program prints. Raises AssertionError: it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=within_s, cwd=ROOT)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def base(name: str, packages: Sequence[str], folder: Path) -> str:
    """An image of Debian with these packages; its name."""
    root, image = folder / name, f"localhost/voicepipe-{name}"
    run("debootstrap", "--variant=minbase", f"--include={','.join(packages)}", SUITE, str(root), MIRROR)
    for left_out in LEFT_OUT:
        shutil.rmtree(root / left_out, ignore_errors=True)
    container = run("buildah", "from", "scratch").strip()
    run("buildah", "add", "-q", container, str(root), "/")
    run("buildah", "commit", "-q", "--rm", container, image)
    shutil.rmtree(root)
    return image


def with_program(name: str, slim: str, path: str) -> str:
    """The image `slim` with a program of this machine, as what is started; the image's name."""
    container = run("buildah", "from", slim).strip()
    run("buildah", "copy", "-q", container, path, f"/usr/bin/{Path(path).name}")
    run("buildah", "config", "--entrypoint", f'["/usr/bin/{Path(path).name}"]', container)
    run("buildah", "commit", "-q", "--rm", container, f"localhost/voicepipe-{name}")
    return f"localhost/voicepipe-{name}"


def built(slim: str, builder: str) -> str:
    """Build the target `cpu`; the image's name."""
    volumes = [f"--volume={folder}:{folder}:ro" for folder in FOLDERS if Path(folder).is_dir()]
    run(
        "buildah", "bud", "--isolation", "chroot", "--format", "docker", "--target", "cpu", f"--build-arg=BASE={slim}",
        f"--build-arg=BUILDER={builder}", *volumes, "-f", "pops/deploy/containers/Containerfile", "-t", IMAGE, ".",
        within_s=1800,
    )  # fmt: skip
    return IMAGE


def run_options() -> Iterator[str]:
    """Options of `podman run` that a container inside a sandbox needs: no more rights than the sandbox itself has."""
    for name, kind, most in (("nofile", resource.RLIMIT_NOFILE, 65_536), ("nproc", resource.RLIMIT_NPROC, 4096)):
        hard = resource.getrlimit(kind)[1]
        limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
        yield f"--ulimit={name}={limit}:{limit}"
    if not os.path.exists("/run/systemd/private"):
        yield "--no-healthcheck"  # podman's timers are systemd's


def runtime() -> str:
    """The program by which podman runs a container."""
    return shutil.which("crun") or shutil.which("runc", path=f"{os.environ['PATH']}:/usr/sbin") or "crun"


def podman(*arguments: str, within_s: float = 300) -> str:
    """What podman prints."""
    return run("podman", "--runtime", runtime(), *arguments, within_s=within_s)
