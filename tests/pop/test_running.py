"""A PoP's life, from its engines to the end of its last call."""

import asyncio
import errno
import sys
from pathlib import Path

import msgspec
import pytest

import voicepipe.pop.pop_http  # slow to import, and the tests guard the event loop
import voicepipe.pop.prepared_agents
from tests.support.ports import free_port
from voicepipe.config import Config
from voicepipe.config.agent_store import AgentStore
from voicepipe.pop.running import running

SCRIPTED = dict.fromkeys(("vad", "asr", "llm", "tts"), "scripted")


async def test_a_background_job_that_fails_does_not_end_the_pop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "front-desk.toml").write_text('name = "front-desk"\n')
    tables = {"pop": {"agents": str(tmp_path)}, "http": {"port": free_port()}, "engines": SCRIPTED}
    failed = asyncio.Event()

    def refresh(store: AgentStore) -> bool:
        failed.set()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(AgentStore, "refresh", refresh)
    monkeypatch.setattr(voicepipe.pop.prepared_agents, "EVERY_S", 0.01)
    async with running(msgspec.convert(tables, Config)) as pop:
        await failed.wait()
        with pop.admit(pop.tenant(None), pop.agent(None)):
            await asyncio.sleep(0.1)
        assert pop.health().status == "ok"
    assert "rereading agents failed and is begun again" in caplog.text


async def test_a_pop_lets_its_event_loop_run_soon_beside_python_in_other_threads(tmp_path: Path) -> None:
    """By default a thread of an engine keeps the interpreter for 5 ms, a quarter of the media clock's period."""
    (tmp_path / "front-desk.toml").write_text('name = "front-desk"\n')
    tables = {"pop": {"agents": str(tmp_path)}, "http": {"port": free_port()}, "engines": SCRIPTED}
    before = sys.getswitchinterval()
    try:
        async with running(msgspec.convert(tables, Config)):
            assert sys.getswitchinterval() <= 0.001
    finally:
        sys.setswitchinterval(before)
