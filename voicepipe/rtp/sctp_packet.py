"""Checks by its bytes whether an SCTP packet (RFC 9260) is one that an honest peer sends. Pure.

To be asked before a parser that trusts its peer: aiortc's takes a parameter of length 0 for one that never ends, so
that a single packet stops the process, and answers every one of 370 heartbeats that fit into a packet.
"""

import struct
from collections import Counter

HEADER = 12
MOST_CHUNKS = 74
"""Chunks in a packet: no more than 1,500 bytes of it are read, and the shortest DATA chunk, of one byte, takes 20."""
MOST_OF_A_KIND = 2
"""Chunks of one kind in a packet, except DATA. RFC 9260 bundles one SACK; a RE-CONFIG may answer one and ask in another
(RFC 6525, 5.1)."""
MOST_PARAMETERS = 16
"""Parameters in a chunk: usrsctp's INIT has eight, dcSCTP's (Chrome) three or four."""
MOST_REQUESTS = 2
"""Requests in a RE-CONFIG (RFC 6525, 3.1)."""

DATA, INIT, INIT_ACK, SACK, HEARTBEAT, HEARTBEAT_ACK, ABORT, SHUTDOWN, ERROR = 0, 1, 2, 3, 4, 5, 6, 7, 9
RECONFIG, FORWARD_TSN = 130, 192
_LEAST = {DATA: 13, INIT: 16, INIT_ACK: 16, SACK: 12, SHUTDOWN: 4, FORWARD_TSN: 4}
"""Fewest bytes of a chunk's value."""
_PARAMETERS = {INIT: 16, INIT_ACK: 16, HEARTBEAT: 0, HEARTBEAT_ACK: 0, ABORT: 0, ERROR: 0, RECONFIG: 0}
"""Where in a chunk's value its parameters begin."""
_REQUESTS = {13: 12, 16: 8, 17: 8}
"""Fewest bytes of these parameters of a RE-CONFIG: reset, response, more streams."""
_COUNTS = struct.Struct("!8xHH")
_HEAD = struct.Struct("!BBH")
_PARAMETER = struct.Struct("!HH")


def is_fit(packet: bytes) -> bool:
    """Whether a packet is one that an honest peer sends: its chunks and their parameters fit into it, and there are not
    too many of them."""
    end, start, kinds = len(packet), HEADER, Counter[int]()
    if end < HEADER + _HEAD.size:
        return False
    while start + _HEAD.size <= end:
        kind, _, length = _HEAD.unpack_from(packet, start)
        kinds[kind] += 1
        if length < _HEAD.size or start + length > end or kinds.total() > MOST_CHUNKS:
            return False
        if kind != DATA and kinds[kind] > MOST_OF_A_KIND:
            return False
        if not _is_fit_value(kind, packet[start + _HEAD.size : start + length]):
            return False
        start += length + -length % 4
    return True


def _is_fit_value(kind: int, value: bytes) -> bool:
    if len(value) < _LEAST.get(kind, 0):
        return False
    if kind == SACK:
        gaps, duplicates = _COUNTS.unpack_from(value)
        return bool(len(value) == 12 + 4 * (gaps + duplicates))
    if kind == FORWARD_TSN:
        return len(value) % 4 == 0
    return kind not in _PARAMETERS or _are_fit_parameters(kind, value[_PARAMETERS[kind] :])


def _are_fit_parameters(kind: int, value: bytes) -> bool:
    start = count = 0
    while start + _PARAMETER.size <= len(value):
        parameter, length = _PARAMETER.unpack_from(value, start)
        count += 1
        if length < _PARAMETER.size or start + length > len(value):
            return False
        if kind == RECONFIG and not _is_fit_request(parameter, length - _PARAMETER.size):
            return False
        start += length + -length % 4
    return count <= (MOST_REQUESTS if kind == RECONFIG else MOST_PARAMETERS)


def _is_fit_request(parameter: int, length: int) -> bool:
    least = _REQUESTS.get(parameter, 0)
    return length >= least and (parameter != 13 or length % 2 == 0)
