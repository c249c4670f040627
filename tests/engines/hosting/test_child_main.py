"""What runs in the child: frames that nothing printed comes between, and an end with the parent's."""

import asyncio
import logging
import os
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.engines.hosting.test_child import asked, program
from tests.support.waiting import until
from voicepipe.base.errors import EngineError
from voicepipe.engines.hosting import child_main
from voicepipe.engines.hosting.child_pool import ChildPool

HALF = Path(__file__).parent / "child_engine.py"


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    pool = ChildPool(program())
    await pool.start()
    yield pool
    await pool.close()


async def test_an_answer_comes_in_parts_with_its_data(pool: ChildPool) -> None:
    data = bytes(range(256)) * 1000
    assert [part async for part in pool.ask({"do": "echo", "ä": [1.5]}, data)] == [({"do": "echo", "ä": [1.5]}, data)]
    assert await asked(pool, "count", to=3) == [{"number": 0}, {"number": 1}, {"number": 2}]
    assert pool.about["rate"] == 16_000 and pool.about["pid"] != os.getpid()


async def test_what_the_engine_prints_is_logged_and_does_not_disturb(
    pool: ChildPool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "voicepipe.engines.hosting.child"):
        assert await asked(pool, "print") == [{"do": "print"}]
        await until(lambda: "from a child of its own" in caplog.text)
    assert "from Python" in caplog.text
    assert await asked(pool, "count", to=1)


async def test_a_library_that_exits_has_failed() -> None:
    pool = ChildPool(program())
    await pool.start()
    for _ in range(2):
        with pytest.raises(EngineError, match="coqui failed: SystemExit: give up"):
            await asked(pool, "exit")
    assert await asked(pool, "count", to=1) and pool.alive
    await pool.close()


async def test_it_ends_when_its_parent_dies_in_the_middle_of_a_frame() -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-Iu", child_main.__file__, HALF), stdin=PIPE, stdout=PIPE, start_new_session=True
    )
    assert process.stdin and process.stdout
    process.stdin.write(child_main.frame({"settings": {}}))
    await process.stdout.readuntil(b"ready")
    process.stdin.write(child_main.frame({"id": 1, "ask": {"do": "count", "to": 1}})[:-5])
    process.stdin.close()
    async with asyncio.timeout(60):
        await process.wait()


async def test_an_interpreter_may_greet(tmp_path: Path) -> None:
    polite = tmp_path / "polite"
    polite.write_text(f'#!/bin/sh\necho "Activating the environment"\nexec {sys.executable} "$@"\n')
    polite.chmod(0o755)
    pool = ChildPool(program(python=str(polite)))
    await pool.start()
    assert await asked(pool, "count", to=1)
    await pool.close()
