"""What becomes of vLLM's errors. vLLM is a stand-in."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.waiting import until
from voicepipe.base.errors import EngineBusy, EngineDead, EngineError, EngineMissing, RequestRefused
from voicepipe.config.engine_config import VllmConfig
from voicepipe.engines.base import Message, Prompt
from voicepipe.engines.llm.vllm.vllm_llm import CONFIRMED, VllmCore, _arguments

PROMPT = Prompt((Message("user", "Hello."),))


class Overloaded(Exception):
    pass


class FakeLlm:
    """As AsyncLLM: who waits for output waits at a queue, of which nothing else knows."""

    errored = False
    output_handler: "asyncio.Task[None] | None" = None

    def __init__(self) -> None:
        self.output_processor = self
        self.hangs = False
        self._queues: list[asyncio.Queue[Exception]] = []

    async def generate(self, *args: Any, **options: Any) -> AsyncIterator[Any]:
        if self.hangs:
            self._queues.append(asyncio.Queue())
            raise await self._queues[-1].get()
        yield SimpleNamespace(outputs=["Hi."])

    def propagate_error(self, error: Exception) -> None:
        for queue in self._queues:
            queue.put_nowait(error)

    def shutdown(self) -> None:
        raise RuntimeError("it hangs together with others")


class FakeGuard:
    ended = False

    def watch(self, processes: list[Any]) -> None:
        pass

    def end(self) -> None:
        self.ended = True


class FakeChats:
    """`error` is raised by the chat's template, or by the parser of what is said."""

    def __init__(self, error: Exception | None, *, at_once: bool) -> None:
        self.error = error
        self.at_once = at_once

    async def request(self, prompt: Prompt) -> Any:
        if self.at_once and self.error:
            raise self.error
        return SimpleNamespace(inputs=None, params=None, reading=self, lora=None)

    def take(self, output: str) -> list[str]:
        if self.error:
            raise self.error
        return [output]


@pytest.fixture(autouse=True)
def _vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    exceptions = ModuleType("vllm.exceptions")
    exceptions.GracefulHTTPError = Overloaded  # type: ignore[attr-defined]
    engine = ModuleType("vllm.v1.engine.exceptions")
    engine.EngineDeadError = RuntimeError  # type: ignore[attr-defined]
    for module in (*map(ModuleType, ("vllm", "vllm.v1", "vllm.v1.engine")), exceptions, engine):
        monkeypatch.setitem(sys.modules, module.__name__, module)


def core(error: Exception | None = None, *, at_once: bool = False) -> VllmCore:
    start = SimpleNamespace(family=list, guard=FakeGuard())
    return VllmCore(FakeLlm(), FakeChats(error, at_once=at_once), start)  # type: ignore[arg-type]


async def said(core: VllmCore) -> list[Any]:
    return [delta async for delta in core.reply(PROMPT, CONFIRMED)]


@pytest.mark.parametrize("error", [KeyError("name"), IndexError(), TypeError(), NotImplementedError()])
@pytest.mark.parametrize("at_once", [True, False])
async def test_whatever_a_template_or_a_parser_raises_is_the_engines_error(error: Exception, at_once: bool) -> None:
    with pytest.raises(EngineError, match="vLLM could not reply") as raised:
        await said(core(error, at_once=at_once))
    assert raised.value.__cause__ is error


@pytest.mark.parametrize("at_once", [True, False])
async def test_a_request_that_vllm_cannot_use_is_not_its_failure(at_once: bool) -> None:
    error = ValueError("the prompt has more tokens than the model takes")
    with pytest.raises(RequestRefused, match="more tokens") as raised:
        await said(core(error, at_once=at_once))
    assert raised.value.__cause__ is error


async def test_what_is_known_keeps_its_name() -> None:
    assert await said(core()) == ["Hi."]
    with pytest.raises(EngineBusy, match="no more requests"):
        await said(core(Overloaded()))
    dead = core(RuntimeError())
    dead.llm.errored = True
    with pytest.raises(EngineDead):
        await said(dead)


