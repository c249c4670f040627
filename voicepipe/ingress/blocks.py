"""A caller's sound on its way into the call: chunks of any length in, gapless blocks of 20 ms out.

`BlockCutter` alone is enough where sound comes as it is spoken (RTP). Where TCP pushes back, clients may outrun real
time, and blocks wait for the call in a `BlockQueue`.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable

import numpy as np

from voicepipe.audio import BLOCK, RATE, Block, Pcm
from voicepipe.line import SoundListener

QUEUED = 50
"""Blocks (20 ms each) that may wait for the call before `room` is waited for."""
AHEAD_S, FAST_BLOCK_S = 60.0, 0.005
"""Sound this far ahead of real time is taken at four times that, a block each 5 ms: a client may send a recording at
once, and what waits to be recognised is bounded."""
BEHIND_BLOCKS = 4
"""Blocks that a call which is late takes at a stretch. Where each turn of the loop takes longer than a block lasts (20
ms), one a turn would let it fall further and further behind, though the loop has time for all of its sound."""
BEHIND_S = 1.0
"""No call counts as later than this: one that sent nothing for a minute, on hold or between two presses of a key, has
no minute to make up for."""


class BlockCutter:
    """Cuts a caller's sound into blocks of 20 ms."""

    def __init__(self) -> None:
        self.narrow = False
        """The sound was sampled at 8 kHz on its way."""
        self._rest: Pcm = np.empty(0, np.int16)
        self._pos = 0

    def cut(self, pcm: Pcm, arrived: float, *, filled: bool = False) -> list[Block]:
        """The blocks that `pcm` completes: int16[n] at 16 kHz, which reached the socket at the monotonic second
        `arrived`. `filled`: the sound was made up for what was lost."""
        if self._rest.size:
            pcm = np.concatenate((self._rest, pcm))
        whole = pcm.size - pcm.size % BLOCK
        self._rest = pcm[whole:]
        blocks = []
        for start in range(0, whole, BLOCK):
            blocks.append(Block(pcm[start : start + BLOCK], self._pos, arrived, filled, self.narrow))
            self._pos += BLOCK
        return blocks

    def rest(self, now: float) -> list[Block]:
        """The block that is begun, completed with silence (19 ms at most); none: all was cut."""
        return self.cut(np.zeros(BLOCK - self._rest.size, np.int16), now) if self._rest.size else []


class IntakePace:
    """Decides how fast a call takes in sound that waits for it, beside all other work of the event loop. Times in
    seconds of any clock."""

    def __init__(self, now: float) -> None:
        self._began = now

    def pause_s(self, heard_s: float, now: float, block: int) -> float | None:
        """Seconds to wait after the call's block number `block`; 0: the others get their turn; None: go on at once.

        `heard_s`: so much of its sound was heard until `now`.
        """
        self._began = max(self._began, now - heard_s - BEHIND_S)
        ahead_s = heard_s - (now - self._began)
        if ahead_s > AHEAD_S:
            return FAST_BLOCK_S
        return None if ahead_s < 0 and block % BEHIND_BLOCKS else 0.0


class BlockQueue:
    """A queue of blocks between one writer and one call. Nothing is dropped: the writer waits for `room`."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.ended = False
        """Nothing more is queued."""
        self.cutter = BlockCutter()
        self.room = asyncio.Event()
        """Set while the call keeps up."""
        self.room.set()
        self._clock = clock
        self._queue: deque[Block] = deque()
        self._filled = asyncio.Event()
        """Set when the queue has a block, or never will have one."""
        self._all_heard = asyncio.Event()
        """Set when the call has worked through all blocks and waits for more."""

    def push(self, pcm: Pcm, arrived: float) -> None:
        """Queue sound; arguments as of `BlockCutter.cut`."""
        if not self.ended:
            self._put(self.cutter.cut(pcm, arrived))

    def _put(self, blocks: list[Block]) -> None:
        if blocks:
            self._queue.extend(blocks)
            self._all_heard.clear()
            self._filled.set()
        if len(self._queue) >= QUEUED:
            self.room.clear()

    async def flush(self) -> None:
        """Complete the last block with silence, and wait until the call has heard it all."""
        if not self.ended:
            self._put(self.cutter.rest(self._clock()))
        await self._all_heard.wait()
        await asyncio.sleep(0)  # The detector answers later in the turn in which it was asked.

    def end(self) -> None:
        """End the queue: the caller is gone, or we hang up. What is queued is still heard."""
        self.ended = True
        self._filled.set()

    async def listen(self, listener: SoundListener) -> None:
        """As `Line.listen`: the blocks that are queued, in turns with all other work of the event loop."""
        intake = IntakePace(self._clock())
        try:
            while True:
                while self._queue:
                    block = self._queue.popleft()
                    if len(self._queue) < QUEUED:
                        self.room.set()
                    listener.hear(block)
                    heard = block.pos + BLOCK
                    if (pause := intake.pause_s(heard / RATE, self._clock(), heard // BLOCK)) is not None:
                        await asyncio.sleep(pause)
                self._all_heard.set()
                if self.ended:
                    return
                self._filled.clear()
                await self._filled.wait()
        finally:
            self.ended = True
            self._queue.clear()
            self.room.set()
            self._all_heard.set()
