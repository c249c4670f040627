"""Server-sent events out of bytes, as they come: https://html.spec.whatwg.org/multipage/server-sent-events.html.

Servers of language models keep to it loosely, so this is looser than the standard: an event whose data is JSON is given
out with its line, not with the empty line after it, which some leave out. A body that is JSON itself, without events,
is given out in the same way: some servers do not stream, and some write an object a line. What a server reports by the
field "error" (llama.cpp) or by an event of that name is given out as {"error": ...}.
"""

import json
import re
from collections.abc import Iterator

import msgspec

from voicepipe.base.errors import EngineError

LONGEST_EVENT = 1 << 20
"""Bytes; no token is as long."""
DONE = b"[DONE]"
"""Data of the last event, by OpenAI's convention."""
BOM = b"\xef\xbb\xbf"
BLANK = b" \t\0"
LINE_ENDS = re.compile(rb"\r\n|\r|\n")
_JSON = msgspec.json.Decoder(msgspec.Raw)


class EventStream:
    """Parses one response's body as server-sent events: takes it in pieces, and returns the data of its events."""

    def __init__(self) -> None:
        self._rest = bytearray()
        """The part of the last line that is there."""
        self._after_cr = self._begun = self._bare = self._fails = False
        """The piece before ended in CR; a line has come; the body is JSON, without events; the event has the name
        "error"."""
        self._data: list[bytes] = []
        """Lines of an event that is not complete."""
        self._size = 0
        """Bytes of the lines in `_data`."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The events that this piece completes. Raises EngineError: this is no stream of events."""
        if self._after_cr and piece.startswith(b"\n"):
            piece = piece[1:]
        if not piece:
            return
        # Only the new piece is searched, and what came before is copied once: a line may come a byte at a time.
        self._after_cr = piece.endswith(b"\r")
        lines: list[bytes] = []
        if (end := max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1) > 0:
            lines = LINE_ENDS.split(bytes(self._rest + piece[:end]))[:-1]
            self._rest = bytearray()
        self._rest += piece[end:]
        if len(self._rest) + self._size > LONGEST_EVENT:
            raise EngineError("The language model's server sends no events: look whether openai.base_url is right.")
        for line in lines:
            yield from self._line(line)

    def rest(self) -> Iterator[bytes]:
        """What came without its end, once the stream has ended."""
        if self._rest:
            line, self._rest = bytes(self._rest), bytearray()
            yield from self._line(line)
        yield from self._flush()

    def _line(self, line: bytes) -> Iterator[bytes]:
        line = line.strip(BLANK)
        if not self._begun and (line := line.removeprefix(BOM).strip(BLANK)):
            self._begun, self._bare = True, line.startswith(b"[")
        self._bare |= line.startswith(b"{")
        if self._bare:
            if line.startswith(b"data:"):
                yield from self._flush()
            data = line.removeprefix(b"data:").strip()
        elif line == b"data" or line.startswith(b"data:"):
            data = line[5:].strip()
        elif not line:
            yield from self._flush()
            self._fails = False
            return
        else:
            field, _, value = line.partition(b":")
            if field == b"event":
                self._fails = value.strip() == b"error"
            elif field == b"error":
                yield _reported(value.strip())
            return  # Others are comments, or fields that we need not know.
        if not data:
            return
        if not self._data and _complete(data):
            yield _reported(data) if self._fails else data
        else:
            self._data.append(data)
            self._size += len(data)

    def _flush(self) -> Iterator[bytes]:
        """The event ends. What several lines make no sense of together, they may make alone."""
        lines, self._data, self._size = self._data, [], 0
        joined = b"\n".join(lines)
        if len(lines) < 2 or _complete(joined):
            if joined:
                yield _reported(joined) if self._fails else joined
        else:
            yield from lines


def _complete(data: bytes) -> bool:
    """Whether no further line can belong to it."""
    return not data.startswith((b"{", b"[")) or data.upper() == DONE or _is_json(data)


def _is_json(data: bytes) -> bool:
    try:
        _JSON.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return False
    return True


def _reported(value: bytes) -> bytes:
    """An error as an event of its own."""
    text = value.decode("utf-8", "replace")
    return b'{"error":%b}' % (value if value and _is_json(value) else json.dumps(text or "error").encode())
