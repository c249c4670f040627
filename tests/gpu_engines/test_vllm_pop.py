"""A whole PoP whose language model is the nano LLM in vLLM: a spoken question is answered out loud. Once
NeuTTS, tiny and with random weights, speaks from a process of vLLM's beside it."""

import asyncio
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from psutil import Process

from latency_probes.conversation import converse
from latency_probes.own_server import Started, started
from latency_probes.plan import CallPlan, Turn
from latency_probes.realtime import RealtimeCaller
from tests.models import tiny_neutts
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP

pytestmark = pytest.mark.e2e
NANO = Path(__file__).parent / "nano.toml"
RULES = Path(__file__).parents[2] / "pops" / "alerts" / "voicepipe.rules.yml"


@pytest.fixture(name="pop", params=[1, 2], ids=["", "beside a voice"])
def _pop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Started]:
    """With so many processes of vLLM's."""
    config = tmp_path / "pop.toml"
    text = NANO.read_text().replace("../models", str(NANO.parents[1] / "models"))
    config.write_text(text if request.param == 1 else beside_a_voice(text, tmp_path))
    with started((*PATIENT_POP, "--config", str(config))) as pop:
        yield pop
        assert len(cores(pop.pid)) == request.param


def beside_a_voice(text: str, folder: Path) -> str:
    model, codec, recording = tiny_neutts.make(folder)
    return text.replace('llm = "vllm"', 'llm = "vllm"\ntts = "neutts"') + (
        "enforce_eager = true\n"
        f'[neutts]\nmodel = "{model}"\ncodec = "{codec}"\nkv_cache_memory_bytes = {32 << 20}\n'
        '[neutts.args]\nenforce_eager = true\ndtype = "float32"\n'
        f'[neutts.voices.anna]\nfile = "{recording}"\ntext = "{tiny_neutts.SAID}"\nconsent = "nobody: it is noise"\n'
    )


def cores(pid: int) -> set[int]:
    """vLLM's processes of a PoP."""
    return {child.pid for child in Process(pid).children() if "EngineCore" in child.name() + " ".join(child.cmdline())}


def scraped(url: str) -> str:
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        return str(answer.read(), "utf-8")


async def test_a_question_is_answered(pop: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", 20.0)
    caller = RealtimeCaller(pop.url, "quiet", seed=1)
    plan = CallPlan(1, "quiet", tuple(Turn("e2e", clip) for clip in spoken("hours", "parking")))
    record = await converse(caller, plan, seed=1)
    assert not record.failure
    transcripts = caller.timeline.of_type("response.output_audio_transcript.done")
    metrics = await asyncio.to_thread(scraped, pop.url)
    labels = 'engine="0",model_name="[^"]+",pop="local",region="local"'
    for name in set(re.findall(r"\bvllm:\w+", RULES.read_text())):
        assert re.search(rf"^{name}{{{labels}}} \d", metrics, re.M), f"the alerts ask for {name}"
    assert re.search(r'^vllm:generation_tokens_total{.*model_name="[^"]*nano-llm.* [1-9]', metrics, re.M)
    said = " ".join(event.data["transcript"] for event in transcripts).lower()
    assert "noon" in said or "park" in said, said
