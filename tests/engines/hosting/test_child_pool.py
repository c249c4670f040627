"""Requests for processes of one engine: whose turn it is, and who is told that none is there."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.engines.hosting.test_child import asked, program, running
from tests.support.waiting import until
from voicepipe.base.errors import EngineBusy, EngineDead
from voicepipe.engines.hosting import supervised
from voicepipe.engines.hosting.child_pool import ChildPool

pytestmark = pytest.mark.usefixtures("restarts_soon")


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    pool = ChildPool(program())
    await pool.start()
    yield pool
    await pool.close()


async def test_what_is_first_overtakes_what_waits(pool: ChildPool, tmp_path: Path) -> None:
    free, done = tmp_path / "free", list[str]()

    async def ask(name: str, **options: Any) -> None:
        await asked(pool, "wait", until=str(free), **options)
        done.append(name)

    async with asyncio.TaskGroup() as group:
        for name in ("running", "later", "later still"):
            group.create_task(ask(name))
        await asyncio.sleep(0)
        group.create_task(ask("first", first=True))
        await asyncio.sleep(0)
        await asyncio.to_thread(free.touch)
    assert done == ["running", "first", "later", "later still"]


async def test_several_processes_answer_at_a_time(tmp_path: Path) -> None:
    pool = ChildPool(program(), 2)
    await pool.start()
    free = tmp_path / "free"
    waiting = asyncio.create_task(asked(pool, "wait", until=str(free)))
    await asyncio.sleep(0)
    assert await asked(pool, "count", to=2), "while another is being answered"
    await asyncio.to_thread(free.touch)
    assert len(await waiting) == 2
    await pool.close()


async def test_too_many_requests_are_refused_at_once(pool: ChildPool, tmp_path: Path) -> None:
    small = ChildPool(program(), limit=1)
    await small.start()
    waiting = [asyncio.create_task(asked(small, "wait", until=str(tmp_path / "never"))) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(EngineBusy, match="1 requests waiting"):
        await asked(small, "echo")
    figures = small.figures()
    assert (figures.waiting, figures.running, figures.begun, figures.refused) == (1, 1, 1, 1)
    await small.close()
    assert all(isinstance(result, EngineDead) for result in await asyncio.gather(*waiting, return_exceptions=True))


async def test_a_cancelled_request_leaves_room_for_the_next(pool: ChildPool, tmp_path: Path) -> None:
    free = tmp_path / "free"
    parts = pool.ask({"do": "wait", "until": str(free)})
    assert await anext(parts) == ({"began": True}, b"")
    queued = asyncio.create_task(asked(pool, "die"))
    await asyncio.sleep(0)
    await parts.aclose()
    queued.cancel()
    await asyncio.to_thread(free.touch)
    many = pool.ask({"do": "count", "to": 10**9})
    await anext(many)
    await many.aclose()
    assert await asked(pool, "count", to=1) == [{"number": 0}]


async def test_who_waits_while_one_of_two_is_replaced_is_answered_by_the_new_one(tmp_path: Path) -> None:
    pool = ChildPool(program(), 2)
    await pool.start()
    with pytest.raises(EngineDead):
        await asked(pool, "die")
    free = tmp_path / "free"
    busy = asyncio.create_task(asked(pool, "wait", until=str(free)))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        assert await asked(pool, "count", to=1)
    await asyncio.to_thread(free.touch)
    assert len(await busy) == 2 and all(each.alive for each in pool._supervised)
    await pool.close()


async def test_whoever_asks_while_none_is_there_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervised, "FIRST_PAUSE_S", 60)
    pool = ChildPool(program(), 2)
    await pool.start()
    for _ in range(2):
        with pytest.raises(EngineDead):
            await asked(pool, "die")
    assert not pool.alive
    with pytest.raises(EngineDead, match="segmentation fault"):
        await asked(pool, "echo")
    await pool.close()


async def test_close_takes_the_processes_own_children_along(pool: ChildPool) -> None:
    (family,), pid = await asked(pool, "family"), pool.about["pid"]
    assert running(family["child"])
    await pool.close()
    await pool.close()
    await until(lambda: not running(family["child"]) and not running(pid))
    with pytest.raises(EngineDead, match="coqui is closed"):
        await asked(pool, "echo")
