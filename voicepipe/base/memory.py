"""Returns free memory to the system, however large the messages were that needed it."""

import asyncio
import ctypes
import logging
import platform

logger = logging.getLogger(__name__)

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Options of glibc's <malloc.h>."""
LARGE = 1024 * 1024
"""Bytes: blocks from this size on are mapped one by one. A second of sound, and most messages, are smaller."""
TRIM_S = 60.0
"""Seconds between giving back smaller blocks."""
_SIZES = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"


class _Mallinfo2(ctypes.Structure):
    """The result of mallinfo(3), in bytes."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in _SIZES.split())


def in_use_kb() -> int:
    """KiB of glibc's blocks that are used, large and small ones; 0: unknown. Python's own small objects are not among
    them (`sys.getallocatedblocks`)."""
    ask = getattr(ctypes.CDLL(None), "mallinfo2", None)  # glibc 2.33 and newer
    if ask is None:
        return 0
    ask.restype = _Mallinfo2
    figures = ask()
    return int(figures.uordblks + figures.hblkhd) // 1024


def give_back() -> bool:
    """Have large blocks returned to the system as soon as they are free; False: the C library has no such setting (no
    glibc). By itself glibc raises the size from which it does so with every such block that is freed, up to 32 MiB.
    From then on minutes of sound are cut from the heap, and small blocks that are still used keep what was freed below
    them."""
    if platform.libc_ver()[0] != "glibc":
        return False
    mallopt = ctypes.CDLL(None).mallopt
    # Twice as much is kept at the heap's end, as glibc itself does: less would go to and fro all the time.
    is_set = bool(mallopt(M_MMAP_THRESHOLD, LARGE) and mallopt(M_TRIM_THRESHOLD, 2 * LARGE))
    if not is_set:
        logger.warning("glibc does not take its limits: memory that large messages needed may stay with the process")
    return is_set


async def trimmed() -> None:
    """Until cancelled, have free pages between blocks that are used returned to the system (malloc_trim(3)); without
    glibc nothing is done. By itself glibc returns only the end of its first heap. It takes about 1 ms."""
    if platform.libc_ver()[0] != "glibc":
        return
    trim = ctypes.CDLL(None).malloc_trim
    while True:
        await asyncio.sleep(TRIM_S)
        await asyncio.to_thread(trim, 0)
