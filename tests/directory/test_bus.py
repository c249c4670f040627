"""What a bus promises, whichever it is."""

import asyncio

import pytest

from voicepipe.directory.bus import WAITING, MemoryBus, matches


@pytest.mark.parametrize(("pattern", "subject", "heard"), [
    ("vp.pop.*.report", "vp.pop.fra.report", True), ("vp.pop.*.report", "vp.pop.fra.bye", False),
    ("vp.pop.*.report", "vp.pop.fra.report.x", False), ("vp.>", "vp.asg.fra", True), ("vp.>", "vp", False),
    ("vp.asg.fra", "vp.asg.fra", True), (">", "vp", True), ("*", "vp.asg", False),
])  # fmt: skip
def test_patterns(pattern: str, subject: str, heard: bool) -> None:
    assert matches(pattern, subject) is heard


async def test_all_who_listen_hear_what_is_published_meanwhile() -> None:
    bus = MemoryBus()
    await bus.publish("vp.asg.fra", b"before")
    async with bus.listen("vp.asg.*", "vp.pop.*.report") as one, bus.listen("vp.asg.iad") as other:
        await bus.publish("vp.asg.fra", b"1")
        await bus.publish("vp.asg.iad", b"2")
        assert [(await anext(one)).data, (await anext(one)).data] == [b"1", b"2"]
        assert await anext(other) == ("vp.asg.iad", b"2")
    await bus.publish("vp.asg.fra", b"after")


async def test_a_slow_listener_loses_the_oldest_and_delays_nobody() -> None:
    bus = MemoryBus()
    async with asyncio.timeout(60), bus.listen("n") as slow:
        for number in range(WAITING + 10):
            await bus.publish("n", str(number).encode())
        assert (await anext(slow)).data == b"10"
