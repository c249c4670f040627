"""A PoP is killed under twenty calls: every call that began is in its records, with all that was said to its end."""

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets

from latency_probes.own_server import COMMAND, started
from tests.waiting import until

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


class Caller:
    """Who types questions one after the other; `heard` are those whose answers were over."""

    def __init__(self, url: str, number: int) -> None:
        self._url, self._number = f"ws{url.removeprefix('http')}/v1/realtime", number
        self.begun = False
        self.heard: dict[str, float] = {}
        """With the monotonic second at which each answer was over."""

    async def talk(self) -> None:
        """Until the PoP is gone."""
        try:
            async with websockets.connect(self._url, max_queue=None) as socket:
                await self._until_done(socket)
                self.begun = True
                for question in range(10_000):
                    text = f"question {letters(question)} of caller {letters(self._number)}"
                    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
                    await socket.send(json.dumps({"type": "conversation.item.create", "item": said}))
                    await socket.send(json.dumps({"type": "response.create"}))
                    await self._until_done(socket)
                    self.heard[text] = time.monotonic()
                    await asyncio.sleep(EVERY_S)
        except (OSError, websockets.WebSocketException):
            return

    async def _until_done(self, socket: websockets.ClientConnection) -> None:
        async for message in socket:
            if json.loads(message)["type"] == "response.done":
                return
        raise OSError("the PoP is gone")


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
        callers = [Caller(killed.url, number) for number in range(CALLS)]
        talking = [asyncio.create_task(caller.talk()) for caller in callers]
        await until(lambda: all(len(caller.heard) >= 2 for caller in callers))
        await asyncio.sleep(WRITTEN_S)
        os.kill(killed.pid, signal.SIGKILL)
        killed_at = time.monotonic()
        await asyncio.gather(*talking)
    async with pop(tmp_path) as again:
        kept = await records(again.url)
    assert len(kept) == CALLS and all(record["reason"] == "cut" for record in kept)
    in_records = {said["heard"] for record in kept for said in record["said"]}
    for caller in callers:
        missing = [text for text, at in caller.heard.items() if text not in in_records and killed_at - at > WRITTEN_S]
        assert not missing, "only what was being said may be missing"
