"""How many calls a second one PoP takes by SIP, and how soon it answers them.

sipp calls a PoP that runs as a child of this process, on loopback, with scripted engines: what is measured is
signalling, media and their bookkeeping. sipp's own clock says how long the answers took.
"""

import asyncio
import csv
import json
import shutil
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from latency_probes.components import children
from voicepipe.base.errors import ConfigError
from voicepipe.base.figures import for_tables, keep, percentile
from voicepipe.config import Config
from voicepipe.serving import runtime

CONFIG = """
[pop]
slots = 10000
budget_ms = 60000
loop_lag_ms = 60000
[sip]
silent_ms = 120000
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""
GRACE_S = 60
"""After the last call has begun and was held, sipp may wait so long for what is missing."""
MEDIA_PORT = 20_000


class SipLoad(NamedTuple):
    """`calls` calls in all, `rate` of them begun each second, held for `length_s` seconds."""

    calls: int
    rate: int
    length_s: float


CAPTION = """in ms; p50, p95, p99: from INVITE to 200
CPU: of the PoP, a call; loop lag: p99"""
LOADS = (SipLoad(600, 30, 3.0), SipLoad(500, 50, 3.0))


@dataclass(frozen=True)
class SipResult:
    """Of one load."""

    failed: int
    answer_ms: list[float]
    """From each INVITE to its 200, in order of size."""
    cpu_ms: float | None
    """Of the PoP, for each call; None where the system does not tell."""
    lag_p99_ms: float


class _Pop(NamedTuple):
    """The child."""

    pid: int
    url: str
    port: int


async def run(json_file: Path | None) -> int:
    """Measure and print; 1 if a call failed. Raises ConfigError: sipp is not there, ProbeError: `json_file` cannot be
    written."""
    console = for_tables()
    table = Table(title="calls by SIP from sipp, scripted engines", caption=CAPTION)
    table.add_column("calls", no_wrap=True)
    for column in ("failed", "p50", "p95", "p99", "CPU", "loop lag"):
        table.add_column(column, justify="right", no_wrap=True)
    failed, results = 0, []
    for load in LOADS:
        with console.status(f"{load.calls} calls, {load.rate} a second ..."):
            result = await measured(load)
        failed += result.failed
        results.append({"load": load._asdict(), "result": result})
        found = [percentile(result.answer_ms, percent) for percent in (50, 95, 99)]
        times = ["-" if ms is None else f"{ms:.0f}" for ms in found]
        cpu = "-" if result.cpu_ms is None else f"{result.cpu_ms:.1f}"
        what = f"{load.calls}, {load.rate}/s, {load.length_s:g} s each"
        table.add_row(what, str(result.failed), *times, cpu, f"{result.lag_p99_ms:.1f}")
    console.print(table)
    keep(json_file, results)
    return 1 if failed else 0


async def measured(load: SipLoad) -> SipResult:
    """What a fresh PoP makes of this load. Raises ConfigError: sipp is not there, or the PoP does not start."""
    if shutil.which("sipp") is None:
        raise ConfigError("sipp is needed to place the calls: install it (Debian, Ubuntu: apt install sip-tester).")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with _pop(folder) as pop:
            before = children.cpu_s(pop.pid)
            await _sipp(load, pop.port, folder)
            after = children.cpu_s(pop.pid)
            lag = (await asyncio.to_thread(_health, pop.url))["loop_lag_p99_ms"]
        cpu = None if before is None or after is None else 1000 * (after - before) / load.calls
        answers, done = _told(folder)
        return SipResult(load.calls - done, answers, cpu, lag)


@asynccontextmanager
async def _pop(folder: Path) -> AsyncIterator[_Pop]:
    config, port = folder / "pop.toml", runtime.with_sip_port(Config(), 0).sip.port
    config.write_text(CONFIG)
    options = "--config", str(config), "--port", "0", "--sip-port", str(port)
    async with children.serving("-m", "voicepipe", "pop", *options) as child:
        yield _Pop(child.pid, child.url, port)


async def _sipp(load: SipLoad, port: int, folder: Path) -> None:
    seconds = round(load.calls / load.rate + load.length_s) + GRACE_S
    process = await asyncio.create_subprocess_exec(
        "sipp", "-sn", "uac", f"127.0.0.1:{port}", "-i", "127.0.0.1", "-mp", str(MEDIA_PORT), "-r", str(load.rate),
        "-m", str(load.calls), "-d", str(round(1000 * load.length_s)), "-timeout", str(seconds), "-nostdin",
        "-trace_rtt", "-rtt_freq", "1", "-trace_stat", "-stf", "stat.csv",
        cwd=folder, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        await process.wait()
    finally:
        with suppress(ProcessLookupError):
            process.kill()


def _told(folder: Path) -> tuple[list[float], int]:
    """sipp's response times in ms, in order of size, and how many calls went well."""
    times: list[float] = []
    for path in folder.glob("*_rtt.csv"):
        with path.open() as file:
            times += [float(row["response_time_ms"]) for row in csv.DictReader(file, delimiter=";")]
    try:
        with (folder / "stat.csv").open() as file:
            *_, last = csv.DictReader(file, delimiter=";")
            done = int(last["SuccessfulCall(C)"])
    except (OSError, ValueError):  # sipp wrote nothing: it could not even begin.
        done = 0
    return sorted(times), done


def _health(url: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{url}/healthz") as answer:
        return dict(json.load(answer))
