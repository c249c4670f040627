"""Files are read again one at a time, and all of them are used or none."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from tests.support.waiting import until
from voicepipe.base.errors import ConfigError
from voicepipe.config import Config, HttpConfig, PopConfig
from voicepipe.config.pop_config import LogConfig
from voicepipe.config.reloader import Reloader
from voicepipe.config.rereads import Rereads


class Server:
    """Of two parts; `files` is what is read next."""

    def __init__(self) -> None:
        self.files: Config | Exception = Config()
        self.broken = ""
        self.used: list[tuple[str, Config]] = []
        self.reads = 0
        self.may_read = threading.Event()
        self.may_read.set()
        self.rereads = Rereads[Config]()
        self.rereads.join(self.part("first"))
        self.rereads.join(self.part("second"))
        self.told: list[Config] = []
        self.checked: list[Config] = []
        self.reloader = Reloader[Config](self.read, self.check, self.told.append)

    def part(self, name: str) -> Callable[[Config], Callable[[], None]]:
        def read(config: Config) -> Callable[[], None]:
            if self.broken == name:
                raise ConfigError(f"{name} cannot be read")
            return lambda: self.used.append((name, config))

        return read

    def read(self, running: Config) -> Config:
        self.reads += 1
        self.may_read.wait(60)
        if isinstance(self.files, Exception):
            raise self.files
        return self.files

    def check(self, config: Config) -> None:
        self.checked.append(config)
        if config.log.level == "debug":
            raise ConfigError("log.level: cannot be so")

    async def take(self, config: Config) -> None:
        (await asyncio.to_thread(self.rereads.read, config))()

    async def reloaded(self) -> None:
        reads, told, problem = self.reads, len(self.told), self.rereads.problem
        self.reloader.ask()
        await until(lambda: self.reads > reads and (len(self.told) > told or self.rereads.problem != problem))


@asynccontextmanager
async def running() -> AsyncIterator[Server]:
    server = Server()
    task = asyncio.create_task(server.reloader.run(Config(), server.rereads, server.take))
    yield server
    task.cancel()
    await asyncio.wait({task})


async def test_what_can_be_is_used_and_the_rest_is_named(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    async with running() as server:
        server.files = Config(log=LogConfig(format="json"), pop=PopConfig(slots=3))
        await server.reloaded()
        assert server.used == [(name, Config(log=LogConfig(format="json"))) for name in ("first", "second")]
        assert server.told == [Config(log=LogConfig(format="json"))] == server.checked
        assert "pop.slots changed: takes effect after a restart" in caplog.messages
        assert caplog.messages[-1].endswith("changed: log")
        await server.reloaded()
        assert caplog.messages[-1].endswith("changed: no other key")
        assert len(server.used) == 4, "keys and certificates are read again all the same"


@pytest.mark.parametrize("broken", ["first", "second", "files", "kept"])
async def test_what_is_wrong_changes_nothing_until_it_is_right(broken: str, caplog: pytest.LogCaptureFixture) -> None:
    async with running() as server:
        server.files = Config(log=LogConfig(format="json"))
        if broken == "files":
            server.files = ConfigError("my.toml: log.format: cannot be so")
        elif broken == "kept":  # Valid as a whole, but not with what has to wait.
            server.files = Config(log=LogConfig(level="debug"), http=HttpConfig(port=9))
        else:
            server.broken = broken
        await server.reloaded()
        assert not server.used and not server.told
        assert "nothing has changed" in caplog.text and "cannot be" in caplog.text
        assert server.rereads.warning.startswith("the files are not used: ")
        if broken == "kept":
            assert "(without http.port, which need a restart" in caplog.text
        server.broken, server.files = "", Config(log=LogConfig(level="error"))
        await server.reloaded()
        assert server.rereads.warning == "" and len(server.used) == 2


async def test_an_error_that_nobody_foresaw_ends_nothing() -> None:
    async with running() as server:
        server.files = ZeroDivisionError()
        await server.reloaded()
        assert "ZeroDivisionError" in server.rereads.warning
        server.files = Config()
        await server.reloaded()
        assert server.rereads.warning == ""


async def test_what_is_asked_during_a_reload_makes_one_more() -> None:
    async with running() as server:
        server.may_read.clear()
        server.reloader.ask()
        await until(lambda: server.reads == 1)
        for _ in range(100):
            server.reloader.ask()
        server.may_read.set()
        await until(lambda: len(server.told) == 2)
        await asyncio.sleep(0.1)
        assert server.reads == 2


async def test_what_is_asked_before_the_server_runs_is_done_then() -> None:
    server = Server()
    server.reloader.ask()
    task = asyncio.create_task(server.reloader.run(Config(), server.rereads, server.take))
    await until(lambda: server.told)
    task.cancel()


def test_warnings_stand_together() -> None:
    rereads = Rereads[Config]()
    rereads.warn_of(lambda: "")
    rereads.warn_of(lambda: "the certificate is broken")
    assert rereads.warning == "the certificate is broken"
    rereads.problem = "the files are not used"
    assert rereads.warning == "the files are not used; the certificate is broken"
