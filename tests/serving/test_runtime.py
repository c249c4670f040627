"""The loop under every command that serves: signals, errors, ports."""

import argparse
import asyncio
import os
import signal
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.support.name_server import HERE, KNOWN, NOBODY, SLOW, name_server
from tests.support.waiting import until
from voicepipe.agent import Tool, Webhook
from voicepipe.base.errors import ConfigError, EngineError, OutcomeUnknown, ToolError
from voicepipe.base.takeover import TakeoverParts
from voicepipe.config import Config, HttpConfig
from voicepipe.config.phone_config import SipConfig
from voicepipe.conversation.prompt import ToolCall
from voicepipe.pop.predecessor import Inherited
from voicepipe.pop.successor import Successor
from voicepipe.serving import runtime
from voicepipe.tools.tool_runner import ToolRunner


def test_urls_are_those_that_this_machine_can_open() -> None:
    assert runtime.url(HttpConfig()) == "http://127.0.0.1:8080"
    assert runtime.url(HttpConfig(host="0.0.0.0", port=1)) == "http://127.0.0.1:1"
    assert runtime.url(HttpConfig(host="::", port=1)) == "http://[::1]:1"
    assert runtime.url(HttpConfig(host="voice.example", cert="a", key="b")) == "https://voice.example:8080"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_lets_the_command_drain(number: signal.Signals) -> None:
    """SIGHUP, too, where the command is no service: its terminal was closed."""
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


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2])
def test_what_asks_other_services_for_a_new_log_changes_nothing(
    number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    async def command() -> int:
        os.kill(os.getpid(), number)
        await until(lambda: bool(caplog.records))
        await asyncio.sleep(0.05)
        return 7

    assert runtime.run(command(), lambda: None) == 7, "it has come to its own end"
    assert f"{number.name} is ignored" in caplog.text and "SIGHUP reads the files again" in caplog.text


def test_a_service_reads_its_files_again_when_its_terminal_is_closed_or_an_operator_asks() -> None:
    reloads = list[str]()

    async def command() -> int:
        os.kill(os.getpid(), signal.SIGHUP)
        await until(lambda: bool(reloads))
        return 7

    assert runtime.run(command(), lambda: reloads.append("asked")) == 7


def test_what_nohup_started_outlives_its_terminal() -> None:
    async def command() -> int:
        os.kill(os.getpid(), signal.SIGHUP)
        await asyncio.sleep(0.05)
        return 7

    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert runtime.run(command()) == 7
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_second_signal_ends_the_draining() -> None:
    async def command() -> int:
        for seconds in (0.05, 0.1):
            asyncio.get_running_loop().call_later(seconds, os.kill, os.getpid(), signal.SIGTERM)
        try:
            return await runtime.forever()
        finally:
            await asyncio.sleep(30)

    assert runtime.run(command()) == 0


class Dismissed:
    """A PoP that an operator has ordered to drain; its last call ends after 0.4 s."""

    def __init__(self) -> None:
        self.empty = asyncio.Event()
        self.was_cut = False
        self.successor = Successor(TakeoverParts(), Config)

    async def dismissed(self) -> None:
        asyncio.get_running_loop().call_later(0.4, self.empty.set)

    async def drain(self) -> None:
        await self.empty.wait()

    @asynccontextmanager
    async def running(
        self, config: Config, reloader: object = None, predecessor: object = None
    ) -> AsyncIterator["Dismissed"]:
        try:
            yield self
        finally:
            try:
                await self.drain()
            except asyncio.CancelledError:
                self.was_cut = True
                raise


@pytest.mark.parametrize("signals", [0, 1, 2])
def test_a_pop_that_drains_by_order_is_cut_by_a_second_signal_only(
    signals: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pop = Dismissed()
    monkeypatch.setattr("voicepipe.pop.running.running", pop.running)

    async def command() -> int:
        for number in range(signals):
            asyncio.get_running_loop().call_later(0.05 * (number + 1), os.kill, os.getpid(), signal.SIGTERM)
        return await runtime.serve(Config())

    assert runtime.run(command()) == 0
    assert pop.was_cut == (signals == 2)


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


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone")
    writer.close()


def test_a_webhook_whose_name_server_does_not_answer_delays_no_other() -> None:
    """Nor a provider's commands or a model's server: all ask by httpx, and httpx asks the loop."""

    async def command() -> int:
        server = await asyncio.start_server(answer, HERE, 0)
        port = server.sockets[0].getsockname()[1]

        def begin(host: str, timeout_ms: int = 60_000) -> "asyncio.Task[str]":
            tool = Tool("book", webhook=Webhook(f"http://{host}:{port}"), timeout_ms=timeout_ms)
            return tools.begin(tool, ToolCall("c1", "book", "{}"), {"id": "rtc_1"}, "use_1", lambda text: None, "acme")

        async with server, ToolRunner() as tools:
            hung = [begin(SLOW, 1000) for _ in range(20)] + [begin(f"{n}.invalid", 1000) for n in range(10)]
            await until(lambda: names.now == 11)
            assert await asyncio.gather(*(begin(KNOWN) for _ in range(20))) == ["done"] * 20
            for error in await asyncio.gather(*hung, return_exceptions=True):
                assert isinstance(error, ToolError) and not isinstance(error, OutcomeUnknown)
                assert str(error) == "book could not be reached within 1000 ms; nothing was sent"
            assert await begin(KNOWN) == "done", "the lookups go on, though nobody waits for them"
            assert names.now == 11 and names.asked.count(SLOW) == 1
            with pytest.raises(ToolError, match="^book could not be reached$"):
                await begin(NOBODY)
        return 0

    with name_server() as names:
        began = time.monotonic()
        assert runtime.run(command()) == 0
        assert names.now == 11, "the command ends all the same"
        assert time.monotonic() - began < 30


def test_hosts_have_addresses_of_the_kind_asked_for() -> None:
    async def command() -> int:
        loop = asyncio.get_running_loop()
        kind = socket.SOCK_STREAM
        for host in ("127.0.0.1", b"127.0.0.1", "::1", "localhost", b"localhost", None):
            found = await loop.getaddrinfo(host, 5060, type=kind)
            assert found == socket.getaddrinfo(host, 5060, type=kind)
        for port, number in ((1, 1), (2, 2), ("http", 80)):
            found = await loop.getaddrinfo("localhost", port, family=socket.AF_INET, type=kind)
            assert [info[4] for info in found] == [("127.0.0.1", number)]
        return 0

    assert runtime.run(command()) == 0


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


def options(**given: object) -> argparse.Namespace:
    return argparse.Namespace(**({"host": None, "port": None, "sip_port": None} | given))


def test_a_process_that_takes_over_has_the_addresses_of_the_one_before() -> None:
    its = Inherited(3, None, ("127.0.0.1", 8080), ("127.0.0.1", 5060))
    phones = Config(sip=SipConfig(port=5060))
    assert runtime.with_inherited(phones, its, options()) == phones
    anywhere = runtime.with_inherited(Config(), its, options(port=0, sip_port=0))
    assert (anywhere.http.port, anywhere.sip.port) == (8080, 5060)
    without = Inherited(3, None, ("127.0.0.1", 8080), ("127.0.0.1", 0))
    assert runtime.with_inherited(Config(), without, options()).sip.port == 0


@pytest.mark.parametrize(
    ("config", "given", "key"),
    [
        (Config(http=HttpConfig(port=9090), sip=SipConfig(port=5060)), {}, "http.port is 9090 now, and 8080"),
        (Config(sip=SipConfig(port=5060)), {"host": "0.0.0.0"}, "http.host"),
        (Config(sip=SipConfig(port=5060, host="127.0.0.2")), {}, "sip.host"),
        (Config(sip=SipConfig(port=5070)), {}, "sip.port"),
        (Config(), {}, "sip.port is 0 now"),
    ],
)
def test_an_upgrade_keeps_the_addresses(config: Config, given: dict[str, object], key: str) -> None:
    its = Inherited(3, None, ("127.0.0.1", 8080), ("127.0.0.1", 5060))
    with pytest.raises(ConfigError, match=key):
        runtime.with_inherited(config, its, options(**given))
