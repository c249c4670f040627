"""`python -m tests.fleet.skewed pop ...`, as `voicepipe pop ...`, but with a clock that is wrong.

The environment variable says by how many seconds. Debian's faketime would shift the monotonic clock as well, which is
right on a machine whose time of day is wrong.
"""

import os
import sys
import time

SKEW = "VOICEPIPE_CLOCK_SKEW_S"


def main() -> int:
    by, real = float(os.environ.get(SKEW, "0")), time.time
    if by:
        time.time = lambda: real() + by

    from voicepipe.commands.cli import main as voicepipe

    return voicepipe(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
