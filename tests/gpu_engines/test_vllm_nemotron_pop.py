"""A whole PoP whose recogniser is a tiny Nemotron of random weights: 16 calls at a time are heard and answered."""

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.gpu_engines.random_nemotron import make_nemotron
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e
CALLS = 16


@pytest.fixture(name="pop")
def _pop(tmp_path: Path) -> Iterator[str]:
    model = make_nemotron(tmp_path / "model")
    config = tmp_path / "pop.toml"
    config.write_text(
        f'[engines]\nasr = "nemotron"\nllm = "scripted"\ntts = "scripted"\n[nemotron]\nmodel = "{model}"\nthreads = 1\n'
    )
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        yield url


def health(pop: str) -> dict[str, float]:
    with urllib.request.urlopen(f"{pop}/healthz") as answer:
        told: dict[str, float] = json.load(answer)
    return told


async def test_callers_at_the_same_time_are_answered(pop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words are random: what is looked at is that they come, and that no call waits for another's end."""
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 20.0)

    async def dial(number: int) -> RealtimeCaller:
        caller = RealtimeCaller(pop, "quiet", seed=number)
        turns = tuple(Turn("e2e", clip) for clip in spoken("hours", "parking"))
        record = await converse(caller, CallPlan(number, "quiet", turns), seed=number)
        assert not record.failure
        return caller

    callers = await asyncio.gather(*(dial(number) for number in range(CALLS)))
    lag_ms = (await asyncio.to_thread(health, pop))["loop_lag_p99_ms"]
    print(f"loop lag p99 with {CALLS} calls: {lag_ms:.1f} ms")
    for caller in callers:
        heard = caller.timeline.of_type("conversation.item.input_audio_transcription.completed")
        assert any(event.data["transcript"] for event in heard)
        assert caller.timeline.of_type("response.output_audio_transcript.done")
