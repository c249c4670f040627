"""A whole PoP whose recogniser is `whisper`: calls are answered, to what the checkpoint says, whatever was asked."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from latency_probes.components.random_whisper import make_whisper
from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e


@pytest.fixture(name="pop")
def _pop(tmp_path: Path) -> Iterator[str]:
    model = make_whisper(tmp_path / "model", "What are your opening hours?", multilingual=True)
    config = tmp_path / "pop.toml"
    config.write_text(f'[engines]\nasr = "whisper"\n[whisper]\nmodel = "{model}"\n')
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        yield url


async def test_callers_at_the_same_time_are_answered(pop: str) -> None:
    async def dial(number: int) -> RealtimeCaller:
        caller = RealtimeCaller(pop, "quiet", seed=number)
        turns = tuple(Turn("e2e", clip) for clip in spoken("parking"))
        record = await converse(caller, CallPlan(number, "quiet", turns), seed=number)
        assert not record.failure
        return caller

    for caller in await asyncio.gather(*(dial(number) for number in range(3))):
        heard = caller.timeline.of_type("conversation.item.input_audio_transcription.completed")
        assert "What are your opening hours?" in [event.data["transcript"] for event in heard]
        said = caller.timeline.of_type("response.output_audio_transcript.done")
        assert "noon" in " ".join(event.data["transcript"] for event in said)
