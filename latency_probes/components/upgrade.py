"""What callers notice while their PoP is upgraded: `voicepipe upgrade`, again and again, under calls that come and go.

Half of the calls come by WebRTC and half by SIP. Each lasts for `CALL_S`, and another takes its place at once. A call
counts as cut if its sound has stopped before the caller hung up.
"""

import asyncio
import json
import os
import signal
import tempfile
import time
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import msgspec
from rich.table import Table

from latency_probes.capacity import Asker, Way, question, ways
from latency_probes.components import children
from voicepipe.base.errors import ConfigError, ProbeError
from voicepipe.base.figures import for_tables, keep, percentile
from voicepipe.config import Config
from voicepipe.rtp.clock import MediaClock
from voicepipe.serving import runtime

CONFIG = """
[pop]
slots = 1000
budget_ms = 60000
loop_lag_ms = 60000
[engines]
vad = "scripted"
asr = "scripted"
llm = "scripted"
tts = "scripted"
"""
CALL_S = 20.0
BETWEEN_S = 30.0
"""Seconds before each upgrade: all calls of the process before the last one are over by then."""
CUT_S = 2.0
"""Seconds without a packet after which a call counts as cut: a PoP sends one each 20 ms."""


AFTER_S = 2.0


class _Setup(NamedTuple):
    at: float
    """The monotonic second at which the call was asked for."""
    took_ms: float
    refused: bool


class SetupFigures(msgspec.Struct):
    """Calls that were asked for: how many, how many were refused, and how long the others took until they were up."""

    calls: int
    refused: int
    p50_ms: float | None
    p95_ms: float | None


class UpgradeFigures(msgspec.Struct):
    """What callers have noticed of the upgrades."""

    calls: int
    """Calls that were up."""
    cut: int
    longest_pause_ms: float
    """Between two packets of any call."""
    beside: SetupFigures
    """Of calls that were asked for while an upgrade went on, or up to `AFTER_S` later."""
    apart: SetupFigures
    """Of all others."""
    upgrades_s: list[float]
    """How long each upgrade took, engines included."""


@dataclass(slots=True)
class UpgradeResult:
    """What has happened so far."""

    setups: list[_Setup] = field(default_factory=list)
    cut: int = 0
    silent_s: list[float] = field(default_factory=list)
    """The longest pause between two packets of each call."""
    upgrades: list[tuple[float, float]] = field(default_factory=list)
    """When each upgrade was asked for, and when the new process took the calls."""

    def figures(self) -> UpgradeFigures:
        """What is printed and kept."""
        beside = [setup for setup in self.setups if self._beside(setup)]
        apart = [setup for setup in self.setups if not self._beside(setup)]
        return UpgradeFigures(
            calls=len(self.silent_s), cut=self.cut, longest_pause_ms=1000 * max(self.silent_s, default=0.0),
            beside=_counted(beside), apart=_counted(apart),
            upgrades_s=[ended - began for began, ended in self.upgrades],
        )  # fmt: skip

    def _beside(self, setup: _Setup) -> bool:
        return any(began <= setup.at <= ended + AFTER_S for began, ended in self.upgrades)


def _counted(setups: list[_Setup]) -> SetupFigures:
    took = [setup.took_ms for setup in setups if not setup.refused]
    return SetupFigures(len(setups), len(setups) - len(took), percentile(took, 50), percentile(took, 95))


class _Listener(Asker):
    """A caller who notices pauses of what comes."""

    def __init__(self, payloads: list[bytes], number: int) -> None:
        super().__init__(payloads, number)
        self.longest_s = 0.0
        """The longest pause between two packets."""
        self._last = 0.0

    def datagram(self, data: bytes, arrived: float) -> None:
        super().datagram(data, arrived)
        self.pause(arrived)
        self._last = arrived

    def pause(self, now: float) -> None:
        """Nothing has come since the last packet."""
        if self._last:
            self.longest_s = max(self.longest_s, now - self._last)


