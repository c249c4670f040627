"""What the lines of WebSockets have in common."""

import asyncio
import time

import numpy as np
import pytest

from tests.support.sinks import Blocks
from voicepipe.audio import BLOCK
from voicepipe.ingress.blocks import BlockQueue
from voicepipe.ingress.far_end import FarEnd
from voicepipe.ingress.socket_line import SocketLine, by_timer
from voicepipe.line import HIDDEN

pytestmark = pytest.mark.virtual_time
RATE = 8000


class Peer:
    received_at, closed_for, address = 0.0, "", "192.0.2.1"
    rtt_ms: float | None = 31.0

    def abort(self) -> None:
        """Nothing is asked of it."""

    def take_at_most(self, message_bytes: int) -> None:
        """Nor this."""


def line(peer: Peer | None = None) -> tuple[SocketLine, FarEnd]:
    far = FarEnd(RATE, asyncio.get_running_loop().time)
    return SocketLine(BlockQueue(), far, peer, "192.0.2.0/24"), far


async def test_before_it_hangs_up_the_caller_hears_what_is_out() -> None:
    loop = asyncio.get_running_loop()
    its, far = line()
    far.send(RATE)
    began = loop.time()
    hanging_up = asyncio.create_task(its.hang_up())
    await its.listen(Blocks())
    assert loop.time() - began == pytest.approx(1.0) and its.played() == RATE
    await hanging_up


async def test_of_a_caller_who_is_gone_nothing_is_waited_for() -> None:
    loop = asyncio.get_running_loop()
    its, far = line()
    far.send(RATE)
    its.end()
    began = loop.time()
    await its.hang_up()
    assert loop.time() == began


async def test_what_they_said_before_is_still_heard() -> None:
    its, _ = line()
    heard: list[int] = []
    its._queue.push(np.ones(2 * BLOCK, np.int16), time.monotonic())
    its.end()
    await its.listen(Blocks(lambda block: heard.append(block.pos)))
    assert heard == [0, BLOCK]


async def test_of_the_network_only_a_round_trip_is_known() -> None:
    its, _ = line(Peer())
    network = its.network()
    assert (network.rtt_ms, network.loss_percent) == (31.0, HIDDEN.loss_percent)
    assert line()[0].network() is HIDDEN


async def test_a_pump_is_asked_again_when_it_said_or_when_it_is_woken() -> None:
    loop, wake = asyncio.get_running_loop(), asyncio.Event()
    began, asked = loop.time(), list[float]()

    def pump() -> float | None:
        asked.append(round(loop.time() - began, 3))
        return 0.1 if len(asked) < 3 else None

    pacing = asyncio.create_task(by_timer(pump, wake))
    await asyncio.sleep(5)
    assert asked == [0, 0.1, 0.2]
    wake.set()
    await asyncio.sleep(5)
    assert asked == [0, 0.1, 0.2, 5.0]
    pacing.cancel()
