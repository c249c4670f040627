"""Windows that wait for the codec are decoded together."""

import asyncio
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from tests.support.waiting import until
from voicepipe.base.worker import Worker
from voicepipe.engines.base import Speech
from voicepipe.engines.tts.neutts.decoding import BATCH, CodecBatches
from voicepipe.engines.tts.neutts.windows import Sound


class Codec:
    """Each code's sound is the code. It waits at `go_on`."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.go_on = threading.Event()
        self.fails = False

    def decode(self, windows: Sequence[Sequence[int]]) -> list[Sound]:
        assert len({len(window) for window in windows}) == 1
        self.batches.append([window[0] for window in windows])
        assert self.go_on.wait(60)
        if self.fails:
            raise RuntimeError("CUDA error")
        return [np.array(window, np.float32) for window in windows]


def speech(sound: Sound) -> Speech:
    return Speech(sound.astype(np.int16))


@pytest.fixture
def codec() -> Codec:
    return Codec()


@pytest.fixture
def decoding(codec: Codec) -> CodecBatches:
    return CodecBatches(Worker("codec", told=False), codec.decode, 60)


async def test_windows_that_wait_are_one_batch_and_each_gets_its_own(codec: Codec, decoding: CodecBatches) -> None:
    asked = [asyncio.create_task(decoding.ask([number, 7], speech, first=False)) for number in range(BATCH + 3)]
    await until(lambda: codec.batches)
    await asyncio.sleep(0)
    codec.go_on.set()
    made = await asyncio.gather(*asked)
    assert [each.pcm.tolist() for each in made] == [[number, 7] for number in range(BATCH + 3)]
    assert len(codec.batches) <= 3 and 1 < max(map(len, codec.batches)) <= BATCH


async def test_windows_of_another_length_are_another_batch(codec: Codec, decoding: CodecBatches) -> None:
    codec.go_on.set()
    made = await asyncio.gather(*(decoding.ask([1] * length, speech, first=False) for length in (2, 3, 2, 3)))
    assert [each.pcm.size for each in made] == [2, 3, 2, 3]


async def test_what_nobody_waits_for_is_not_decoded(codec: Codec, decoding: CodecBatches) -> None:
    asked = [asyncio.create_task(decoding.ask([number], speech, first=False)) for number in range(3)]
    await until(lambda: codec.batches)
    asked[1].cancel()
    with pytest.raises(asyncio.CancelledError):
        await asked[1]
    taken = [number for batch in codec.batches for number in batch]
    codec.go_on.set()
    await asyncio.gather(asked[0], asked[2])
    assert 1 in taken or all(1 not in batch for batch in codec.batches)


async def test_who_hears_nothing_yet_goes_first(codec: Codec, decoding: CodecBatches) -> None:
    busy = asyncio.create_task(decoding.ask([0], speech, first=False))
    await until(lambda: codec.batches)
    later = [asyncio.create_task(decoding.ask([1, 1], speech, first=False))]
    await asyncio.sleep(0)
    first = asyncio.create_task(decoding.ask([2, 2, 2], speech, first=True))
    await asyncio.sleep(0)
    codec.go_on.set()
    await asyncio.gather(busy, first, *later)
    assert codec.batches == [[0], [2], [1]]


async def test_a_failure_is_told_to_each(codec: Codec, decoding: CodecBatches) -> None:
    codec.fails = True
    codec.go_on.set()
    for failed in await asyncio.gather(
        *(decoding.ask([number], speech, first=False) for number in range(3)), return_exceptions=True
    ):
        assert isinstance(failed, RuntimeError)
