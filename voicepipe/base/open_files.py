"""How many files and sockets this process may have open, and how many of them connections may take."""

import logging
import os
import resource

logger = logging.getLogger(__name__)

RESERVE = 128
"""Descriptors for what runs beside calls: models, agents' files, tools, the log, engines' processes."""
A_CALL = 8
"""Descriptors that a call opens besides its own connection: two sockets of media an address, its tools, programs beside
it."""
LEAST = 16
"""Connections that are taken even where the limit leaves no room for them."""


def raise_limit() -> int:
    """Raise the soft limit to the hard one; returns the descriptors that this process may have open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        except (OSError, ValueError) as error:  # macOS calls its hard limit unlimited, and refuses it
            logger.info("the limit of %d open files cannot be raised: %s", soft, error)
    return limit()


def limit() -> int:
    """Descriptors that this process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def open_now() -> int:
    """Descriptors that are open; -1: the system does not say."""
    try:
        return len(os.listdir("/dev/fd"))
    except OSError:
        return -1


def room(slots: int, limit: int, in_use: int) -> int:
    """Connections that may be open at a time, so that calls and what runs beside them never lack a descriptor."""
    return max(LEAST, limit - max(in_use, 0) - RESERVE - A_CALL * slots)


def for_calls(slots: int) -> int:
    """`room` in this process now; too little room is logged."""
    found = room(slots, limit(), open_now())
    return _checked(found, slots, f"{slots} calls")


def for_relays(connections: int) -> int:
    """`relayed` in this process now; too little room is logged."""
    found = relayed(connections, limit(), open_now())
    return _checked(found, connections, f"{connections} connections")


def _checked(found: int, wanted: int, what: str) -> int:
    if found < wanted:
        logger.warning("the limit of %d open files is low for %s: raise it (ulimit -n, LimitNOFILE=)", limit(), what)
    return found


def relayed(connections: int, limit: int, in_use: int) -> int:
    """How many of so many `connections` may be open at a time, if each has another one to a PoP behind it."""
    return max(LEAST, min(connections, (limit - max(in_use, 0) - RESERVE) // 2))
