"""Clients that know the directory's address alone: what they do at a PoP they do through it."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import websockets

from latency_probes import webrtc
from tests.directory.fleets import FRANKFURT, LONDON, LONG_S, Served, fleet, obeys, public_key, served, settings
from tests.support.sinks import Packets
from tests.support.waiting import until
from voicepipe.base import call_ids
from voicepipe.commands import cli
from voicepipe.directory.bus import MemoryBus
from voicepipe.pop.pop import Pop

pytestmark = pytest.mark.e2e


class Fleet:
    """Two PoPs, and a directory that serves."""

    def __init__(self, at: Served, pops: list[Pop]) -> None:
        self.at, self.pops = at, {pop.config.pop.id: pop for pop in pops}

    async def call(self, key: str = "k-acme", **options: Any) -> Any:
        """A WebSocket through the directory, and its first event."""
        url = f"ws{self.at.url.removeprefix('http')}/v1/realtime{options.pop('query', '')}"
        socket = await websockets.connect(
            url, additional_headers={"Authorization": f"Bearer {key}"}, max_queue=None, **options
        )
        return socket, json.loads(await socket.recv())


@pytest_asyncio.fixture
async def through(tmp_path: Path) -> AsyncIterator[Fleet]:
    public = await asyncio.to_thread(public_key, tmp_path)
    bus = MemoryBus()
    configs = [
        settings("fra", public, FRANKFURT, fleet={"zone": "eu"}, pop={"drain_ms": 60_000, "price_per_hour": 2.5}),
        settings("lhr", public, LONDON, fleet={"zone": "uk"}),
    ]
    async with asyncio.timeout(LONG_S), fleet(*configs, bus=bus) as (directory, pops), served(directory, bus) as at:
        yield Fleet(at, pops)


async def test_a_websocket_passes_through_to_the_nearest_pop(through: Fleet) -> None:
    socket, event = await through.call(subprotocols=["realtime"])
    assert event["type"] == "session.created" and socket.subprotocol == "realtime"
    assert (through.pops["fra"].calls, through.pops["lhr"].calls) == (1, 0)
    await socket.send(json.dumps({"type": "conversation.item.create", "item": {
        "type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}}))  # fmt: skip
    await socket.send(json.dumps({"type": "response.create"}))
    async for message in socket:
        if json.loads(message)["type"] == "response.done":
            break
    await socket.close()
    await until(lambda: through.pops["fra"].calls == 0)


async def test_minutes_of_sound_in_one_message_pass_through(through: Fleet) -> None:
    socket, _ = await through.call()
    await socket.send(json.dumps({"type": "session.update", "session": {"type": "realtime", "audio": {
        "input": {"turn_detection": None}}}}))  # fmt: skip
    sound = base64.b64encode(bytes(4_000_000)).decode()
    await socket.send(json.dumps({"type": "input_audio_buffer.append", "audio": sound}))
    await socket.send(json.dumps({"type": "input_audio_buffer.clear"}))
    async for message in socket:
        if (event := json.loads(message))["type"] == "input_audio_buffer.cleared":
            break
        assert event["type"] != "error", event
    await socket.close()


async def test_a_call_that_ends_at_the_pop_ends_with_the_same_word(through: Fleet) -> None:
    socket, _ = await through.call()
    async with through.at.client() as client:
        (row,) = (await client.get("/v1/realtime/calls")).json()["data"]
        assert call_ids.pop_of(row["id"]) == "fra"
        assert (await client.post(f"/v1/realtime/calls/{row['id']}/hangup")).status_code == 200
    with pytest.raises(websockets.ConnectionClosed):
        while True:
            await socket.recv()
    assert socket.close_code == 1000


async def test_where_the_first_candidate_is_full_the_next_one_answers(through: Fleet) -> None:
    sockets = [await through.call() for _ in range(4)]
    assert through.pops["fra"].calls + through.pops["lhr"].calls == 4
    more = [await through.call() for _ in range(4)]
    assert (through.pops["fra"].calls, through.pops["lhr"].calls) == (4, 4)
    with pytest.raises(websockets.InvalidStatus) as refused:
        await through.call()
    assert refused.value.response.status_code == 503
    assert refused.value.response.headers["Retry-After"]
    for socket, _ in sockets + more:
        await socket.close()


async def test_a_pop_that_is_full_before_the_directory_hears_of_it_costs_one_try(through: Fleet) -> None:
    sockets = []
    async with through.at.client() as client:
        for _ in range(4):
            asked = {"require": {"zone": "eu"}}
            there = (await client.post("/v1/calls", json=asked)).json()["candidates"][0]
            sockets.append(await websockets.connect(f"{there['url']}?token={there['token']}"))
    view = through.at.directory._view
    view.heard = lambda *_: False  # type: ignore[method-assign]
    known = view._known["fra"]
    known.report = msgspec.structs.replace(
        known.report, condition=msgspec.structs.replace(known.report.condition, calls=0)
    )
    known.pending.clear()
    socket, event = await through.call()
    assert event["type"] == "session.created"
    assert (through.pops["fra"].calls, through.pops["lhr"].calls) == (4, 1)
    for one in (socket, *sockets):
        await one.close()


async def test_the_sound_of_a_webrtc_call_goes_straight_to_its_pop(through: Fleet) -> None:
    packets = Packets()
    events: list[str] = []
    key = (await secret(through, session={"type": "realtime", "instructions": "Be kind."}))["value"]
    placed = await webrtc.place(through.at.url, key, "", sink=packets, on_message=events.append)
    await until(lambda: len(packets.data) > 20 and bool(events))
    assert json.loads(events[0])["session"]["instructions"] == "Be kind."
    assert (through.pops["fra"].calls, through.pops["lhr"].calls) == (1, 0)
    async with through.at.client(key) as client, through.at.client() as owner:
        (row,) = (await owner.get("/v1/realtime/calls")).json()["data"]
        assert row["kind"] == "webrtc"
        assert (await client.delete(f"/v1/realtime/calls/{row['id']}")).status_code == 200
    await until(lambda: through.pops["fra"].calls == 0)
    await placed.hang_up()


async def test_an_offer_that_is_none_is_told_by_the_pop(through: Fleet) -> None:
    async with through.at.client() as client:
        for headers, offer, said in (
            ({"Content-Type": "application/sdp"}, b"v=1", "invalid_offer"),
            ({"Content-Type": "text/plain"}, b"v=0", "invalid_value"),
        ):
            answer = await client.post("/v1/realtime/calls", content=offer, headers=headers)
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, said)


async def test_programs_find_a_call_by_its_id_wherever_it_is(through: Fleet) -> None:
    socket, _ = await through.call(key="k-clinic")
    await until(lambda: through.pops["fra"].calls == 1)
    async with through.at.client("k-clinic") as client, through.at.client() as other:
        (row,) = (await client.get("/v1/realtime/calls")).json()["data"]
        assert (await other.get("/v1/realtime/calls")).json() == {"object": "list", "data": [], "missing": []}
        call = f"/v1/realtime/calls/{row['id']}"
        assert (await other.delete(call)).status_code == 404
        beside, event = await through.call(key="k-clinic", query=f"?call_id={row['id']}")
        assert event["type"] == "session.created"
        assert (await client.post(f"{call}/dtmf", json={"digits": "x"})).status_code == 400
        assert (await client.post(f"{call}/refer", json={"target_uri": "nowhere"})).status_code == 400
        for gone in ("rtc_fra.000000000000", "rtc_nrt.000000000000", "x"):
            assert (await client.delete(f"/v1/realtime/calls/{gone}")).status_code == 404
        assert (await client.delete(call)).status_code == 200
    await until(lambda: through.pops["fra"].calls == 0)
    await beside.close()
    await socket.close()


async def test_what_any_pop_knows_is_asked_of_one(through: Fleet) -> None:
    async with through.at.client() as client:
        models = (await client.get("/v1/models")).json()["data"]
        assert models[0]["id"] == "front-desk"
        assert (await client.get("/v1/models/front-desk")).status_code == 200
        assert (await client.get("/v1/models/nobody")).status_code == 404
        assert (await client.get("/v1/voices")).json()["data"]
        assert (await client.get("/v1/realtime/ice-servers")).status_code == 200
    async with through.at.client("wrong") as client:
        for path in ("/v1/models", "/v1/voices", "/v1/realtime/calls"):
            assert (await client.get(path)).status_code == 401


async def secret(through: Fleet, key: str = "k-acme", **body: Any) -> dict[str, Any]:
    async with through.at.client(key) as client:
        answer = await client.post("/v1/realtime/client_secrets", json=body)
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made


async def test_an_ek_key_of_the_directory_brings_its_session_to_the_pop(through: Fleet) -> None:
    session = {"type": "realtime", "instructions": "Be kind.", "audio": {"output": {"speed": 1.2}}}
    made = await secret(through, session=session, locked=["instructions"])
    assert made["value"].startswith("ek_") and made["session"]["instructions"] == "Be kind."
    socket, event = await through.call(key=made["value"])
    assert event["session"]["instructions"] == "Be kind." and event["session"]["audio"]["output"]["speed"] == 1.2
    update = {"type": "realtime", "instructions": "Be rude."}
    await socket.send(json.dumps({"type": "session.update", "session": update}))
    said = [json.loads(await socket.recv()) for _ in range(2)]
    assert any(event["type"] == "error" and "instructions" in event["error"]["message"] for event in said)
    await socket.close()
    subprotocols = ["realtime", f"openai-insecure-api-key.{made['value']}"]
    url = f"ws{through.at.url.removeprefix('http')}/v1/realtime"
    socket = await websockets.connect(url, subprotocols=subprotocols)  # type: ignore[arg-type]
    assert json.loads(await socket.recv())["session"]["instructions"] == "Be kind."
    await socket.close()


async def test_an_ek_key_may_ask_where_to_call_and_finds_its_own_calls_alone(through: Fleet) -> None:
    made, other = await secret(through), await secret(through)
    async with through.at.client(made["value"]) as client, through.at.client(other["value"]) as stranger:
        candidate = (await client.post("/v1/calls")).json()["candidates"][0]
        socket = await websockets.connect(f"{candidate['url']}?token={candidate['token']}")
        await socket.recv()
        async with through.at.client() as owner:
            (row,) = (await owner.get("/v1/realtime/calls")).json()["data"]
        call = f"/v1/realtime/calls/{row['id']}"
        assert (await client.get("/v1/realtime/calls")).status_code == 401, "its holder may not read who calls"
        assert (await client.post(f"{call}/dtmf", json={"digits": "1"})).status_code == 401
        assert (await stranger.delete(call)).status_code == 404
        assert (await client.delete(call)).status_code == 200
        assert (await client.post("/v1/realtime/client_secrets")).status_code == 401
    await socket.close()


async def test_a_session_that_a_pop_does_not_take_gets_no_key(through: Fleet) -> None:
    async with through.at.client() as client:
        answer = await client.post("/v1/realtime/client_secrets", json={"session": {"audio": {"output": {"speed": 9}}}})
        assert answer.status_code == 400 and "speed" in answer.json()["error"]["param"]
        long = {"session": {"instructions": "x" * 70_000}}
        answer = await client.post("/v1/realtime/client_secrets", json=long)
        assert answer.status_code == 400 and "65536" in answer.json()["error"]["message"]


async def test_an_operator_sees_the_fleet_and_drains_a_pop(through: Fleet) -> None:
    async with through.at.client() as tenant:
        assert (await tenant.get("/v1/pops")).status_code == 401
        assert (await tenant.post("/v1/pops/fra/drain")).status_code == 401
    socket, _ = await through.call()
    async with through.at.client("k-operator") as operator:
        seen = (await operator.get("/v1/pops")).json()
        assert [(row["pop"], row["status"]) for row in seen["pops"]] == [("fra", "ok"), ("lhr", "ok")]
        assert seen["pops"][0]["recent"]["turns"] == 0 and seen["lost"] == []
        assert [row["price_per_hour"] for row in seen["pops"]] == [2.5, 0]
        assert [(placed["pop"], placed["why"], placed["tenant"]) for placed in seen["placed"]] == [
            ("fra", "nearest", "acme")]  # fmt: skip
        assert (await operator.post("/v1/pops/nowhere/drain")).status_code == 503
        draining = asyncio.create_task(obeys(through.pops["fra"]))
        assert (await operator.post("/v1/pops/fra/drain")).status_code == 202
    assert [seen.condition.status for seen in through.at.directory.pops()] == ["draining", "ok"]
    other, _ = await through.call()
    assert (through.pops["fra"].calls, through.pops["lhr"].calls) == (1, 1), "no live call is cut"
    await socket.close()
    await asyncio.wait_for(draining, LONG_S)
    await other.close()


async def test_a_pop_that_is_gone_costs_one_try(through: Fleet) -> None:
    """Its port is closed, and its lease goes on for a while."""
    fra = through.pops["fra"]
    through.at.directory._view._known["fra"].report = _moved(through, "http://127.0.0.1:1")
    socket, _ = await through.call()
    assert (fra.calls, through.pops["lhr"].calls) == (0, 1)
    await socket.close()


def _moved(through: Fleet, url: str) -> Any:
    known = through.at.directory._view._known["fra"].report
    return msgspec.structs.replace(known, condition=msgspec.structs.replace(known.condition, url=url))


async def test_the_commands_show_the_fleet_and_drain_a_pop(
    through: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def said(*argv: str) -> tuple[int, str]:
        status = await asyncio.to_thread(cli.main, [*argv, "--directory", through.at.url])
        out, err = capsys.readouterr()
        return status, out + err

    status, text = await said("pops")
    assert status == 2 and "VOICEPIPE_OPERATOR_KEY" in text, "who has no key is told where it belongs"
    monkeypatch.setenv("VOICEPIPE_OPERATOR_KEY", "k-operator")
    status, text = await said("pops")
    assert status == 0 and all(word in text for word in ("fra", "lhr", "0 of 4", "front-desk"))
    status, text = await said("drain", "nowhere")
    assert status == 2 and "'nowhere' does not answer" in text
    obeying = asyncio.create_task(obeys(through.pops["lhr"]))
    status, text = await said("drain", "lhr")
    assert status == 0 and "lhr takes no new calls" in text
    await asyncio.wait_for(obeying, LONG_S)
