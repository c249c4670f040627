"""G.711 by table: every sample, every code, and two values of the standard."""

import numpy as np
import pytest

from voicepipe.audio import g711

EVERY = np.arange(-32768, 32768).astype(np.int16)
CODES = bytes(range(256))


@pytest.mark.parametrize(("law", "worst"), [("pcmu", 1024), ("pcma", 1024)])
def test_every_sample_comes_back_near(law: str, worst: int) -> None:
    back = g711.decode(law, g711.encode(law, EVERY)).astype(np.int32)
    error = np.abs(back - EVERY)
    assert error.max() <= worst
    assert (error <= np.maximum(np.abs(EVERY.astype(np.int32)) / 16, 16)).all()
    assert (np.diff(back) >= 0).all()


@pytest.mark.parametrize("law", ["pcmu", "pcma"])
def test_every_code_comes_back(law: str) -> None:
    again = g711.encode(law, g711.decode(law, CODES))
    same = sum(a == b for a, b in zip(again, CODES, strict=True))
    assert same == (255 if law == "pcmu" else 256)  # mu-law has two zeros


def test_silence_and_full_scale() -> None:
    edges = np.array([0, 32767, -32768], np.int16)
    assert g711.encode("pcmu", edges) == b"\xff\x80\x00"
    assert g711.encode("pcma", edges) == b"\xd5\xaa\x2a"
    assert g711.decode("pcmu", b"\xff\x80\x00").tolist() == [0, 32124, -32124]
    assert g711.decode("pcma", b"\xd5\xaa\x2a").tolist() == [8, 32256, -32256]
