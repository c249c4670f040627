"""What a tool says of its progress while it runs: a Python function that yields, or lines of a webhook's answer."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import msgspec

from voicepipe.base.errors import OutcomeUnknown

log = logging.getLogger(__name__)
LINES = "application/x-ndjson"
"""The content type of a webhook's answer that is lines of JSON (github.com/ndjson/ndjson-spec): any number of
{"progress": TEXT}, then one {"result": RESULT}."""
Tell = Callable[[str], None]
"""Gets a text that the caller is to hear while the tool runs."""


@dataclass(frozen=True, slots=True)
class Progress:
    """What a Python tool yields to have `text` said to the caller while it goes on."""

    text: str


class _ProgressLine(msgspec.Struct):
    progress: str = ""
    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class ProgressLines:
    """Reads a webhook's answer that is lines of JSON, as it comes."""

    def __init__(self, name: str, tell: Tell) -> None:
        """`name` of the tool, for errors."""
        self.result: str | None = None
        """The tool's result, as the model reads it; None: it has not come yet."""
        self._name, self._tell = name, tell
        self._rest = bytearray()

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the answer."""
        *lines, rest = piece.split(b"\n")
        for line in lines:
            self._take(bytes(self._rest + line))
            self._rest.clear()
        self._rest += rest

    def end(self) -> str:
        """The result, where nothing more comes. Raises OutcomeUnknown: there was none."""
        self._take(bytes(self._rest))
        if self.result is None:
            raise OutcomeUnknown(f"{self._name} ended its answer without a result; nobody knows whether it was done")
        return self.result

    def _take(self, line: bytes) -> None:
        if self.result is not None or not line.strip():
            return
        try:
            read = msgspec.json.decode(line, type=_ProgressLine)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            log.error('%s answered with a line that is neither {"progress": TEXT} nor {"result": ...}', self._name)
            return
        if read.progress:
            self._tell(read.progress)
        if isinstance(read.result, msgspec.Raw):
            self.result = _as_text(bytes(read.result))


def _as_text(result: bytes) -> str:
    """A result in JSON as the model reads it: text as it is, null as "", everything else as JSON."""
    with suppress(msgspec.MsgspecError):
        return msgspec.json.decode(result, type=str | None) or ""
    return result.decode("utf-8", "replace")
