"""What large messages needed is given back."""

import platform
import subprocess
import sys

import pytest

MESSAGES, SIZE = 12, 15_000_000
CHILD = f"""
import sys, psutil
from voicepipe import memory
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


def grown(how: str) -> int:
    """Bytes of a process's memory, after large messages of which small parts are kept."""
    return int(subprocess.run([sys.executable, "-c", CHILD, how], check=True, capture_output=True, timeout=60).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc is told")
def test_large_blocks_that_are_free_go_back_to_the_system() -> None:
    assert grown("told") < 3 * SIZE < MESSAGES * SIZE / 2 < grown("not told")
