"""A PoP is killed under twenty calls: every call that began is in its records, with all that was said to its end."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from latency_probes.own_server import COMMAND, started
from tests.records.typist import Typist
from tests.support.waiting import until

pytestmark = pytest.mark.e2e

CALLS = 20
EVERY_S = 0.5
"""Between a caller's questions: nobody asks faster."""
WRITTEN_S = 2.0
"""What was said so long ago is on the disk, however slow the machine; mostly it takes milliseconds."""
CONFIG = """
[records]
folder = "kept"
[engines]
asr = "scripted"
llm = "scripted"
tts = "scripted"
[pop]
budget_ms = 600000
loop_lag_ms = 60000
"""


async def talk(typist: Typist, number: int) -> None:
    """One question after the other, until the PoP is gone."""
    with suppress(OSError, websockets.WebSocketException):
        async with typist:
            for question in range(10_000):
                await typist.asks(f"question {letters(question)} of caller {letters(number)}")
                await asyncio.sleep(EVERY_S)


def letters(number: int) -> str:
    """Digits that may be part of a card number would be masked while the call lasts."""
    return "".join("abcdefghij"[int(digit)] for digit in str(number))


async def records(url: str) -> list[dict[str, Any]]:
    async with httpx.AsyncClient(base_url=url, timeout=60) as client:
        rows = (await client.get("/v1/records")).json()["data"]
        return [(await client.get(f"/v1/records/{row['id']}")).json() for row in rows]


@asynccontextmanager
async def pop(folder: Path) -> AsyncIterator[Any]:
    (folder / "pop.toml").write_text(CONFIG)
    context = started((*COMMAND, "--config", str(folder / "pop.toml")))
    yield_ = await asyncio.to_thread(context.__enter__)
    try:
        yield yield_
    finally:
        await asyncio.to_thread(context.__exit__, *sys.exc_info())


async def test_a_pop_that_is_killed_keeps_all_but_what_was_being_said(tmp_path: Path) -> None:
    async with pop(tmp_path) as killed:
        callers = [Typist(killed.url) for _ in range(CALLS)]
        talking = [asyncio.create_task(talk(caller, number)) for number, caller in enumerate(callers)]
        await until(lambda: all(len(caller.told) >= 2 for caller in callers))
        await asyncio.sleep(WRITTEN_S)
        os.kill(killed.pid, signal.SIGKILL)
        killed_at = time.monotonic()
        await asyncio.gather(*talking)
    async with pop(tmp_path) as again:
        kept = await records(again.url)
    assert len(kept) == CALLS and all(record["reason"] == "cut" for record in kept)
    in_records = {said["heard"] for record in kept for said in record["said"]}
    for caller in callers:
        missing = [text for text, at in caller.told.items() if text not in in_records and killed_at - at > WRITTEN_S]
        assert not missing, "only what was being said may be missing"
