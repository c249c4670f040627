"""Decoders that are loaded, lent, broken and loaded again, without pocketsphinx."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from tests.waiting import until
from voicepipe.engines import sphinx
from voicepipe.engines.base import Hypothesis
from voicepipe.engines.sphinx import SphinxAsr, SphinxStream
from voicepipe.errors import EngineError


class Resting:
    """In a decoder's place."""

    def __init__(self, frees: Callable[["Resting"], object] = lambda decoder: None) -> None:
        self._frees = frees

    def free(self) -> None:
        self._frees(self)


async def begun(monkeypatch: pytest.MonkeyPatch, load: Callable[[object], Resting], decoders: int) -> SphinxAsr:
    """With all of its decoders."""
    monkeypatch.setattr(sphinx, "_load", load)
    asr = SphinxAsr(decoders=decoders)
    await asr.start()
    await until(lambda: len(asr._life.core._free) == decoders)
    return asr


def ignore(partial: Hypothesis) -> None:
    pass


async def test_the_decoder_that_was_used_last_is_used_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Taking turns would touch the memory of all decoders where one is enough."""
    asr = await begun(monkeypatch, lambda language: Resting(), 4)
    given: list[object] = []
    monkeypatch.setattr(SphinxStream, "begin", lambda stream, decoder: given.append(decoder))
    decoders = asr._life.core
    for _ in range(5):
        asr.stream(ignore)
        decoders.release("", given[-1])  # type: ignore[arg-type]
    assert len(set(given[1:])) == 1
    await asr.close()


async def test_decoders_are_loaded_ahead_and_a_broken_one_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[object] = []
    asr = await begun(monkeypatch, lambda language: Resting(freed.append), 3)
    decoders = asr._life.core

    async def loaded() -> int:
        while decoders._loading:  # noqa: ASYNC110
            await asyncio.sleep(0)
        return len(decoders._free)

    assert await loaded() == 3
    broken = decoders._free.pop()
    decoders.release("", broken, broken=True)
    assert await loaded() == 3
    assert freed == [broken]
    assert asr.lent == 0
    lent = decoders._free.pop()
    assert asr.lent == 1
    await asr.close()
    decoders.release("", lent)
    await asyncio.sleep(0.05)
    assert len(freed) == 4, "what comes back after the end is freed too"


async def test_a_recogniser_without_a_decoder_is_down_and_begun_anew(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory = True

    def load(language: object) -> Resting:
        if not memory:
            raise EngineError("no memory is left")
        return Resting()

    asr = await begun(monkeypatch, load, 2)
    decoders = asr._life.core
    memory = False
    decoders.release("", decoders._free.pop(), broken=True)
    await until(lambda: not decoders._loading)
    assert asr.alive, "one is left"
    decoders.release("", decoders._free.pop(), broken=True)
    await until(lambda: not asr.alive)
    assert "0 are left: no memory is left" in caplog.text
    memory = True
    await until(lambda: asr.alive)
    await asr.close()


@pytest.mark.parametrize("hangs", ["load", "free"])
async def test_a_loader_that_hangs_is_left_behind_as_well(monkeypatch: pytest.MonkeyPatch, hangs: str) -> None:
    """Decoders that broke were never replaced, down to none, and the PoP was well all the time."""
    stuck, free = threading.Event(), threading.Event()

    def call(name: str) -> None:
        if hangs == name and stuck.is_set():
            free.wait(60)

    def load(language: object) -> Resting:
        call("load")
        return Resting(lambda decoder: call("free"))

    asr = await begun(monkeypatch, load, 2)
    decoders = asr._life.core
    stuck.set()
    monkeypatch.setattr(sphinx, "LOAD_S", 0.05)
    decoders.release("", decoders._free.pop(), broken=True)
    await until(lambda: not asr.alive)
    assert decoders.hung
    stuck.clear()
    monkeypatch.setattr(sphinx, "LOAD_S", 60.0)
    await until(lambda: asr.alive)
    assert asr._life.core is not decoders
    free.set()
    await asr.close()
