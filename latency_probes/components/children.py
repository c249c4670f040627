"""Programs that a bench starts beside itself, and what they take."""

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from voicepipe.base.errors import ConfigError

READY = re.compile(rb"answers at (http://[^\s;,]+)")
READY_S = 120.0
END_S = 15.0


class ServingChild(NamedTuple):
    """One that serves."""

    pid: int
    url: str


@asynccontextmanager
async def serving(*args: str) -> AsyncIterator[ServingChild]:
    """`python ARGS` from when it says where it answers; it is ended with the context. Raises ConfigError: it does not
    start."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, *args,
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    assert child.stdout
    try:
        found = None
        with suppress(TimeoutError):
            async with asyncio.timeout(READY_S):
                found = READY.search(await child.stdout.readline())
        if found is None:
            what = " ".join(word for word in args if not word.startswith("-"))
            raise ConfigError(f"{what} did not start; `voicepipe doctor` says what is missing on this machine.")
        yield ServingChild(child.pid, found[1].decode())
    finally:
        await ended(child)


async def ended(child: asyncio.subprocess.Process) -> None:
    """Ask it to end; one that does not within `END_S` is killed."""
    with suppress(ProcessLookupError):
        child.terminate()
    try:
        await asyncio.wait_for(child.wait(), END_S)
    except TimeoutError:
        child.kill()
        await child.wait()


def cpu_s(pid: int) -> float | None:
    """Processor time that a process has taken so far; None where the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def waited_s(pid: int) -> float | None:
    """Time in which a process's main thread was ready to run and had no processor; None where the system does not
    tell."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return None


def rss_mb(pid: int) -> float | None:
    """Memory that a process holds, in MB of 1024 kB; None where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except OSError:
        return None
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024 / 1024
