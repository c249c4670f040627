"""An engine in a process of its own: what it answers, and what happens when it breaks, hangs, prints or dies."""

import asyncio
import contextlib
import signal
import sys
import time
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import ROOT
from tests.support.waiting import until
from voicepipe.base.errors import EngineDead, EngineError, EngineMissing
from voicepipe.engines.hosting.child import EngineProcess, Program
from voicepipe.engines.hosting.child_pool import ChildPool

HALF = Path(__file__).parent / "child_engine.py"

pytestmark = pytest.mark.usefixtures("restarts_soon")


def program(load: str = "", **options: Any) -> Program:
    options = {"python": sys.executable} | options
    return Program("coqui", engine=HALF, settings={"load": load}, **options)


async def asked(pool: ChildPool, do: str, *, first: bool = False, **head: Any) -> list[dict[str, Any]]:
    return [part async for part, _ in pool.ask({"do": do, **head}, first=first)]


def running(pid: int) -> bool:
    """Not gone, and no zombie that its new parent has yet to bury."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
async def pool() -> AsyncIterator[ChildPool]:
    pool = ChildPool(program())
    await pool.start()
    yield pool
    await pool.close()


# --- answers ------------------------------------------------------------------------------------------------------


async def test_an_engine_that_fails_goes_on(pool: ChildPool) -> None:
    with pytest.raises(EngineError, match="coqui failed: RuntimeError: it did not work"):
        await asked(pool, "fail")
    assert await asked(pool, "count", to=1) and pool.alive


# --- death ---------------------------------------------------------------------------------------------------------


async def test_death_is_noticed_and_another_is_started(pool: ChildPool, caplog: pytest.LogCaptureFixture) -> None:
    before = pool.about["pid"]
    waits = asyncio.create_task(asked(pool, "count", to=1))
    with pytest.raises(EngineDead, match=r"coqui's process ended \(status 1\); it said last: .*segmentation fault"):
        await asyncio.gather(asked(pool, "die"), waits)
    assert "coqui's process ended (status 1)" in caplog.text
    await until(lambda: pool.alive)
    assert await asked(pool, "count", to=1) and pool.about["pid"] != before
    assert pool.restarts == 1


async def test_one_that_fails_whatever_it_is_asked_is_replaced(
    pool: ChildPool, caplog: pytest.LogCaptureFixture
) -> None:
    """Some errors stay with a process, as CUDA's do."""
    pid = pool.about["pid"]
    await asked(pool, "break")
    for _ in range(3):
        with pytest.raises(EngineError, match="CUDA error"):
            await asked(pool, "count", to=1)
    await until(lambda: pool.alive and pool.about["pid"] != pid)
    assert await asked(pool, "count", to=1)
    assert "coqui's process failed again and again, and at a trial as well" in caplog.text


async def test_what_is_given_up_between_failures_does_not_hide_them(pool: ChildPool, tmp_path: Path) -> None:
    """A reply that fails gives its next phrase up, which the process ends without an error."""
    before, free = pool.about["pid"], tmp_path / "free"
    await asked(pool, "break")
    for _ in range(3):
        with pytest.raises(EngineError, match="CUDA error"):
            await asked(pool, "count", to=1)
        parts = pool.ask({"do": "wait", "until": str(free)})
        if pool.alive and pool.about["pid"] == before:
            with contextlib.suppress(EngineDead):  # The third time the trial ends the process.
                await anext(parts)
        await parts.aclose()
        free.touch()
        await until(lambda: not pool.figures().running)
        free.unlink()
    await until(lambda: pool.alive and pool.about["pid"] != before)


async def test_one_caller_s_words_that_it_fails_at_are_not_its_end(pool: ChildPool) -> None:
    pid = pool.about["pid"]
    for _ in range(10):
        with pytest.raises(EngineError, match="it did not work"):
            await asked(pool, "fail")
    assert await asked(pool, "count", to=1)
    assert pool.alive and pool.about["pid"] == pid


