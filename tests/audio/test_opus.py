"""libopus through our binding: what goes in comes out, what is lost is made up, what is no Opus is said to be none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voicepipe.audio import RATE, Pcm, dbfs
from voicepipe.audio.opus import OpusDecoder, OpusEncoder, OpusError, alive


def tone(rate: int, seconds: float = 1.0) -> Pcm:
    return (8000 * np.sin(2 * np.pi * 440 * np.arange(int(rate * seconds)) / rate)).astype(np.int16)


def payloads(rate: int) -> list[bytes]:
    encode = OpusEncoder(rate)
    return [encode(block) for block in tone(rate).reshape(-1, rate // 50)]


@pytest.mark.parametrize("rate", [8000, 16000, 24000, 48000])
def test_a_tone_keeps_its_pitch_its_level_and_its_place(rate: int) -> None:
    decode = OpusDecoder()
    heard = np.concatenate([decode(payload) for payload in payloads(rate)])
    assert heard.size == RATE
    settled = heard[RATE // 10 :]
    assert dbfs(settled) == pytest.approx(dbfs(tone(RATE)), abs=1)
    spectrum = np.abs(np.fft.rfft(settled.astype(float)))
    assert np.argmax(spectrum) * RATE / settled.size == pytest.approx(440, abs=5)
    onset = int(np.argmax(np.abs(heard) > 2000)) * 1000 / RATE
    assert onset < 10  # encoder and decoder look ahead by 2.5 ms each


def test_silence_takes_next_to_nothing() -> None:
    encode = OpusEncoder(24_000)
    sizes = [len(encode(np.zeros(480, np.int16))) for _ in range(50)]
    assert max(sizes[5:]) < 10


def test_a_lost_packet_sounds_like_the_one_before() -> None:
    decode = OpusDecoder()
    first, second, *_ = payloads(24_000)[10:]
    decode(first)
    decode(second)
    for made in (decode.conceal(320), decode.recover(second, 320)):
        assert made.size == 320
        assert dbfs(made) > -30


def test_made_up_sound_has_a_length_that_opus_has() -> None:
    decode = OpusDecoder()
    decode(payloads(24_000)[0])
    assert [decode.conceal(samples).size for samples in (1, 39, 41, 333, 10**6)] == [40, 40, 40, 320, 1920]


@given(st.binary(max_size=200))
def test_any_bytes_are_sound_or_an_error(data: bytes) -> None:
    try:
        assert OpusDecoder()(data).size <= RATE * 120 // 1000
    except OpusError as error:
        assert "Opus" in str(error)


def test_a_rate_that_opus_lacks() -> None:
    with pytest.raises(ValueError, match="22050 Hz"):
        OpusEncoder(22_050)
    with pytest.raises(ValueError, match="no Opus frame"):
        OpusEncoder(24_000)(np.zeros(441, np.int16))


def test_coders_are_counted_while_there_are_any() -> None:
    before = alive()
    pair = OpusEncoder(24_000), OpusDecoder()
    assert alive() == before + 2
    del pair
    assert alive() == before
