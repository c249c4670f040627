"""What a virtual machine's host kept for others while we measured: nothing inside the machine shows it but this."""

import os
import time
from pathlib import Path

MUCH = 0.05
"""Share of all cores' time, beyond which latencies say more of the host than of what was measured."""
STEAL = 8
"""Column of /proc/stat (proc_stat(5))."""


def stolen_s() -> float:
    """Seconds, over all cores, since the machine started; 0 where the system does not tell."""
    try:
        figures = Path("/proc/stat").read_text().split("\n", 1)[0].split()
        return int(figures[STEAL]) / os.sysconf("SC_CLK_TCK")
    except (OSError, IndexError, ValueError):
        return 0.0


class Stolen:
    """From now on."""

    def __init__(self) -> None:
        self._at, self._stolen_s = time.monotonic(), stolen_s()

    def share(self) -> float:
        """Of all cores' time."""
        seconds = time.monotonic() - self._at
        return (stolen_s() - self._stolen_s) / seconds / (os.cpu_count() or 1) if seconds > 0 else 0.0

    def warning(self) -> str:
        """A sentence; empty where there is nothing to warn of."""
        if (share := self.share()) <= MUCH:
            return ""
        return f"the machine's host kept {share:.0%} of its cores for others: latencies say little"
