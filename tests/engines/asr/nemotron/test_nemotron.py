"""`nemotron` whatever calls do, and in whichever order: random calls, in virtual time."""

import asyncio
import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.engines.asr.nemotron.test_steps import STEP_S, FakeModel, opened, silence
from voicepipe.base.errors import EngineError
from voicepipe.engines.asr.nemotron.nemotron import NemotronStream
from voicepipe.engines.asr.nemotron.steps import Steps
from voicepipe.engines.base import Hypothesis

pytestmark = pytest.mark.virtual_time
EVENTS = 120


class CheckedModel(FakeModel):
    """Each row of a step is a stream's that goes on, in a slot of its own."""

    of: Steps

    def ask(self, hear: Callable[[], Any], *, within_s: float) -> "asyncio.Future[Any]":
        for who, given in self.of._running:
            assert isinstance(who, NemotronStream) and not who._over
            assert self.of.slots._slots[who] == given.slot
        return super().ask(hear, within_s=within_s)


class Calls:
    """What they do is drawn by `seed`."""

    def __init__(self, seed: int) -> None:
        self.drawn = random.Random(seed)
        self.model = CheckedModel()
        self.steps, self._stream = opened(self.model, self.drawn.choice([1, 2, 3, 8]), (0.0, 0.04, 0.3)[seed % 3])
        self.model.of = self.steps
        self.streams: list[NemotronStream] = []
        self.settles: list[asyncio.Future[None]] = []

    def begin(self) -> None:
        over_at_words = self.drawn.random() < 0.1

        def told(partial: Hypothesis) -> None:
            if over_at_words:
                stream.cancel()

        stream = self._stream(f"call {self.drawn.randrange(4)}", told)
        self.streams.append(stream)

    def finish(self, stream: NemotronStream) -> None:
        self.streams.remove(stream)
        self.settles.append(asyncio.ensure_future(all_words(stream, stream.finish)))
        self.settles[-1].add_done_callback(lambda done: stream.cancel())

    def do_something(self) -> None:
        if not self.streams or self.drawn.random() < 0.2:
            self.begin()
        stream, event = self.drawn.choice(self.streams), self.drawn.random()
        if event < 0.5:
            stream.feed(silence(self.drawn.choice([0.1, 0.5, 1, 2, 6])))
        elif event < 0.68:
            self.settles.append(asyncio.ensure_future(all_words(stream, stream.settle)))
        elif event < 0.78 and self.settles:
            self.drawn.choice(self.settles).cancel()
        elif event < 0.86:
            stream.cancel()
        elif event < 0.94:
            self.finish(stream)
        elif event < 0.97:
            self.model.fails = not self.model.fails
        else:
            self.model.not_finite = not self.model.not_finite


async def all_words(stream: NemotronStream, asked: Callable[[], Any]) -> None:
    """Those of all that had been fed, each once."""
    fed, heard = stream._chunks.fed, await asked()
    tokens = heard.text.split()
    assert stream._over or heard.until >= fed
    assert tokens == [str(number) for number in range(len(tokens))]


@pytest.mark.parametrize("seed", range(60))
async def test_everybody_is_answered_and_every_slot_comes_back(seed: int) -> None:
    failed: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: failed.append(context))
    calls = Calls(seed)
    for _ in range(EVENTS):
        calls.do_something()
        await asyncio.sleep(calls.drawn.choice([0, 0, 0.01, STEP_S / 2, STEP_S, 0.2]))
    calls.model.fails = calls.model.not_finite = False
    if seed % 4 == 0:
        calls.steps.close()
    for stream in [*calls.streams]:
        calls.finish(stream)
    async with asyncio.timeout(600):
        ends = await asyncio.gather(*calls.settles, return_exceptions=True)
    assert [end for end in ends if not isinstance(end, EngineError | asyncio.CancelledError | None)] == failed == []
    assert (calls.steps.slots.in_use, calls.steps.slots.waiting, len(calls.steps._since)) == (0, 0, 0)
