"""Calls from sipp, whose idea of SIP is not ours."""

import asyncio
import os
import shutil
import wave
from pathlib import Path

import numpy as np
import pytest

from latency_probes import clips
from tests.ingress.fake_pop import FakeCall, FakePop, serving, settled
from tests.ingress.sip.peer import sip
from tests.ingress.sip.sipp import pytestmark as pytestmark
from tests.ingress.sip.sipp import sipp
from tests.support.spoken import spoken
from voicepipe.audio import g711
from voicepipe.audio.resample import Resampler
from voicepipe.base.errors import PopFull
from voicepipe.config.phone_config import SipUser

KEYS = Path("/usr/share/sip-tester")
"""Recordings of keys that come with sipp."""


async def place(pop: FakePop, scenario: str, folder: Path, *options: str, calls: int = 1, held_ms: int = 300) -> None:
    async with serving(pop):
        await sipp(scenario, pop.config.sip.port, folder, *options, calls=calls, held_ms=held_ms)
        await settled(pop)


@pytest.mark.parametrize("scenario", ["call", "hold", "late_offer"])
async def test_a_call(scenario: str, tmp_path: Path) -> None:
    pop = FakePop(sip())
    await place(pop, scenario, tmp_path)
    assert len(pop.calls) == 1


async def test_messages_that_are_lost(tmp_path: Path) -> None:
    pop = FakePop(sip())
    await place(pop, "lossy", tmp_path, "-r", "20", "-max_retrans", "20", calls=15)
    assert len(pop.calls) == 15


@pytest.mark.usefixtures("hasty")
async def test_an_answer_that_nobody_acknowledges_ends_the_call(tmp_path: Path) -> None:
    pop = FakePop(sip())
    await place(pop, "lost_ack", tmp_path)
    assert len(pop.calls) == 1


async def test_a_caller_who_gives_up_while_it_rings(tmp_path: Path) -> None:
    pop = FakePop(sip(ring_ms=3000))
    await place(pop, "cancel", tmp_path)
    assert not pop.calls[0].blocks


async def test_a_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DESK_PASSWORD", "s3cret")
    pop = FakePop(sip(users=(SipUser(name="desk", password_env="DESK_PASSWORD"),)))
    await place(pop, "digest", tmp_path, "-au", "desk", "-ap", "s3cret")
    assert len(pop.calls) == 1
    with pytest.raises(AssertionError, match="403"):
        await place(pop, "digest", tmp_path, "-au", "desk", "-ap", "guess")
    assert len(pop.calls) == 1


async def test_a_full_pop(tmp_path: Path) -> None:
    pop = FakePop(sip())
    pop.refuse = PopFull("All slots are taken.")
    await place(pop, "refused", tmp_path, calls=5)
    assert not pop.calls


async def test_a_recorded_question_is_heard_as_it_was_said(tmp_path: Path) -> None:
    clip = await asyncio.to_thread(lambda: clips.speech(spoken("hours")[0], 1))
    narrow = Resampler(24_000, 8000)
    question = np.concatenate([narrow(clip.pcm), narrow.flush()])
    await asyncio.to_thread(write, tmp_path / "say.wav", g711.encode("pcmu", question))
    pop = FakePop(sip())
    await place(pop, "talk", tmp_path, held_ms=round(question.size / 8 + 500))
    heard = np.concatenate([block.pcm for block in pop.calls[0].blocks]).astype(np.float64)
    wide = Resampler(8000, 16_000)
    asked = wide(question).astype(np.float64)
    size = heard.size + asked.size
    likeness = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(asked, size)), size)
    assert likeness.max() > 0.9 * float(asked @ asked)


def write(path: Path, law: bytes) -> None:
    """PCMU as sipp plays it: the payload from the 44th byte on, whatever is said before."""
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 1, 8000, 0, "NONE", ""))
        file.writeframes(law)


@pytest.mark.skipif(os.geteuid() != 0, reason="sipp plays recordings of packets by raw sockets, which needs root")
async def test_a_key_from_a_recording_of_packets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await asyncio.to_thread(shutil.copy, KEYS / "dtmf_2833_1.pcap", tmp_path / "key.pcap")
    pop = FakePop(sip())
    pressed: list[str] = []
    monkeypatch.setattr(FakeCall, "press", lambda call, key: pressed.append(key))
    await place(pop, "keys", tmp_path)
    assert pressed == ["1"]


async def test_thirty_calls_a_second(tmp_path: Path) -> None:
    pop = FakePop(sip())
    await place(pop, "call", tmp_path, "-r", "30", calls=150, held_ms=1000)
    assert len(pop.calls) == 150