async def run(calls: int, upgrades: int, json_file: Path | None) -> int:
    """Measure and print; 1 if a call was cut or refused. Raises ConfigError: the PoP does not start or upgrade;
    ProbeError: `json_file` cannot be written."""
    result, console = UpgradeResult(), for_tables()
    with tempfile.TemporaryDirectory() as folder, console.status("calls are placed ..."):
        config, port = Path(folder) / "pop.toml", runtime.with_sip_port(Config(), 0).sip.port
        config.write_text(CONFIG)
        options = "--config", str(config), "--port", "0", "--sip-port", str(port)
        async with children.serving("-m", "voicepipe", "pop", *options) as child:
            await _measure(child.url, port, calls, upgrades, result)
    seen = result.figures()
    table = Table(title=f"{calls} calls at a time, {upgrades} upgrades, scripted engines")
    for column in ("", "set up", "refused", "p50 ms", "p95 ms"):
        table.add_column(column, justify="left" if not column else "right")
    for name, these in (("beside an upgrade", seen.beside), ("else", seen.apart)):
        times = ["-" if ms is None else f"{ms:.0f}" for ms in (these.p50_ms, these.p95_ms)]
        table.add_row(name, str(these.calls), str(these.refused), *times)
    console.print(table)
    took = ", ".join(f"{seconds:.1f}" for seconds in seen.upgrades_s)
    console.print(f"{seen.calls} calls, {seen.cut} cut; the longest pause of a call's sound was "
                  f"{seen.longest_pause_ms:.0f} ms; the upgrades took {took} s")  # fmt: skip
    keep(json_file, seen)
    return 1 if seen.beside.refused or seen.apart.refused or seen.cut else 0


async def _measure(url: str, phone: int, calls: int, upgrades: int, result: UpgradeResult) -> None:
    by = ways(url, f"127.0.0.1:{phone}", "", "")
    clock, pids = MediaClock(), list[int]()
    sounds = {way.name: await asyncio.to_thread(question, way) for way in by.values()}
    over = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(clock.run())
        callers = []
        for number in range(calls):
            way = list(by.values())[number % len(by)]
            callers.append(group.create_task(_calls(way, sounds[way.name], number, clock, over, result)))
            await asyncio.sleep(CALL_S / calls)
        try:
            for _ in range(upgrades):
                await asyncio.sleep(BETWEEN_S)
                began = time.monotonic()
                pids.append(await asyncio.to_thread(_upgraded, url))
                result.upgrades.append((began, time.monotonic()))
            await asyncio.sleep(CALL_S)
        finally:
            over.set()
            await asyncio.wait(callers)
            ticking.cancel()
            if pids:
                await asyncio.to_thread(_ended, pids[-1])


async def _calls(
    way: Way, sound: list[bytes], number: int, clock: MediaClock, over: asyncio.Event, result: UpgradeResult
) -> None:
    """One call after another."""
    while not over.is_set():
        asker, asked = _Listener(sound, number), time.monotonic()
        try:
            await asker.dial(way)
        except ProbeError:
            result.setups.append(_Setup(asked, 0.0, refused=True))
            await asyncio.sleep(1.0)
            continue
        result.setups.append(_Setup(asked, 1000 * (time.monotonic() - asked), refused=False))
        remove = clock.add(asker.tick)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(CALL_S):
                    await over.wait()
            asker.pause(time.monotonic())
        finally:
            remove()
            await asker.hang_up()
        result.silent_s.append(asker.longest_s)
        result.cut += asker.longest_s >= CUT_S


def _upgraded(url: str) -> int:
    """The new process's id. Raises ConfigError: the PoP is not upgraded."""
    try:
        with urllib.request.urlopen(urllib.request.Request(f"{url}/v1/upgrade", method="POST")) as answer:
            return int(json.load(answer)["pid"])
    except OSError as error:
        raise ConfigError(f"the PoP is not upgraded: {error}") from error


def _ended(pid: int) -> None:
    """End the last process, which is not our child."""
    os.kill(pid, signal.SIGTERM)
    for _ in range(200):
        if not Path(f"/proc/{pid}").exists():
            return
        time.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
