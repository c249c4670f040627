"""Memory that is free again goes back to the system, however large the messages were that needed it."""

import ctypes
import logging
import platform

logger = logging.getLogger(__name__)

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's <malloc.h>."""
LARGE = 1024 * 1024
"""Bytes: blocks from this size on are mapped one by one. A second of sound, and what most messages are, is smaller."""


def give_back() -> bool:
    """Have large blocks go back to the system as soon as they are free; False: the C library is not told (no glibc).

    By itself glibc raises the size from which it does so with every such block that is freed, up to 32 MiB. From then
    on minutes of sound are cut from the heap, and small blocks that are still used keep what was freed below them.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    # Twice as much is kept at the heap's end, as glibc itself does: less would go to and fro all the time.
    told = bool(mallopt(M_MMAP_THRESHOLD, LARGE) and mallopt(M_TRIM_THRESHOLD, 2 * LARGE))
    if not told:
        logger.warning("glibc does not take its limits: memory that large messages needed may stay with the process")
    return told
