"""Recordings of voices."""

import wave
from pathlib import Path

import numpy as np
import pytest

from voicepipe.base.errors import EngineError, EngineMissing
from voicepipe.engines.tts.neutts.codec import recorded


def saved(path: Path, *, rate: int = 24_000, width: int = 2, channels: int = 1, seconds: float = 3.0) -> Path:
    """A tone of 440 Hz at half of full scale."""
    wide = 0.5 * np.sin(2 * np.pi * 440 * np.arange(round(seconds * rate)) / rate)
    whole = np.repeat((wide * (1 << (8 * width - 1))).astype(np.int64), channels)
    data = (whole + 128).astype(np.uint8).tobytes() if width == 1 else b"".join(
        int(each).to_bytes(width, "little", signed=True) for each in whole
    )  # fmt: skip
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, rate, 0, "NONE", ""))
        file.writeframes(data)
    return path


@pytest.mark.parametrize(
    ("rate", "width", "channels"), [(16_000, 2, 1), (24_000, 2, 2), (44_100, 3, 1), (48_000, 4, 1), (8000, 1, 1)]
)
def test_a_wav_file_of_any_kind_is_heard_at_16_khz(tmp_path: Path, rate: int, width: int, channels: int) -> None:
    pcm = recorded("key", saved(tmp_path / "a.wav", rate=rate, width=width, channels=channels))
    assert pcm.dtype == np.int16 and pcm.size == pytest.approx(48_000, abs=50)
    assert abs(int(pcm.max()) - 16_384) < 500
    spectrum = np.abs(np.fft.rfft(pcm[8000:24_000].astype(float)))
    assert spectrum.argmax() == pytest.approx(440, abs=2)


def test_a_recording_that_cannot_be_used_says_why(tmp_path: Path) -> None:
    with pytest.raises(EngineMissing, match="neutts.voices.anna.file: there is no /nowhere.wav"):
        recorded("neutts.voices.anna.file", Path("/nowhere.wav"))
    (tmp_path / "a.wav").write_bytes(b"ID3 and so on")
    with pytest.raises(EngineError, match="is no WAV file"):
        recorded("key", tmp_path / "a.wav")
    for seconds in (1.0, 30.0):
        with pytest.raises(EngineError, match="record 3 to 15 s"):
            recorded("key", saved(tmp_path / "a.wav", rate=8000, seconds=seconds))


@pytest.mark.parametrize(("at", "value", "says"), [(24, 0, "is no WAV file"), (34, 64, "record 3 to 15 s")])
def test_a_header_without_sense_is_no_crash(tmp_path: Path, at: int, value: int, says: str) -> None:
    """No samples a second, and 64 bits a sample."""
    file = saved(tmp_path / "a.wav", rate=8000)
    data = bytearray(file.read_bytes())
    data[at : at + 2] = value.to_bytes(2, "little")
    file.write_bytes(data)
    with pytest.raises(EngineError, match=says):
        recorded("key", file)


def test_silence_is_nobodys_voice(tmp_path: Path) -> None:
    file = tmp_path / "a.wav"
    with wave.open(str(file), "wb") as written:
        written.setparams((1, 2, 16_000, 0, "NONE", ""))
        written.writeframes(bytes(2 * 3 * 16_000))
    with pytest.raises(EngineError, match="is silent: record somebody"):
        recorded("key", file)
