"""What is kept of calls, and for how long."""

from typing import Annotated

from msgspec import Meta

from voicepipe.config.redaction_config import RedactionConfig


class RecordsConfig(RedactionConfig, frozen=True):
    folder: str = ""
    """Where a PoP keeps its records, in a file of its own (POP.db); it is made if it is not there. Empty: none are
    kept."""
    keep_days: Annotated[int, Meta(ge=1, le=36_500)] = 30
    """Then a record is deleted."""
    lines: str = ""
    """A file to which each record is appended as a line of JSON when its call ends; "-": standard output."""
