"""A PoP that is upgraded under calls: the new process takes what comes, the old one ends the calls that it has."""

import asyncio
import json
import os
import signal
import sqlite3
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import websockets

from latency_probes.own_server import Started, started
from tests.ingress.sip.peer import Phone
from tests.records.receiver import SECRET, Receiver, receiving
from tests.records.typist import Typist
from tests.support.ports import free_port
from tests.support.waiting import until

pytestmark = pytest.mark.e2e
CONFIG = """
[pop]
agents = "agents"
slots = {slots}
budget_ms = 600000
loop_lag_ms = 60000
drain_ms = 60000

[sip]
port = {sip_port}

[records]
folder = "records"

[engines]
vad = "scripted"
asr = "scripted"
llm = "{llm}"
tts = "scripted"
"""
AGENT = 'name = "front-desk"\ngreeting = "Hello."\n[hooks]\nafter_call = "{url}"\nsecret_env = "HOOK_SECRET"\n'
ENVIRONMENT = {"HOOK_SECRET": SECRET}


class Host:
    """A host with one PoP, which is upgraded; and what its calls' receiver gets."""

    def __init__(self, folder: Path, pop: Started, sip_port: int, receiver: Receiver) -> None:
        self.folder, self.pop, self.sip_port, self.receiver = folder, pop, sip_port, receiver

    def configure(self, slots: int = 20, llm: str = "scripted") -> None:
        configure(self.folder, self.sip_port, slots, llm)

    def call(self) -> Typist:
        return Typist(self.pop.url)

    def phone(self) -> Phone:
        return Phone(("127.0.0.1", self.sip_port))

    async def asked(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON; of an error as well."""

        def ask() -> Any:
            data = None if body is None else json.dumps(body).encode()
            request = urllib.request.Request(
                self.pop.url + path, data, {"Content-Type": "application/json"}, method=method
            )
            try:
                with urllib.request.urlopen(request, timeout=120) as answer:
                    return json.loads(answer.read() or "null")
            except urllib.error.HTTPError as error:
                return json.loads(error.read())

        return await asyncio.to_thread(ask)

    async def upgraded(self) -> int:
        """Upgrade; the new process's id."""
        answer = await self.asked("POST", "/v1/upgrade")
        assert "pid" in answer, (answer, self.pop.log.read_text())
        return int(answer["pid"])

    async def calls(self) -> list[str]:
        """The kinds of the calls in progress."""
        return [call["kind"] for call in (await self.asked("GET", "/v1/realtime/calls"))["data"]]

    def records(self) -> dict[str, str | None]:
        """Why each kept call has ended; None: it has not."""
        with sqlite3.connect(f"file:{self.folder}/records/local.db?mode=ro", uri=True) as db:
            return {row[0]: row[1] if row[2] else None for row in db.execute("SELECT id, reason, ended FROM calls")}


def configure(folder: Path, sip_port: int, slots: int = 20, llm: str = "scripted") -> None:
    (folder / "voicepipe.toml").write_text(CONFIG.format(sip_port=sip_port, slots=slots, llm=llm))


def is_alive(pid: int) -> bool:
    """A process that nobody has waited for is dead as well."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@contextmanager
def stopped(host: Host) -> Iterator[None]:
    """At the end no process of this PoP is left, whichever serves by then."""
    try:
        yield
    finally:
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if str(host.folder / "voicepipe.toml").encode() in (process / "cmdline").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)


@asynccontextmanager
async def host(folder: Path) -> AsyncIterator[Host]:
    sip_port = free_port()
    with receiving() as receiver:
        (folder / "agents").mkdir()
        (folder / "agents" / "front-desk.toml").write_text(AGENT.format(url=receiver.url))
        configure(folder, sip_port)
        command = (sys.executable, "-m", "voicepipe", "pop", "--port", "0", "--config", str(folder / "voicepipe.toml"))
        with ExitStack() as stack:
            pop = await asyncio.to_thread(stack.enter_context, started(command, {**os.environ, **ENVIRONMENT}, folder))
            made = Host(folder, pop, sip_port, receiver)
            stack.enter_context(stopped(made))
            yield made


async def becomes(condition: Callable[[], Any], seconds: float = 60.0) -> None:
    """`await condition()` holds. Raises TimeoutError: not within `seconds`."""
    async with asyncio.timeout(seconds):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_calls_go_on_in_the_old_process_and_new_ones_come_to_the_new_one(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as old, its.phone() as phone:
        assert (await phone.dial()).code == 200
        key = (await its.asked("POST", "/v1/realtime/client_secrets", {}))["value"]
        pid = await its.upgraded()
        assert pid != its.pop.pid and is_alive(its.pop.pid)
        assert await its.calls() == ["websocket", "sip"]
        assert (await its.asked("GET", "/healthz"))["calls"] == 2

        await old.asks("Are you there?")
        async with its.call() as new, Typist(its.pop.url, key) as by_key, its.phone() as other:
            await new.asks("And now?")
            await by_key.asks("And with a key of the old process?")
            assert (await other.dial()).code == 200
            assert sorted(await its.calls()) == ["sip", "sip", "websocket", "websocket", "websocket"]
            assert (await other.hang_up()).code == 200
        assert (
            await phone.insisting(phone.invite(), "INVITE", len(phone.said))
        ).code == 200  # of the call that goes on
        phone.ack()
        assert (await phone.hang_up()).code == 200
        assert is_alive(its.pop.pid)

    assert not is_alive(its.pop.pid)


async def test_the_old_process_ends_with_its_last_call_and_all_are_recorded_and_told_of(tmp_path: Path) -> None:
    async with host(tmp_path) as its:
        async with its.call() as old:
            await its.upgraded()
            await old.asks("Are you there?")
            async with its.call() as new:
                await new.asks("And now?")
        await until(lambda: not is_alive(its.pop.pid))
        await until(lambda: len(its.receiver.told) == 2)
        assert list(its.records().values()) == ["caller", "caller"]
        assert len(set(its.receiver.ids)) == 2
        assert await its.calls() == []


async def test_programs_reach_a_call_of_the_old_process(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as old:
        (call,) = (await its.asked("GET", "/v1/realtime/calls"))["data"]
        await its.upgraded()
        side = f"ws{its.pop.url.removeprefix('http')}/v1/realtime?call_id={call['id']}"
        async with websockets.connect(side) as follower:
            assert json.loads(await follower.recv())["type"] == "session.created"
            await old.asks("Are you there?")
            async with asyncio.timeout(60):
                while json.loads(await follower.recv())["type"] != "response.done":
                    pass
            assert await its.asked("POST", f"/v1/realtime/calls/{call['id']}/hangup") is None
            with pytest.raises((OSError, websockets.WebSocketException)):
                await old.asks("Are you still there?")
        answer = await its.asked("POST", f"/v1/realtime/calls/{call['id']}/hangup")
        assert answer["error"]["code"] == "call_id_not_found"


async def test_calls_of_the_old_process_take_slots_of_the_new_one(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call(), its.call():
        its.configure(slots=3)
        await its.upgraded()
        async with its.call():
            with pytest.raises(websockets.InvalidStatus, match="503"):
                async with its.call():
                    pass

        async def third_is_over() -> bool:  # The PoP notices its end a moment after the client.
            return bool((await its.asked("GET", "/healthz"))["calls"] == 2)

        await becomes(third_is_over)
        async with its.call():  # Its slot was given back.
            pass


async def test_a_new_process_that_does_not_start_changes_nothing(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as old, its.phone() as phone:
        assert (await phone.dial()).code == 200
        for change, said in (
            ({"llm": "no such engine"}, "engines.llm"),
            ({"slots": -1}, "pop.slots"),
        ):
            its.configure(**change)
            answer = await its.asked("POST", "/v1/upgrade")
            assert answer["error"]["code"] == "upgrade_failed" and said in answer["error"]["message"], answer
        its.sip_port, before = free_port(), its.sip_port
        its.configure()
        answer = await its.asked("POST", "/v1/upgrade")
        assert "sip.port" in answer["error"]["message"] and "restart" in answer["error"]["message"]
        its.sip_port = before
        await old.asks("Are you there?")
        async with its.call() as new:
            await new.asks("And now?")
        assert (await phone.hang_up()).code == 200
        its.configure()
        await its.upgraded()
        await old.asks("Are you there?")


async def test_an_upgraded_pop_is_upgraded_again(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as first, its.phone() as phone:
        assert (await phone.dial()).code == 200
        second = await its.upgraded()
        async with its.call() as call:
            third = await its.upgraded()
            assert len({its.pop.pid, second, third}) == 3
            assert sorted(await its.calls()) == ["sip", "websocket", "websocket"]
            await first.asks("Are you there?")
            await call.asks("Are you there?")
            async with its.call() as new:
                await new.asks("And now?")
            assert (await phone.hang_up()).code == 200
            [row, *_] = (await its.asked("GET", "/v1/realtime/calls"))["data"]
            assert await its.asked("POST", f"/v1/realtime/calls/{row['id']}/hangup") is None
            with pytest.raises((OSError, websockets.WebSocketException)):
                await first.asks("Are you still there?")
            await until(lambda: not is_alive(its.pop.pid))
            assert is_alive(second)
            await call.asks("Are you there?")
        await until(lambda: not is_alive(second))


async def test_a_new_process_that_is_stopped_waits_for_the_calls_of_the_old_one(tmp_path: Path) -> None:
    async with host(tmp_path) as its:
        async with its.call() as old:
            pid = await its.upgraded()
            os.kill(pid, signal.SIGTERM)
            await asyncio.sleep(2)
            await old.asks("Are you there?")
            assert is_alive(pid)
        await until(lambda: not is_alive(pid) and not is_alive(its.pop.pid))


async def test_a_process_that_is_stopped_while_the_new_one_loads_is_not_replaced(tmp_path: Path) -> None:
    async with host(tmp_path) as its:
        async with its.call() as old:
            upgrade = asyncio.create_task(its.asked("POST", "/v1/upgrade"))
            await until(lambda: "loads its engines" in its.pop.log.read_text())
            os.kill(its.pop.pid, signal.SIGTERM)
            assert "told to stop" in (await upgrade)["error"]["message"]
            await old.asks("Are you there?")
        await until(lambda: not is_alive(its.pop.pid))
        with pytest.raises(OSError):
            await its.asked("GET", "/healthz")


async def test_an_old_process_goes_on_if_the_new_one_is_killed(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as old, its.phone() as phone:
        assert (await phone.dial()).code == 200
        os.kill(await its.upgraded(), signal.SIGKILL)
        await until(lambda: "reads its sockets again" in its.pop.log.read_text())
        await old.asks("Are you there?")
        assert (await phone.hang_up()).code == 200


async def test_a_second_signal_ends_the_calls_of_the_old_process(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as old:
        pid = await its.upgraded()
        os.kill(pid, signal.SIGTERM)
        await asyncio.sleep(2)
        os.kill(pid, signal.SIGTERM)
        await until(lambda: not is_alive(pid) and not is_alive(its.pop.pid))
        with pytest.raises((OSError, websockets.WebSocketException)):
            await old.asks("Are you still there?")


async def test_an_old_process_that_is_killed_leaves_its_calls_marked_and_the_new_one_goes_on(tmp_path: Path) -> None:
    async with host(tmp_path) as its, its.call() as old, its.phone() as phone:
        await old.asks("Are you there?")
        await its.upgraded()
        async with its.call() as new:
            os.kill(its.pop.pid, signal.SIGKILL)

            async def marked() -> bool:
                return sorted(map(str, (await asyncio.to_thread(its.records)).values())) == ["None", "cut"]

            await becomes(marked)
            assert await its.calls() == ["websocket"]
            await new.asks("Are you there?")
            assert (await phone.dial()).code == 200
