"""One model in two stages (pipeline parallel), each in a process of its own, once as if on two hosts: `make
test-vllm`, on any CPU with two cores.

vLLM on a CPU needs two things for it: cores for each stage (VLLM_CPU_OMP_THREADS_BIND), and its model compiled. With
`enforce_eager` and a cache of given size it leaves out the first, empty step, in which the second stage gets the room
for what the first one sends.
"""

import asyncio
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from psutil import AccessDenied, NoSuchProcess, Process, ZombieProcess, process_iter

from latency_probes import clips
from latency_probes.conversation import greeting_over, heard_since
from latency_probes.own_server import Started, started
from latency_probes.realtime import RealtimeCaller
from latency_probes.timeline import BLOCK
from tests.engines.contract import texts
from tests.gpu_engines import test_vllm
from tests.support.ports import free_port
from tests.support.spoken import spoken
from tests.support.waiting import PATIENT_POP, until
from voicepipe.base.errors import EngineDead
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.vllm.start import RANK

pytestmark = [pytest.mark.engine, pytest.mark.e2e]
LONGEST_S = 300.0
"""For what takes seconds: a start, a reply."""
STAGES: dict[str, Any] = {"pipeline_parallel_size": 2, "enforce_eager": False}
SAID = ("what are your opening hours", "a table for two on friday", "do you have vegan dishes")
PROMPTS = [Prompt((test_vllm.SYSTEM, Message("user", words))) for words in SAID]
FALLBACK = "I have a problem"
CONFIG = f"""
[pop]
agents = "agents"
[ladder]
acknowledge_ms = 0
fallback_ms = 0  # Never for being late: what is heard is heard because a rank is gone.
stall_ms = 0
[engines]
llm = "vllm"
[vllm]
model = "{test_vllm.NANO}"
max_model_len = 2048
kv_cache_memory_bytes = {64 << 20}
max_tokens = 96
stall_s = 300  # So long it is not taken for hung.
[vllm.args]
dtype = "float32"
pipeline_parallel_size = 2
"""
OTHER_HOST = """
import sys
from vllm import AsyncEngineArgs
from vllm.entrypoints.cli.serve import run_headless
from vllm.utils.argparse_utils import FlexibleArgumentParser
args = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser()).parse_args(sys.argv[1:])
args.api_server_count, args.reasoning_parser_plugin = 0, ""
run_headless(args)
"""
"""As `vllm serve --headless`, which does not start where vLLM's package has another name (vllm-cpu)."""


