"""A whole PoP whose language model is the nano LLM in vLLM: a spoken question is answered out loud."""

import asyncio
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from latency_probes.conversation import converse
from latency_probes.own_server import own_server
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.spoken import spoken
from tests.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e
NANO = Path(__file__).parent / "nano.toml"
RULES = Path(__file__).parents[2] / "pops" / "alerts" / "voicepipe.rules.yml"


@pytest.fixture(name="pop", params=["", "[endpoint]\nask_llm = true\n"], ids=["", "that is asked where turns end"])
def _pop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    config = tmp_path / "pop.toml"
    config.write_text(NANO.read_text().replace("../models", str(NANO.parents[1] / "models")) + request.param)
    with own_server((*PATIENT_POP, "--config", str(config))) as url:
        yield url


def scraped(pop: str) -> str:
    with urllib.request.urlopen(f"{pop}/metrics") as answer:
        return str(answer.read(), "utf-8")


async def test_a_question_is_answered(pop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 20.0)
    caller = RealtimeCaller(pop, "quiet", seed=1)
    plan = CallPlan(1, "quiet", tuple(Turn("e2e", clip) for clip in spoken("hours", "parking")))
    record = await converse(caller, plan, seed=1)
    assert not record.failure
    transcripts = caller.timeline.of_type("response.output_audio_transcript.done")
    metrics = await asyncio.to_thread(scraped, pop)
    labels = 'engine="0",model_name="[^"]+",pop="local",region="local"'
    for name in set(re.findall(r"\bvllm:\w+", RULES.read_text())):
        assert re.search(rf"^{name}{{{labels}}} \d", metrics, re.M), f"the alerts ask for {name}"
    said = " ".join(event.data["transcript"] for event in transcripts).lower()
    assert "noon" in said or "park" in said, said
