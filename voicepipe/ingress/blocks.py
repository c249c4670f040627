"""A caller's sound on its way into the call: pieces of any length in, gapless blocks of 20 ms out."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

import numpy as np

from voicepipe.audio import BLOCK, Block, Pcm

QUEUED = 50
"""Blocks (20 ms each) that may wait for the call before `room` is waited for. Clients may outrun real time."""


class BlockQueue:
    """One writer, one reader. Nothing is dropped here: a writer that can be held up waits for `room`, and one that
    cannot (RTP) takes in only a few seconds more than real time."""

    def __init__(self) -> None:
        self.ended = False
        """Nothing more is taken."""
        self.narrow = False
        """What comes was sampled at 8 kHz on its way."""
        self.room = asyncio.Event()
        """The call keeps up."""
        self.room.set()
        self._rest: Pcm = np.empty(0, np.int16)
        self._pos = 0
        self._queue: deque[Block] = deque()
        self._filled = asyncio.Event()
        """The queue has something, or never will have."""
        self._settled = asyncio.Event()
        """The call has worked through everything and waits for more."""

    def push(self, pcm: Pcm, arrived: float, *, filled: bool = False) -> None:
        """Sound at 16 kHz, int16[n]. `arrived`: the monotonic second at which it reached the socket; `filled`: it was
        made up."""
        if self.ended:
            return
        if self._rest.size:
            pcm = np.concatenate((self._rest, pcm))
        whole = pcm.size - pcm.size % BLOCK
        self._rest = pcm[whole:]
        for start in range(0, whole, BLOCK):
            self._queue.append(Block(pcm[start : start + BLOCK], self._pos, arrived, filled, self.narrow))
            self._pos += BLOCK
        if whole:
            self._settled.clear()
            self._filled.set()
        if len(self._queue) >= QUEUED:
            self.room.clear()

    async def settle(self, now: float) -> None:
        """Complete the last block with silence (19 ms at most), and wait until the call has heard it all."""
        if self._rest.size:
            self.push(np.zeros(BLOCK - self._rest.size, np.int16), now)
        await self._settled.wait()

    def end(self) -> None:
        """The caller is gone, or we hang up: what is queued is still heard."""
        self.ended = True
        self._filled.set()

    async def blocks(self) -> AsyncIterator[Block]:
        """The blocks, for one reader."""
        try:
            while True:
                while self._queue:
                    block = self._queue.popleft()
                    if len(self._queue) < QUEUED:
                        self.room.set()
                    yield block
                self._settled.set()
                if self.ended:
                    return
                self._filled.clear()
                await self._filled.wait()
        finally:
            self.ended = True
            self._queue.clear()
            self.room.set()
            self._settled.set()