@pytest.fixture(name="cores", autouse=True)
def _cores(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A core for each stage."""
    cores = sorted(os.sched_getaffinity(0))
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", f"{cores[0]}|{cores[-1]}")
    shared = Path("/dev/shm")
    before = {*shared.glob("vllm_dist_*")}
    yield cores
    for left in {*shared.glob("vllm_dist_*")} - before:  # 8 MB, by vLLM's processes on a CPU if they are killed
        if not is_mapped(left.name):  # by another test at the same time
            left.unlink()


def is_mapped(name: str) -> bool:
    """Whether a process has a file of that name in its memory."""
    for process in process_iter():
        with suppress(NoSuchProcess, AccessDenied, ZombieProcess):
            if any(name in mapped.path for mapped in process.memory_maps()):
                return True
    return False


async def test_two_stages_say_what_one_says() -> None:
    async with test_vllm.started(test_vllm.configured()) as one:
        whole = [await test_vllm.greedy(one, prompt) for prompt in PROMPTS]
    async with test_vllm.started(test_vllm.configured(args=STAGES)) as two:
        for prompt, steps in zip(PROMPTS, whole, strict=True):
            test_vllm.assert_same(steps, await test_vllm.greedy(two, prompt))


async def test_a_stage_on_another_host_is_lost_and_the_model_is_back_once_that_host_is(
    cores: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VLLM_CPU_OMP_THREADS_BIND", str(cores[0]))
    at = {"nnodes": 2, "master_addr": "127.0.0.1", "master_port": free_port()}
    with another_host(at, cores[-1]) as other:
        async with test_vllm.started(test_vllm.configured(args=STAGES | at)) as llm:
            said = await texts(llm, PROMPTS[0])
            assert len(llm.core.processes) == 2, "the engine and the first stage"
            for rank in [each for each in Process(other.pid).children(recursive=True) if RANK in each.name()]:
                rank.kill()
            with pytest.raises(EngineDead):
                await texts(llm, PROMPTS[0])
            await asyncio.to_thread(other.wait, LONGEST_S)  # It ends by itself; systemd would start it again.
            with another_host(at, cores[-1]):
                await until(lambda: llm.alive, 2 * LONGEST_S)
                assert await texts(llm, PROMPTS[0]) == said and llm.restarts


@contextmanager
def another_host(at: dict[str, Any], core: int) -> Iterator["subprocess.Popen[bytes]"]:
    """The second of two hosts."""
    args = {"model": str(test_vllm.NANO), "node_rank": 1, "scheduling_policy": "priority", "max_model_len": 1024}
    args |= {"kv_cache_memory_bytes": 64 << 20, "dtype": "float32", "block_size": test_vllm.BLOCK, **at}
    args |= {"max_num_seqs": test_vllm.AT_A_TIME, "pipeline_parallel_size": 2}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in args.items()]
    environment = os.environ | {"VLLM_CPU_OMP_THREADS_BIND": str(core), "HF_HUB_OFFLINE": "1"}
    with subprocess.Popen([sys.executable, "-c", OTHER_HOST, *options], env=environment) as other:
        try:
            yield other
        finally:
            other.terminate()


@pytest.fixture(name="pop")
def _pop(tmp_path: Path) -> Iterator[Started]:
    agents = tmp_path / "agents"
    agents.mkdir()
    desk = (test_vllm.NANO.parent / "desk" / "front-desk.toml").read_text()
    for key, value in (("fallback", f'"{FALLBACK}."'), ("no_input", "[]")):
        desk = re.sub(rf"^{key} = .*$", f"{key} = {value}", desk, flags=re.M)
    (agents / "front-desk.toml").write_text(desk)
    config = tmp_path / "pop.toml"
    config.write_text(CONFIG)
    with started((*PATIENT_POP, "--config", str(config))) as pop:
        yield pop


async def test_a_stage_is_killed_in_the_middle_of_a_call_and_comes_back(pop: Started) -> None:
    async with a_call(pop) as call:
        await call.ask()
        await call.hears_an_answer()
        for which in (-1, 0):
            ranks = ranks_of(pop)
            assert len(ranks) == 2
            ranks[which].suspend()  # So that the reply is not over before.
            await call.ask()
            await call.understood()
            assert (await health(pop))["status"] == "ok"
            ranks[which].kill()
            await call.hears_the_fallback()
            down = await health(pop)
            assert down["status"] == "engine_down" and "llm" in down["down"]
            async with asyncio.timeout(LONGEST_S):
                while (await health(pop))["status"] != "ok":  # noqa: ASYNC110
                    await asyncio.sleep(0.2)
            assert not {rank.pid for rank in ranks} & {rank.pid for rank in ranks_of(pop)}
            await call.ask()
            await call.hears_an_answer()
    assert (await health(pop))["restarts"] == {"llm": 2}


class Call:
    """A caller who asks for the opening hours, again and again."""

    def __init__(self, caller: RealtimeCaller, log: Path) -> None:
        self._caller = caller
        self._line = caller.timeline
        self._log = log
        self._asked = 0.0

    async def ask(self) -> None:
        """Returns when the caller has spoken."""
        speech = await asyncio.to_thread(clips.speech, spoken("hours")[0], 1)
        self._asked = time.monotonic()
        last = self._caller.say(speech.pcm) + speech.voiced[1] - 1
        await until(lambda: len(self._line.sent) * BLOCK > last, LONGEST_S)

    async def understood(self) -> None:
        """Returns when the PoP has the words."""
        words = "conversation.item.input_audio_transcription.completed"
        await until(lambda: any(event.arrived > self._asked for event in self._line.of_type(words)), LONGEST_S)

    async def hears_an_answer(self) -> None:
        """Returns when the caller has heard the language model answer what was asked last, to the end. Whatever it
        answers: a recogniser with little of the processor may mishear the question."""
        await self._hears(lambda text: bool(text) and FALLBACK not in text)

    async def hears_the_fallback(self) -> None:
        await self._hears(lambda text: FALLBACK in text)

    async def _hears(self, wanted: Callable[[str], bool]) -> None:
        def heard() -> list[str]:
            return [reply.text for reply in heard_since(self._line, self._asked)]

        try:
            await until(lambda: not self._line.busy() and any(map(wanted, heard())), LONGEST_S)
        except TimeoutError:
            log = "\n".join(self._log.read_text().splitlines()[-40:])
            pytest.fail(f"what was heard is {heard()}; the PoP's log:\n{log}")


@asynccontextmanager
async def a_call(pop: Started) -> AsyncIterator[Call]:
    caller = RealtimeCaller(pop.url, "quiet", seed=1)
    await caller.dial()
    try:
        await greeting_over(caller)
        yield Call(caller, pop.log)
    finally:
        await caller.hang_up()


def ranks_of(pop: Started) -> list[Process]:
    """The processes of the stages, the first one first."""
    children = Process(pop.pid).children(recursive=True)
    return sorted((child for child in children if RANK in child.name()), key=lambda child: str(child.name()))


async def health(pop: Started) -> dict[str, Any]:
    """What /readyz says."""
    return dict(msgspec.json.decode(await asyncio.to_thread(_answer, f"{pop.url}/readyz")))


def _answer(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url) as answer:
            return bytes(answer.read())
    except urllib.error.HTTPError as refusal:
        return bytes(refusal.read())
