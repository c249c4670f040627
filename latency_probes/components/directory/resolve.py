"""How soon one directory says where to call, at so many requests a second.

The directory runs as in production, in a process of its own, and hears of 50 PoPs by NATS. They only report, from this
process. The load comes from a third one.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec
from rich.console import Console
from rich.table import Table

from latency_probes.components import children
from latency_probes.components.directory import fleet
from latency_probes.components.directory.load import Answers, RequestLoad, processor_s
from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables, keep, percentile

POPS = 50
CONNECTIONS = 16
AIM_P99_MS, AIM_MB = 10.0, 200.0
CAPTION = """answer: ms from when a request is due to the last byte of its answer; nothing is subtracted
lost: no answer, another than 200, or fewer than three tokens; percentiles count these as answers that never come
late: ms by which the generator sent requests after they were due (p99)
directory, generator, PoPs: processor time, of one core; waited: the directory was ready to run, and others ran"""


class Resolved(NamedTuple):
    """What one load was like."""

    rate: int
    answers: Answers
    bus: str
    directory_share: float | None
    """Of one core; None where the system does not tell."""
    waited_share: float | None
    """Of the time, that the directory was ready to run and had no processor: others had them."""
    directory_mb: float | None
    """What the directory held at the end."""
    pops_share: float
    """Of one core: what the 50 PoPs took in this process."""


async def run(rate: int, seconds: float, json_file: Path | None, *, forwarded: bool) -> int:
    """Measure and print; 1 if an aim is missed. Raises ConfigError: something does not start, ProbeError: `json_file`
    cannot be written."""
    console = for_tables()
    with console.status(f"{rate} requests a second, for {seconds:.0f} s ..."):
        found = await measured(rate, seconds, forwarded=forwarded)
    keep(json_file, found._asdict())
    return 0 if show(found, console) else 1


async def measured(rate: int, seconds: float, pops: int = POPS, *, forwarded: bool = False) -> Resolved:
    """What a fresh directory makes of this load. Raises ConfigError: something does not start."""
    with tempfile.TemporaryDirectory() as folder:
        async with fleet.running(Path(folder), {}, simulated_pops=pops) as up:
            parts = urlsplit(up.url)
            names = tuple(f"sim{number:02}" for number in range(pops))
            load = RequestLoad(
                parts.hostname or "", parts.port or 0, up.key, rate, seconds, CONNECTIONS, names, forwarded
            )
            began, own = time.monotonic(), processor_s()
            before = children.cpu_s(up.pid), children.waited_s(up.pid)
            answers = await _loaded(load)
            took = time.monotonic() - began
            worked, waited = map(_less, (children.cpu_s(up.pid), children.waited_s(up.pid)), before)
            return Resolved(
                rate, answers, up.bus, worked and worked / took, waited and waited / took, children.rss_mb(up.pid),
                (processor_s() - own) / took,
            )  # fmt: skip


def _less(after: float | None, before: float | None) -> float | None:
    return None if after is None or before is None else after - before


async def _loaded(load: RequestLoad) -> Answers:
    generator = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "latency_probes.components.directory.load", msgspec.json.encode(load).decode(),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        said, _ = await generator.communicate()
    finally:
        if generator.returncode is None:
            await children.ended(generator)
    if generator.returncode:
        raise ConfigError("The generator of the load failed; what it wrote stands above.")
    return msgspec.json.decode(said, type=Answers)


def show(found: Resolved, console: Console) -> bool:
    """Print the table; whether the aims are held."""
    answers = found.answers
    lost = answers.asked - len(answers.times)
    times = [*answers.times, *[float("inf")] * lost]
    p50, p95, p99, most = (percentile(times, percent) or 0.0 for percent in (50, 95, 99, 100))
    table = Table(title=f"where to call: {answers.asked} requests, {found.rate} a second, {POPS} PoPs, {found.bus}",
                  caption=CAPTION, caption_justify="left")  # fmt: skip
    for column in ("answer p50", "p95", "p99", "max", "lost", "late", "directory", "waited", "MB", "generator", "PoPs"):
        table.add_column(column, justify="right", no_wrap=True)
    shares = ["-" if share is None else f"{share:.0%}" for share in (found.directory_share, found.waited_share)]
    memory = "-" if found.directory_mb is None else f"{found.directory_mb:.0f}"
    table.add_row(*(f"{ms:.1f}" for ms in (p50, p95, p99, most)), str(lost),
                  f"{percentile(answers.late, 99) or 0.0:.1f}", *shares, memory, f"{answers.cpu_share:.0%}",
                  f"{found.pops_share:.0%}")  # fmt: skip
    console.print(table)
    for status, count in answers.statuses.items():
        console.print(f"{count} answers had status {status}")
    if answers.short:
        console.print(f"{answers.short} answers had fewer than three tokens")
    missed = []
    if p99 > AIM_P99_MS:
        missed.append(f"p99 {p99:.1f} ms, at most {AIM_P99_MS:.0f}")
    if found.directory_mb and found.directory_mb > AIM_MB:
        missed.append(f"{found.directory_mb:.0f} MB, at most {AIM_MB:.0f}")
    for aim in missed:
        console.print(f"[red]over the aim:[/] {aim}")
    return not missed
