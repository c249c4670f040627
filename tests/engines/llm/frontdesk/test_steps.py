"""Work in small steps, beside others."""

import asyncio

import pytest

from voicepipe.engines.llm.frontdesk import steps
from voicepipe.engines.llm.frontdesk.steps import Steps, unhurried


def counting(to: int, done: list[str]) -> Steps[int]:
    for number in range(to):
        done.append(str(number))
        yield
    return to


async def beside(done: list[str]) -> int:
    """What the work comes to, while another notes when it gets its turn."""

    async def other() -> None:
        done.append("other")

    asyncio.get_running_loop().call_soon(asyncio.ensure_future, other())
    return await unhurried(counting(3, done))


async def test_short_work_is_done_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BREATH_S", 60)
    done: list[str] = []
    assert await beside(done) == 3
    assert done == ["0", "1", "2"]
    await asyncio.sleep(0.01)


async def test_long_work_lets_others_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "BREATH_S", 0)
    done: list[str] = []
    assert await beside(done) == 3
    assert done == ["0", "1", "other", "2"]
