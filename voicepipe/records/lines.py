"""Records as JSON lines, for who ships logs: to a file, or to standard output. Blocking."""

import logging
import os
import sys

import msgspec

from voicepipe.records.record import CallRecord

logger = logging.getLogger(__name__)
STDOUT = "-"


def _for_its_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class Lines:
    """`place`: a file, which may be rotated at any time, or `STDOUT`; empty: nobody ships any."""

    def __init__(self, place: str) -> None:
        self._place = place

    def write(self, record: CallRecord) -> None:
        """One line. A file that cannot be written loses it: the record itself is kept."""
        if not self._place:
            return
        line = msgspec.json.encode(record) + b"\n"
        try:
            if self._place == STDOUT:
                sys.stdout.buffer.write(line)
                sys.stdout.buffer.flush()
            else:
                with open(self._place, "ab", opener=_for_its_owner) as file:
                    file.write(line)
        except OSError as error:
            logger.error("%s: not written to records.lines: %s", record.id, error)