def test_a_pop_that_was_stopped_does_not_wake_up_to_one_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its processes are killed for that, and loading it takes minutes."""
    stopped_s, real = 0.0, time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: real() + stopped_s)
    made = core()
    with made._liveness.asked(10):
        assert not made.errored
        stopped_s = 15.0
        assert not made.errored
        for _ in range(100):
            stopped_s += 0.9
            made._liveness.alive  # noqa: B018
        assert made.errored


async def test_its_processes_are_ended_when_it_cannot_be_shut_down() -> None:
    ended = core()
    await ended.close()
    assert isinstance(ended._guard, FakeGuard) and ended._guard.ended


async def test_who_waits_for_one_that_hangs_is_told_when_it_is_ended() -> None:
    """A handler that is cancelled tells nobody: an agent that was being warmed up was waited for until a restart."""
    made = core()
    llm: FakeLlm = made.llm
    llm.hangs = True
    llm.output_handler = asyncio.create_task(asyncio.sleep(600))
    waiting = asyncio.create_task(said(made))
    await until(lambda: llm._queues)
    llm.errored = True
    await made.close()
    with pytest.raises(EngineDead):
        await asyncio.wait_for(waiting, 60)
    assert llm.output_handler.cancelled()


async def test_a_rank_that_is_lost_is_the_end_before_vllm_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others wait for it, and would be given seconds to end by themselves."""
    order = list[str]()
    monkeypatch.setattr("voicepipe.engines.llm.vllm.process.end", lambda processes: order.append("killed"))
    made = core()
    llm: FakeLlm = made.llm
    llm.hangs = True
    monkeypatch.setattr(llm, "shutdown", lambda: order.append("shut down"))
    waiting = asyncio.create_task(said(made))
    await until(lambda: llm._queues)
    assert not made.errored
    made._ranks._lost = True
    assert made.errored
    await made.close()
    with pytest.raises(EngineDead):
        await asyncio.wait_for(waiting, 60)
    assert order == ["killed", "shut down", "killed"]


def test_a_library_that_vllm_lacks_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is an OSError, not an ImportError, when it is loaded by ctypes."""
    package = tmp_path / "vllm"
    package.mkdir()
    (package / "__init__.py").write_text('raise OSError("libcudart.so.13: cannot open shared object file")')
    monkeypatch.delitem(sys.modules, "vllm")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("default_variables", "put_variable"):
        monkeypatch.setattr(f"voicepipe.engines.llm.vllm.process.{name}", lambda *given: None)
    with pytest.raises(EngineMissing, match=r"cannot be imported \(libcudart"):
        _arguments(VllmConfig(model=str(tmp_path)))


@pytest.mark.parametrize("error, dies", [(RuntimeError("CUDA error"), True), (ValueError("too long"), False),
                                         (Overloaded("full"), False)])  # fmt: skip
async def test_failures_of_the_engine_in_a_row_are_its_end_and_what_it_refuses_is_not(
    error: Exception, dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*args: Any, **options: Any) -> AsyncIterator[Any]:
        raise error
        yield

    made = core()
    monkeypatch.setattr(made.llm, "generate", fails)
    for _ in range(3):
        assert not made.errored
        with pytest.raises(EngineError):
            await said(made)
    if made._trial:
        await asyncio.wait({made._trial})
    assert made.errored == dies


async def test_a_template_that_fails_and_fails_is_not_the_engines_end() -> None:
    """A client's tool can make it fail."""
    made = core(KeyError("name"))
    for _ in range(5):
        with pytest.raises(EngineError):
            await said(made)
    assert not made.errored


async def test_a_trial_that_finds_vllm_full_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be killed for having much to do, and loading it takes minutes."""
    errors = [RuntimeError(), RuntimeError(), RuntimeError(), Overloaded("full"), RuntimeError(), RuntimeError()]

    async def fails(*args: Any, **options: Any) -> AsyncIterator[Any]:
        raise errors.pop(0)
        yield

    made = core()
    monkeypatch.setattr(made.llm, "generate", fails)
    for left, dies in ((5, False), (4, False), (2, False), (0, True)):
        with pytest.raises(EngineError):
            await said(made)
        await until(lambda: made._trial is None)
        assert len(errors) == left and made.errored == dies


@pytest.mark.parametrize("trial_works", [True, False])
async def test_replies_that_vllm_gives_up_itself_are_failures(trial_works: bool) -> None:
    made = core(EngineError("vLLM gave a reply up (error): its log says why."))
    chats: FakeChats = made.chats  # type: ignore[assignment]
    for number in range(3):
        if number == 2 and trial_works:
            asyncio.get_running_loop().call_soon(setattr, chats, "error", None)
        assert not made.errored
        with pytest.raises(EngineError, match="gave a reply up"):
            await said(made)
    if made._trial:
        await asyncio.wait({made._trial})
    assert made.errored is not trial_works
