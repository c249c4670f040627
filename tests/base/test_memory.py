"""What large messages needed is given back."""

import platform
import subprocess
import sys

import pytest

MESSAGES, SIZE = 12, 15_000_000
CHILD = f"""
import sys, psutil
from voicepipe.base import memory
if sys.argv[1] == "told" and not memory.give_back():
    sys.exit("not glibc")
rss = psutil.Process().memory_info().rss
kept = []
for size in range({SIZE}, {SIZE} + {MESSAGES}):  # glibc learns of each size that there are such large blocks.
    del (message := bytearray(size))[:]
messages = []
for _ in range({MESSAGES}):
    messages.append(b"." * {SIZE})
    kept.append(b"." * 100_000)  # Small, still used, and above the message.
messages.clear()
print(psutil.Process().memory_info().rss - rss)
"""

BETWEEN = """
import asyncio, psutil
from voicepipe.base import memory
memory.give_back()
memory.TRIM_S = 0.01
kept, freed = [], []
for _ in range(500):
    freed.append(bytearray(100_000))
    kept.append(bytearray(1_000))  # Small, still used, and above the other.
freed.clear()

async def main():
    before = psutil.Process().memory_info().rss
    job = asyncio.create_task(memory.trimmed())
    async with asyncio.timeout(30):
        while before - psutil.Process().memory_info().rss < 40_000_000:
            await asyncio.sleep(0.01)
    job.cancel()

asyncio.run(main())
"""

USED = """
from voicepipe.base import memory
before = memory.in_use_kb()
kept = [bytearray(1000 * 1024), *(bytearray(10 * 1024) for _ in range(100))]
assert 1900 < memory.in_use_kb() - before < 2500
kept.clear()
assert memory.in_use_kb() - before < 500
"""


def grown(how: str) -> int:
    """Bytes of a process's memory, after large messages of which small parts are kept."""
    return int(subprocess.run([sys.executable, "-c", CHILD, how], check=True, capture_output=True, timeout=60).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told")
def test_large_blocks_that_are_free_go_back_to_the_system() -> None:
    assert grown("told") < 3 * SIZE < MESSAGES * SIZE / 2 < grown("not told")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told")
def test_pages_between_blocks_that_are_used_go_back_to_the_system() -> None:
    subprocess.run([sys.executable, "-c", BETWEEN], check=True, timeout=60)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc tells")
def test_blocks_in_use_are_told_large_and_small() -> None:
    subprocess.run([sys.executable, "-c", USED], check=True, timeout=60)
