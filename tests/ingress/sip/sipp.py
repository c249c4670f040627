"""sipp as a caller: the scenarios of `sipp/`, each a process of its own that places so many calls and ends."""

import asyncio
import random
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.ports import free_port

SCENARIOS = Path(__file__).parent / "sipp"
SECONDS = 60
"""For all calls of a scenario, on slow machines too."""

pytestmark = pytest.mark.skipif(shutil.which("sipp") is None, reason="sipp is not installed: apt install sip-tester")


async def sipp(scenario: str, port: int, folder: Path, *options: str, calls: int = 1, held_ms: int = 300) -> None:
    """Call the PoP at UDP port `port`. Raises AssertionError, with what sipp says: a call did not go as it should.

    `folder` is where sipp writes, and finds the sound that a scenario plays.
    """
    said, errors = folder / "said.txt", folder / "errors.txt"
    with said.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            "sipp", f"127.0.0.1:{port}", "-sf", str(SCENARIOS / f"{scenario}.xml"), "-m", str(calls),
            "-d", str(held_ms), "-i", "127.0.0.1", "-p", str(free_port()), "-mp", str(_media_port()),
            "-timeout", str(SECONDS), "-timeout_error", "-nostdin", "-trace_err", "-error_file", str(errors), *options,
            cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=output, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
    with _ended(process):
        status = await asyncio.wait_for(process.wait(), SECONDS + 10)
    if status:
        told = errors.read_text(errors="replace") if errors.exists() else said.read_text(errors="replace")
        raise AssertionError(f"sipp's {scenario} ended with {status}: {told[-3000:]}")


@contextmanager
def _ended(process: asyncio.subprocess.Process) -> Iterator[None]:
    try:
        yield
    finally:
        with suppress(ProcessLookupError):
            process.kill()


def _media_port() -> int:
    """An even port of loopback that is free, as is the one two above, which sipp takes for video; not one of those that
    the system gives to others meanwhile."""
    while True:
        port = random.randrange(31_000, 32_700, 2)
        with ExitStack() as stack, suppress(OSError):
            for wanted in (port, port + 2):
                stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)).bind(("127.0.0.1", wanted))
            return port
