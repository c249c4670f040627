"""Whether what a configuration tells others of calls can be told from here."""

from collections.abc import Iterator

from voicepipe.config import Config
from voicepipe.doctor.finding import Finding
from voicepipe.observe import traces


def findings(config: Config) -> Iterator[Finding]:
    """A row for traces, where there are to be some."""
    if not config.traces.endpoint:
        return
    said, _, way_out = traces.problem(config).removeprefix("traces: ").partition("; ")
    yield Finding("traces", "broken" if said else "ok", said or f"they go to {config.traces.endpoint}", way_out)
