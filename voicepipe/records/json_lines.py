"""The file of `records.lines`: each record as one line of JSON, for log shippers. Blocking: a thread's work."""

import logging
import os
import sys
from collections.abc import Collection

import msgspec

from voicepipe.records.record import CallRecord

logger = logging.getLogger(__name__)

STDOUT = "-"
_ID = b'{"id":"'
"""How each line begins."""


def write_line(record: CallRecord, destination: str) -> None:
    """Write a record as a JSON line. `destination`: a file, which may be rotated at any time, or `STDOUT`; empty:
    nothing is written. A file that cannot be written loses the line: the record itself is kept."""
    if not destination:
        return
    line = msgspec.json.encode(record) + b"\n"
    try:
        if destination == STDOUT:
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
        else:
            with open(destination, "ab", opener=_for_its_owner) as file:
                file.write(line)
    except OSError as error:
        logger.error("%s: not written to records.lines: %s", record.id, error)


def erase_lines(ids: Collection[str], destination: str, start: int = 0) -> int:
    """Overwrite the lines of these calls, from this byte of the file on, with lines as long that only say that they
    were deleted: a log shipper goes on where it was, and whoever appends meanwhile is not disturbed. Returns the byte
    up to which the file was read. Raises OSError."""
    if destination in ("", STDOUT):
        return 0
    wanted, at, erased = {call_id.encode() for call_id in ids}, 0, 0
    try:
        with open(destination, "r+b") as file:
            at = start if start <= file.seek(0, os.SEEK_END) else 0  # It was rotated meanwhile.
            file.seek(at)
            while (line := file.readline()).endswith(b"\n"):
                call_id = line[len(_ID) : line.find(b'"', len(_ID))] if line.startswith(_ID) else b""
                if call_id in wanted and not line.startswith(stub := _ID + call_id + b'","deleted":true}'):
                    file.seek(at)
                    file.write(stub.ljust(len(line) - 1) + b"\n")
                    erased += 1
                at += len(line)
                file.seek(at)
            if erased:
                file.flush()
                os.fsync(file.fileno())
    except FileNotFoundError:  # Nothing was written yet, or it was just rotated.
        return 0
    return at


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