async def test_whatever_goes_wrong_another_is_started(
    pool: ChildPool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(process: EngineProcess) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(EngineProcess, "_expect", lambda process: patch.setattr(EngineProcess, "_expect", fail))
        with pytest.raises(EngineDead, match="could not be kept"):
            await asked(pool, "count", to=10)
    await until(lambda: pool.alive)
    assert await asked(pool, "count", to=1) and pool.restarts == 1
    assert "coqui's process could not be kept" in caplog.text and "ZeroDivisionError" in caplog.text


async def test_a_process_that_hangs_is_killed_and_replaced() -> None:
    pool = ChildPool(program(stall_s=0.3))
    await pool.start()
    with pytest.raises(EngineDead, match=r"sent nothing for 0.3 s while it was asked"):
        await asked(pool, "hang")
    await until(lambda: pool.alive)
    await asyncio.sleep(0.5)
    assert pool.alive, "one that is asked nothing is not late"
    pool._supervised[0].core._program = program()
    assert await asked(pool, "count", to=1)
    await pool.close()


async def test_a_process_is_not_late_for_the_time_in_which_we_stood_still() -> None:
    """As after SIGSTOP or `docker pause`, which stop the process as well."""
    pool = ChildPool(program(stall_s=4.0))
    await pool.start()
    asking = asyncio.create_task(asked(pool, "hang"))
    await asyncio.sleep(0.1)
    time.sleep(5.5)  # noqa: ASYNC251
    await asyncio.sleep(0.2)
    assert pool.alive and not asking.done()
    with pytest.raises(EngineDead, match="sent nothing for 4 s"):
        await asking
    await pool.close()


@pytest.mark.parametrize("load", ["", "hangs"])
async def test_it_ends_with_a_parent_that_is_killed(load: str, tmp_path: Path) -> None:
    script = f"""
import asyncio, os
from tests.engines.hosting.test_child import ChildPool, program

async def main():
    pool = ChildPool(program({load!r}))
    starting = asyncio.create_task(pool.start())
    pid = ""
    while not pid:
        await asyncio.sleep(0.01)
        with open(f"/proc/self/task/{{os.getpid()}}/children") as file:
            pid = file.read()
    print(pid, flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", script, stdout=PIPE, cwd=ROOT)
    assert parent.stdout
    child = int(await parent.stdout.readline())
    assert running(child)
    parent.send_signal(signal.SIGKILL)
    await parent.wait()
    await until(lambda: not running(child))


# --- it cannot be started -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("load", "error", "says"),
    [
        ("lacks", EngineMissing, "lacks what coqui needs: No module named 'TTS'"),
        ("fails", EngineError, "coqui could not be loaded: ValueError: the checkpoint is empty"),
        ("dies", EngineError, r"process ended \(status 3\); it said last: .*out of memory"),
        ("hangs", EngineError, "was not ready after 0.5 s"),
    ],
)
async def test_a_start_that_fails_says_why(load: str, error: type[EngineError], says: str) -> None:
    pool = ChildPool(program(load, start_timeout_s=0.5 if load == "hangs" else 60), 2)
    with pytest.raises(error, match=says):
        await pool.start()
    assert not pool.alive


async def test_interpreters_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match=r"coqui.python is '.*nowhere', which cannot be run \(No such file"):
        await ChildPool(program(python=str(tmp_path / "nowhere"))).start()
    noisy = tmp_path / "noisy"
    noisy.write_text("#!/bin/sh\nyes | head -c 200000\nsleep 60\n")
    noisy.chmod(0o755)
    with pytest.raises(EngineError, match="sent what is no answer"):
        await ChildPool(program(python=str(noisy))).start()


async def test_a_start_that_is_given_up_leaves_nothing() -> None:
    pool = ChildPool(program("hangs"))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await pool.start()
    await pool.close()
    assert not pool.alive
