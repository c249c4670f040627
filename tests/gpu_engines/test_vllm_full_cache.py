"""A fault that is put in on purpose, as in `tests/observe/test_faults.py`: the real vLLM's KV cache is full. It has
room for one context, and six callers ask at once. Two of their prompts fit, until the answers grow."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from latency_probes import clips
from latency_probes.conversation import greeting_over, take_turn
from latency_probes.plan import Turn
from latency_probes.realtime import RealtimeCaller
from tests.observe.recorded import value
from tests.observe.watched import Watched, pop
from tests.support.spoken import spoken

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (apt install prometheus)"),
]

NANO = Path(__file__).parents[1] / "models" / "nano-llm"
CALLERS = 6
LONGEST_S = 600.0
CONTEXT, BLOCK, TOKEN_BYTES = 2048, 32, 4096
"""Tokens; vLLM takes one block for itself."""
TABLES = f"""
[pop]
agents = "agents"
default_agent = "desk-0"
loop_lag_ms = 60000
[engines]
asr = "scripted"
llm = "vllm"
[scripted]
hears = ["what are your opening hours"]
[ladder]
words_ms = 0
acknowledge_ms = 0
fallback_ms = 0
stall_ms = 0
[vllm]
model = "{NANO}"
max_model_len = {CONTEXT}
kv_cache_memory_bytes = {(CONTEXT + BLOCK) * TOKEN_BYTES}
max_tokens = 600
temperature = 1.0
[vllm.args]
dtype = "float32"
enforce_eager = true
block_size = {BLOCK}
load_format = "dummy"  # Random weights and words: an answer ends where it must.
"""


@pytest.fixture(name="watched")
def _watched(tmp_path: Path) -> Iterator[Watched]:
    """Each caller has an agent of their own, so that no two share the beginning of a prompt."""
    agents = tmp_path / "agents"
    agents.mkdir()
    for number in range(CALLERS):
        instructions = f"{number} is your table. " + "You answer the phone of a restaurant. " * 90
        (agents / f"desk-{number}.toml").write_text(f'name = "desk-{number}"\ninstructions = "{instructions}"\n')
    with pop(tmp_path, TABLES) as its:
        yield its


async def ask(caller: RealtimeCaller) -> None:
    """... and listen to the answer until it is audible. The caller stays."""
    (question,) = spoken("hours")
    speech = await asyncio.to_thread(clips.speech, question, 1)
    await caller.dial()
    await greeting_over(caller)
    await take_turn(caller, Turn("soak", question), speech, None, 0.0)


async def test_a_full_kv_cache_is_named(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latency_probes.conversation.MISSED_S", LONGEST_S)
    callers = [RealtimeCaller(watched.url, "quiet", seed=n, agent=f"desk-{n}") for n in range(CALLERS)]
    await watched.begin()
    fullest, named = 0.0, False
    async with asyncio.timeout(LONGEST_S):
        asking = asyncio.gather(*map(ask, callers))
        running = waiting = 0.0
        while running or waiting or not asking.done():
            await asyncio.sleep(0.5)
            seen = await watched.look()
            running, waiting = (value(seen, f"vllm:num_requests_{which}") for which in ("running", "waiting"))
            fullest = max(fullest, value(seen, "vllm:kv_cache_usage_perc"))
            named = named or (waiting > 0 and "kv_cache" in await watched.culprits())
        await asking
        for caller in callers:
            await caller.hang_up()  # Turns whose answers still sound are counted now.
        afterwards: dict[str, str] = {}
        while "llm" not in afterwards:
            await asyncio.sleep(0.3)
            afterwards = await watched.culprits()
    assert fullest > 0.9 and named and "kv_cache" not in afterwards
    alerts = ("KvCacheFull", "LanguageModelQueue", 'TurnsWaitForStage{stage="llm"}', "EngineDown")
    assert await watched.fire(*alerts) == [True, True, True, False]
