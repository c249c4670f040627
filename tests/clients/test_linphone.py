"""linphone, a stock softphone, registers with its password and asks a question."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from latency_probes import clips
from latency_probes.own_server import own_server
from tests.clients.linphone import PROGRAM, linphone
from tests.ingress.sip.test_baresip import HOURS, USER, likest, transcribed
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP
from voicepipe.audio import RATE
from voicepipe.audio.resample import Resampler

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="linphone is not installed: apt install linphone-cli"),
]


@pytest.fixture
def port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where a fresh PoP takes calls by SIP from one user."""
    (config := tmp_path / "user.toml").write_text(USER)
    monkeypatch.setenv("ANN_PASSWORD", "s3cret")
    port = free_port()
    with own_server((*PATIENT_POP, "--sip-port", str(port), "--config", str(config))):
        yield port


async def test_a_phone_registers_and_its_question_is_answered(port: int, tmp_path: Path) -> None:
    narrow = Resampler(24_000, RATE)
    question = np.concatenate([narrow(clips.speech(spoken("hours")[0], 1).pcm), narrow.flush()])
    async with linphone(tmp_path / "ann", port, "ann", "s3cret") as ann:
        await ann.registered()
        await ann.dial(f"sip:front@127.0.0.1:{port}")
        greeting = await ann.spoken_to()
        await ann.say(question)
        answer = await ann.spoken_to(greeting.size)
        await ann.hang_up()
    text = await transcribed(answer)
    assert likest(text) == HOURS, text
