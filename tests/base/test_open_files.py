"""A PoP with few descriptors, and strangers who want all of them."""

import asyncio
import json
import resource
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from latency_probes.own_server import own_server
from tests.attacks import idle_connections
from tests.attacks.target import Target
from voicepipe.base import open_files

LIMIT = 1024
COMMAND = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, ({0} // 2, {0})); " \
    "sys.argv[0] = 'voicepipe'; runpy.run_module('voicepipe', run_name='__main__')"  # fmt: skip


def test_room_is_what_calls_and_models_leave() -> None:
    assert open_files.room(slots=36, limit=1024, in_use=60) == 1024 - 60 - open_files.RESERVE - 36 * open_files.A_CALL
    assert open_files.room(slots=500, limit=1024, in_use=60) == open_files.LEAST
    assert open_files.room(slots=1, limit=1024, in_use=-1) == open_files.room(slots=1, limit=1024, in_use=0)


def test_a_relayed_connection_takes_another_one_to_a_pop() -> None:
    assert open_files.relayed(1000, limit=65536, in_use=60) == 1000
    assert open_files.relayed(1000, limit=1024, in_use=60) == (1024 - 60 - open_files.RESERVE) // 2
    assert open_files.relayed(8000, limit=65536, in_use=60) == 8000, "to ask for more never gives less"


def test_the_soft_limit_is_raised_to_the_hard_one() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard))
        assert open_files.raise_limit() == hard == open_files.limit()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.e2e
async def test_idle_connections_do_not_end_a_pop_with_1024_descriptors(tmp_path: Path) -> None:
    config = tmp_path / "pop.toml"
    config.write_text('[engines]\nvad = "scripted"\nasr = "scripted"\nllm = "scripted"\ntts = "scripted"\n')
    command = (sys.executable, "-c", COMMAND.format(LIMIT), "pop", "--config", str(config), "--port", "0")
    with own_server(command) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        attacking = asyncio.ensure_future(idle_connections.ATTACK.run(Target(host, int(port)), 6))
        seen: list[dict[str, Any]] = []
        while not attacking.done():
            seen.append(await asyncio.to_thread(ready, url))
            await asyncio.sleep(0.5)
        await attacking
        assert (await asyncio.to_thread(ready, url))["status"] == "ok"
    assert max(health["fds"] for health in seen) <= LIMIT - open_files.RESERVE


def ready(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(f"{url}/readyz", timeout=30) as answer:
        health: dict[str, Any] = json.load(answer)
    return health
