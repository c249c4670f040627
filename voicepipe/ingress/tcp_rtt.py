"""How long a connection's packets travel there and back, as the system has measured it. Linux alone tells."""

import socket
import struct
from typing import Any

_RTT, _LEAST_RTT = 68, 148
"""Where the kernel's `struct tcp_info` has them (uapi/linux/tcp.h, since 4.6)."""
_MICROSECONDS = struct.Struct("=I")
_NEVER = 0xFFFFFFFF


def tcp_rtt_ms(sock: Any) -> float | None:
    """The shortest of the last minutes, which no full buffer has lengthened, or else the usual one. None: it is not
    told, or `sock` is no open TCP socket."""
    option: int | None = getattr(socket, "TCP_INFO", None)
    if option is None or sock is None:
        return None
    try:
        info: bytes = sock.getsockopt(socket.IPPROTO_TCP, option, 256)
    except (OSError, ValueError):  # It is closed, or of another kind.
        return None
    for offset in (_LEAST_RTT, _RTT):
        if len(info) >= offset + _MICROSECONDS.size:
            (told,) = _MICROSECONDS.unpack_from(info, offset)
            if told not in (0, _NEVER):
                return float(told) / 1000
    return None
