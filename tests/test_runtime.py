"""The loop under every command that serves: signals, errors, ports."""

import asyncio
import os
import signal
import socket

import pytest

from voicepipe import runtime
from voicepipe.config import Config, HttpConfig
from voicepipe.errors import ConfigError, EngineError
from voicepipe.phone_config import SipConfig


def test_urls_are_those_that_this_machine_can_open() -> None:
    assert runtime.url(HttpConfig()) == "http://127.0.0.1:8080"
    assert runtime.url(HttpConfig(host="0.0.0.0", port=1), "ws") == "ws://127.0.0.1:1"
    assert runtime.url(HttpConfig(host="::", port=1)) == "http://[::1]:1"
    assert runtime.url(HttpConfig(host="voice.example", cert="a", key="b"), "ws") == "wss://voice.example:8080"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_command_drain(number: signal.Signals) -> None:
    done = []

    async def command() -> int:
        asyncio.get_running_loop().call_later(0.05, os.kill, os.getpid(), number)
        try:
            return await runtime.forever()
        finally:
            await asyncio.sleep(0.02)
            done.append("drained")

    assert runtime.run(command()) == 0
    assert done == ["drained"]


def test_a_second_signal_ends_the_draining() -> None:
    async def command() -> int:
        for seconds in (0.05, 0.1):
            asyncio.get_running_loop().call_later(seconds, os.kill, os.getpid(), signal.SIGTERM)
        try:
            return await runtime.forever()
        finally:
            await asyncio.sleep(30)

    assert runtime.run(command()) == 0


def test_an_error_in_a_task_group_is_told_as_itself() -> None:
    async def command() -> int:
        async with asyncio.TaskGroup() as outer, asyncio.TaskGroup() as inner:
            outer.create_task(asyncio.sleep(30))
            inner.create_task(failing())
        return 0

    async def failing() -> None:
        raise EngineError("no model")

    with pytest.raises(EngineError, match="no model"):
        runtime.run(command())


def test_a_mistake_of_ours_is_not_hidden() -> None:
    async def command() -> int:
        async with asyncio.TaskGroup() as group:
            group.create_task(failing(EngineError("no model")))
            group.create_task(failing(KeyError("x")))
        return 0

    async def failing(error: Exception) -> None:
        raise error

    with pytest.raises(ExceptionGroup):
        runtime.run(command())


def test_any_free_port() -> None:
    config = runtime.with_address(Config(), None, 0)
    assert config.http.host == "127.0.0.1"
    with socket.create_server((config.http.host, config.http.port)):
        with pytest.raises(ConfigError, match=f"port {config.http.port} on 127.0.0.1 is taken"):
            runtime.free_port(config.http)


def test_phones_are_where_they_can_call() -> None:
    assert runtime.with_phones(Config()).sip.port
    assert not runtime.with_phones(Config(http=HttpConfig(host="::1"))).sip.port
    chosen = Config(sip=SipConfig(port=5099))
    assert runtime.with_phones(chosen) is chosen
