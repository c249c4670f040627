"""`voicepipe doctor`: what works on this machine, and what to do about the rest."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console

from voicepipe import config
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config
from voicepipe.doctor import demo_needs, gpu, node
from voicepipe.doctor.finding import Finding, show
from voicepipe.observe import traces

__all__ = ["Finding", "compare", "run", "to_json"]


def run(config_file: Path | None = None, console: Console | None = None) -> int:
    """Print the table. Exit status 1 if something that the demo needs, or that this configuration needs, is broken."""
    console = console or Console(highlight=False)
    settings = config.load(config_file) if config_file else None
    findings = [finding for check in demo_needs.OF_MACHINE for finding in check()]
    findings += [finding for check in demo_needs.OF_CONFIG for finding in check(settings)]
    findings += gpu.findings(settings)
    if settings and config_file:
        findings += gpu.engines(settings, config_file)
        findings += of_traces(settings)
    broken = show(findings, console)
    well = f"A PoP can run: voicepipe pop --config {config_file}" if config_file else "The demo can run: make demo"
    console.print(f"\nbroken: {', '.join(broken)}" if broken else f"\n{well}")
    return 1 if broken else 0


def of_traces(config: Config) -> Iterator[Finding]:
    """A row for traces, where they are configured."""
    if not config.traces.endpoint:
        return
    said, _, way_out = traces.problem(config).removeprefix("traces: ").partition("; ")
    yield Finding("traces", "broken" if said else "ok", said or f"they go to {config.traces.endpoint}", way_out)


def to_json(config_file: Path | None = None) -> int:
    """Print what machines that share a model must have in common."""
    settings = config.load(config_file) if config_file else Config()
    print(json.dumps(msgspec.to_builtins(node.read(settings)), indent=2))
    return 0


def compare(files: Sequence[Path], console: Console | None = None) -> int:
    """Print what differs between machines, by their `to_json`. Exit status 1 if it keeps them from sharing a model.
    Raises ConfigError: there are not two."""
    if len(files) < 2:
        raise ConfigError("--compare: give the files of two machines or more, each written by `doctor --json`")
    console = console or Console(highlight=False)
    differences = node.differences([node.load(file) for file in files])
    if not differences:
        console.print(f"{len(files)} machines, nothing differs")
        return 0
    return 1 if show(differences, console) else 0
