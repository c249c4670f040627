"""An utterance's sound, cut as the model takes it."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.engines.asr.nemotron import front_end
from voicepipe.engines.asr.nemotron.chunks import BEHIND, FACTOR, LEAD, Chunks, frames_of


def sound(samples: int) -> Any:
    return (np.arange(samples) % 30_000 + 1).astype(np.int16)


@given(st.sampled_from([80, 160, 320, 560, 1120]), st.lists(st.integers(0, 5000), max_size=20))
def test_chunks_are_the_sound_however_it_comes(chunk_ms: int, sizes: list[int]) -> None:
    frames = frames_of(chunk_ms)
    chunks, whole, taken = Chunks(frames), sound(sum(sizes)), []
    at = 0
    for size in sizes:
        chunks.feed(whole[at : at + size])
        at += size
        while chunks.ready:
            before = chunks.rest()
            taken.append(chunks.take())
            assert np.array_equal(before[0], taken[-1])
    assert chunks.fed == whole.size
    padded = np.concatenate([np.zeros(LEAD, np.int16), whole, np.zeros(100_000, np.int16)])
    step, size = frames * FACTOR * front_end.HOP, front_end.samples(frames * FACTOR)
    rest = chunks.rest()
    assert len(rest) in {1, 2}
    for number, chunk in enumerate([*taken, *rest]):
        assert np.array_equal(chunk, padded[number * step :][:size])
    covered = (len(taken) + len(rest) - 1) * step + size - LEAD
    assert covered >= whole.size + BEHIND, "the last word's end is heard, and what follows it"
    assert chunks.heard == (len(taken) - 1) * step + size - LEAD if taken else chunks.heard == 0
