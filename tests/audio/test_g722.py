"""G.722 there and back: the sound keeps its pitch, its level and its place."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio import BLOCK, RATE, Pcm, dbfs
from voicepipe.audio.g722 import G722Decoder, G722Encoder


def there_and_back(pcm: Pcm) -> Pcm:
    encode, decode = G722Encoder(), G722Decoder()
    return np.concatenate([decode(encode(block)) for block in pcm.reshape(-1, BLOCK)])


@pytest.mark.parametrize("pitch", [440, 3000, 6000])
def test_a_tone_keeps_its_pitch_its_level_and_its_place(pitch: int) -> None:
    tone = (8000 * np.sin(2 * np.pi * pitch * np.arange(RATE) / RATE)).astype(np.int16)
    heard = there_and_back(tone)
    assert heard.size == RATE and heard.dtype == np.int16
    settled = heard[RATE // 10 :]
    assert dbfs(settled) == pytest.approx(dbfs(tone), abs=0.5)
    spectrum = np.abs(np.fft.rfft(settled.astype(float)))
    assert np.argmax(spectrum) * RATE / settled.size == pytest.approx(pitch, abs=2)
    onset = int(np.argmax(np.abs(heard) > 2000)) * 1000 / RATE
    assert onset < 6


def test_20_ms_take_160_bytes_and_silence_stays_silent() -> None:
    silence = np.zeros(50 * BLOCK, np.int16)
    assert len(G722Encoder()(silence[:BLOCK])) == 160
    assert dbfs(there_and_back(silence)) < -75


@given(st.binary(max_size=400))
def test_any_bytes_are_sound(data: bytes) -> None:
    assert G722Decoder()(data).size == 2 * len(data)
