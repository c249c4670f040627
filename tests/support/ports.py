"""Ports for servers that a test starts: nobody has them, and nobody is given them by chance meanwhile.

They lie below those that systems deal out by themselves (Linux: from 32768 on), and each process that runs tests has a
part of its own.
"""

import os
import random
import socket
from itertools import count

FIRST, EACH, PARTS = 10_240, 2_560, 8

_process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % PARTS
_tried = count(random.randrange(EACH), 7)  # Others may run tests here, and programs take the port after theirs, too.


def free_port() -> int:
    """Of loopback, by TCP and by UDP."""
    for number in _tried:
        port = FIRST + _process * EACH + number % EACH
        try:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_INET, kind) as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return port
    raise AssertionError("there is always a next one")
