"""A process that takes over, with an application in place of the old voicepipe's."""

import asyncio
import socket

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.ingress.fake_pop import FakePop, serving
from voicepipe.base.errors import ConfigError
from voicepipe.base.takeover import TakeoverParts
from voicepipe.pop.predecessor import TAKEOVER, Inherited, Predecessor, inherited


async def test_a_process_that_is_gone_before_it_hands_over_is_an_error() -> None:
    one, other = socket.socketpair()
    before = Predecessor(Inherited(one.detach(), None, ("127.0.0.1", 1), ("127.0.0.1", 0)))
    before.open()
    other.close()
    with pytest.raises(ConfigError, match="has ended"):
        await before.sockets(TakeoverParts())
    assert before.gone.is_set()


def test_what_is_inherited_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert inherited() is None
    monkeypatch.setenv(TAKEOVER, '[5, null, ["0.0.0.0", 8080], ["0.0.0.0", 5060]]')
    assert inherited() == Inherited(5, None, ("0.0.0.0", 8080), ("0.0.0.0", 5060))
    assert inherited() is None


async def test_requests_and_clients_reach_a_call_of_the_process_before() -> None:
    old, new = FakePop(), FakePop()
    async with serving(old) as there, serving(new) as here:
        one, other = socket.socketpair()
        with one, other:
            before = Predecessor(Inherited(one.fileno(), None, ("", 0), ("", 0)))
            before.private_port = int(there.rpartition(":")[2])
            async with connect(f"ws://{there}/v1/realtime") as call, httpx.AsyncClient() as client:
                await call.recv()
                [row] = (await client.get(f"http://{there}/v1/realtime/calls")).json()["data"]
                for name, state in old.takeover_parts.given().items():
                    new.takeover_parts.taken(name, state)
                new.predecessor = before
                assert (await client.get(f"http://{here}/v1/realtime/calls")).json()["data"] == [row]
                async with connect(f"ws://{here}/v1/realtime?call_id={row['id']}") as follower:
                    assert "session.created" in str(await follower.recv())
                    wrong = await client.post(f"http://{here}/v1/realtime/calls/{row['id']}/dtmf", json={"digits": "x"})
                    assert wrong.status_code == 400 and wrong.json()["error"]["param"] == "digits"
                    gone = await client.delete(f"http://{here}/v1/realtime/calls/{row['id']}")
                    assert gone.status_code == 200
                await asyncio.wait_for(call.wait_closed(), 10)
                new.takeover_parts.empty()
                missing = await client.delete(f"http://{here}/v1/realtime/calls/{row['id']}")
                assert missing.json()["error"]["code"] == "call_id_not_found"


async def test_a_process_before_that_does_not_answer_has_no_calls() -> None:
    new = FakePop()
    async with serving(new) as here:
        one, other = socket.socketpair()
        with one, other, socket.create_server(("127.0.0.1", 0)) as closed:
            new.predecessor = before = Predecessor(Inherited(one.fileno(), None, ("", 0), ("", 0)))
            before.private_port = closed.getsockname()[1]
            closed.close()
            row = b'[{"tenant": "local", "row": {"id": "rtc_fra1.000000000000"}}]'
            new.takeover_parts.taken("calls", row)
            async with httpx.AsyncClient() as client:
                answer = await client.delete(f"http://{here}/v1/realtime/calls/rtc_fra1.000000000000")
            assert answer.status_code == 404
            with pytest.raises(InvalidStatus, match="503"):
                async with connect(f"ws://{here}/v1/realtime?call_id=rtc_fra1.000000000000"):
                    pass
