"""What the client programs in Python share: the caller, who has a microphone and knows what to say when.

A program is `python -m tests.clients.NAME URL FIRST SECOND`. The caller lets the greeting end, asks the first question,
asks the second over the answer to it, and is satisfied when the tool that the second question leads to was called and
its result was said. FIRST and SECOND are files of s16le at 24 kHz. Each line of the output is one thing that the client
library told its user: {"saw": "heard", "text": ...}.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

RATE = 24_000
BLOCK_MS = 20
BLOCK = RATE * BLOCK_MS // 1000 * 2
OVER = RATE * 2
"""Bytes of an answer, one second, after which the second question is asked over it."""
PATIENCE_S = 90
CONNECTED = "Maria is on the line."
"""What the tool returns."""


def tell(saw: str, **what: Any) -> None:
    """One line for the test."""
    print(json.dumps({"saw": saw, **what}), flush=True)


class Caller:
    """Speaks when the conversation has come to it. Programs tell it what their library tells them."""

    def __init__(self, first: str, second: str) -> None:
        self._questions = [Path(first).read_bytes(), Path(second).read_bytes()]
        self._saying = b""
        self._heard = 0
        self._answer = 0
        self._satisfied = asyncio.Event()

    async def microphone(self) -> AsyncIterator[bytes]:
        """20 ms at a time, in real time: what is being said, or silence."""
        start = time.monotonic()
        blocks = 0
        while True:
            blocks += 1
            await asyncio.sleep(start + blocks * BLOCK_MS / 1000 - time.monotonic())
            block, self._saying = self._saying[:BLOCK], self._saying[BLOCK:]
            yield block.ljust(BLOCK, b"\0")

    async def satisfied(self) -> None:
        """Wait until the result of the tool has been said. Raises TimeoutError."""
        async with asyncio.timeout(PATIENCE_S):
            await self._satisfied.wait()

    def heard(self, text: str) -> None:
        """The words of the caller's, as they were recognised."""
        tell("heard", text=text)
        self._heard += 1

    def sound(self, pcm: bytes) -> None:
        """A piece of a reply's sound."""
        if self._heard == 1:
            self._answer += len(pcm)
            if self._answer >= OVER and len(self._questions) == 1:
                self._ask()

    def said(self, text: str) -> None:
        """The words of a reply that is over."""
        tell("said", text=text)
        if len(self._questions) == 2:
            self._ask()
        if CONNECTED in text:
            self._satisfied.set()

    def transfer(self, to: str) -> str:
        """The tool `transfer_call`."""
        tell("tool", to=to)
        return CONNECTED

    def _ask(self) -> None:
        self._saying = self._questions.pop(0)
