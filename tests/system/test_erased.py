"""A caller is erased at every PoP, by whichever door they came, also at one that was dead meanwhile."""

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from pathlib import Path
from typing import Any

import aioice.ice
import httpx
import pytest
from websockets.asyncio.client import connect

from tests.directory.nats_server import needs_nats
from tests.ingress.sip.kamailio import HAS_TLS, PROGRAM, kamailio
from tests.ingress.sip.peer import Phone
from tests.ingress.telephony import telnyx_provider, twilio_provider
from tests.ingress.telephony.telnyx_provider import SECRET, Api
from tests.ingress.telephony.twilio_provider import TOKEN, verbs
from tests.ingress.webrtc.peer import Peer, post
from tests.records.receiver import SECRET as HOOK
from tests.records.typist import Typist
from tests.support.ports import free_port
from tests.system.erasure import NUMBER, SPOKEN, TYPED, Fleet, FleetProcess, fleet
from voicepipe.commands import cli

pytestmark = [pytest.mark.e2e, pytest.mark.slow, needs_nats]
LONG_S = 280.0
ANN = f"<sip:{NUMBER}@127.0.0.1>"


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TWILIO", TOKEN), ("TELNYX", SECRET), ("HOOK", HOOK), ("OPERATOR", "k-operator"),
                        ("ACME", "k-acme")):  # fmt: skip
        monkeypatch.setenv(f"TEST_{name}", value)
    monkeypatch.setattr(aioice.ice, "get_host_addresses", lambda use_ipv4, use_ipv6: ["127.0.0.1"])


async def types(url: str, key: str = "none") -> None:
    """A program that types."""
    async with Typist(url, key) as typist:
        await typist.asks(f"my name is {TYPED}")


async def by_candidate(at: Fleet) -> None:
    """A program that asks the directory, and calls the PoP with the token."""
    async with httpx.AsyncClient(headers={"Authorization": "Bearer k-acme"}, timeout=60) as client:
        answer = (await client.post(f"{at.directory.url}/v1/calls", json={"kind": "websocket"})).json()
    first = answer["candidates"][0]
    await types(first["url"].replace("ws://", "http://").removesuffix("/v1/realtime"), first["token"])


async def by_ek_key(at: Fleet) -> None:
    """A browser with an `ek_` key of the directory."""
    async with httpx.AsyncClient(headers={"Authorization": "Bearer k-acme"}, timeout=60) as client:
        made = (await client.post(f"{at.directory.url}/v1/realtime/client_secrets", json={})).json()
    await types(at.directory.url, made["value"])


async def by_webrtc(url: str, key: str = "none") -> None:
    """A browser: POST /v1/realtime/calls."""
    peer = Peer()
    try:
        answer = await post(url.removeprefix("http://"), await peer.offer(), Authorization=f"Bearer {key}")
        assert answer.status_code == 201, answer.text
        await peer.answered(answer.text)
        await peer.saw("session.created")
        said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": f"I am {TYPED}"}]}
        peer.send(type="conversation.item.create", item=said)
        peer.send(type="response.create")
        await peer.saw("response.done")
    finally:
        await peer.close()


@asynccontextmanager
async def phoned(port: int, uri: str = "") -> AsyncIterator[Phone]:
    """A telephone whose call is answered at this port."""
    phone = Phone(("127.0.0.1", port), caller=ANN)
    async with phone:
        answer = await phone.dial(uri=uri)
        assert answer.code == 200, answer.start
        phone.media_of(answer)
        yield phone
        assert (await phone.hang_up()).code == 200


async def by_sip(at: Fleet, pop: FleetProcess, uri: str = "") -> None:
    """It talks until a turn of it is over."""
    async with phoned(pop.sip, uri) as phone:
        before = await asyncio.to_thread(at.shown, pop)
        await phone.talk(0, 75)  # the greeting
        while await asyncio.to_thread(at.shown, pop) == before:
            await phone.talk(75, 150)


async def redirected(at: Fleet) -> str:
    """Where the directory sends a telephone."""
    async with Phone(("127.0.0.1", at.directory.sip), caller=ANN) as phone:
        answer = await phone.dial()
    assert answer.code == 302, answer.start
    return answer.all("contact")[0].partition("<")[2].partition(">")[0]


async def by_twilio(server: FleetProcess, number: int) -> None:
    call = {"CallSid": f"CA{number}", "From": NUMBER, "To": "+4930123"}
    answer = await twilio_provider.post(f"{server.url}/twilio/voice", call)
    [connect] = verbs(answer)
    async with twilio_provider.streaming(connect[0].get("url") or "", call_sid=call["CallSid"]) as stream:
        await stream.start({one.get("name", ""): one.get("value", "") for one in connect[0]})
        await asyncio.wait_for(stream.speaks.wait(), 60)


async def by_telnyx(server: FleetProcess, pop: FleetProcess, api: Api) -> None:
    """By `server`'s webhook to `pop`."""
    api.commands.clear()
    incoming: Any = {"direction": "incoming", "to": "+4930123", "from": NUMBER}
    address = pop.url.removeprefix("http://")
    assert await telnyx_provider.post(server.url.removeprefix("http://"), "call.initiated", **incoming) == 200
    [answer] = api.did("answer")
    state: Any = {"client_state": answer["client_state"]}
    assert await telnyx_provider.post(address, "call.answered", to="+4930123", **state) == 200
    [asked] = api.did("streaming_start")
    headers = {"x-telnyx-streaming-auth-token": asked["stream_auth_token"]}
    async with connect(f"ws://{address}/telnyx/stream", additional_headers=headers, proxy=None) as socket:
        await socket.send('{"event":"connected","version":"1.0.0"}')
        await socket.send(telnyx_provider.start(telnyx_provider.CALL, asked).replace("+1555", NUMBER))
        async with asyncio.timeout(60):
            while json.loads(await socket.recv())["event"] != "media":
                pass


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[tuple[Fleet, Api]]:
    """A fleet, and Telnyx."""
    api, port = Api(), free_port()
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(await asyncio.start_server(api.serve, "127.0.0.1", port))
        yield stack.enter_context(fleet(folder, f"http://127.0.0.1:{port}")), api


async def erased(at: Fleet, capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, dict[str, Any]]:
    """The exit status of `voicepipe records` with the operator's key, and its answer."""
    command = ["records", "--url", at.directory.url, "--key-env", "TEST_OPERATOR", "--json", *argv]
    status = await asyncio.to_thread(cli.main, command)
    said: dict[str, Any] = json.loads(capsys.readouterr().out)
    return status, said


async def all_over(at: Fleet, calls: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(60):
        while True:
            rows = await asyncio.to_thread(at.records)
            if len([row for row in rows if row["ended"]]) == calls:
                return rows
            await asyncio.sleep(0.05)


async def by_programs(at: Fleet) -> int:
    """Calls by programs and browsers, of the tenant's and of nobody's; how many."""
    for pop in (at.fra, at.lhr):
        await types(pop.url)
        await by_webrtc(pop.url)
    await types(at.directory.url, "k-acme")
    await by_webrtc(at.directory.url, "k-acme")
    await by_candidate(at)
    await by_ek_key(at)
    return 8


async def by_telephone(at: Fleet, api: Api, folder: Path) -> int:
    """Calls by telephone: straight, redirected, by a proxy, by providers; how many."""
    for pop in (at.fra, at.lhr):
        await by_sip(at, pop)
    await by_sip(at, at.fra, await redirected(at))
    await by_twilio(at.directory, 1)
    await by_twilio(at.lhr, 2)
    await by_telnyx(at.directory, at.fra, api)
    await by_telnyx(at.lhr, at.lhr, api)
    if not (PROGRAM and HAS_TLS):
        return 7
    async with kamailio(folder, [at.fra.sip, at.lhr.sip], by_udp=True) as sbc, phoned(sbc.udp):
        pass
    return 8


def databases_and_lines(*pops: str) -> set[str]:
    return {f"{pop}.{kind}" for pop in pops for kind in ("db", "jsonl")}


async def erased_but_in_progress(at: Fleet, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """The answer once no call of the caller's goes on."""
    async with asyncio.timeout(60):
        while True:
            _, said = await erased(at, capsys, "--delete-caller", NUMBER)
            if not said["in_progress"]:
                return said
            await asyncio.sleep(0.1)


async def test_a_caller_is_erased_by_every_door_also_at_a_pop_that_was_dead(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder := tmp_path / "fleet").mkdir()
    async with asyncio.timeout(LONG_S), running(folder) as (at, api):
        web, phones = await by_programs(at), await by_telephone(at, api, tmp_path)
        rows = await all_over(at, web + phones)
        numbered = {row["id"] for row in rows if row["caller"] == NUMBER}
        assert len(numbered) == phones
        for line in ("sip", "twilio", "telnyx"):
            owners = [row["tenant"] for row in rows if (row["pop"], row["line"]) == ("fra", line)]
            assert owners.count("acme") == 1, "whom the directory has sent is its tenant's"
        for text in (NUMBER, SPOKEN, TYPED):
            assert at.files_with(text) == databases_and_lines("fra", "lhr")
        assert at.shown(at.fra) & numbered and at.shown(at.lhr) & numbered

        # A PoP dies under a call of theirs; at the other one a call goes on.
        async with phoned(at.lhr.sip), Phone(("127.0.0.1", at.fra.sip), caller=ANN) as dying:
            assert (await dying.dial()).code == 200
            at.kill(at.fra)
            status, said = await erased(at, capsys, "--delete-caller", NUMBER)
            assert (status, said["missing"], said["complete"]) == (1, ["fra"], False)
            assert [its[:8] for its in said["calls_in_progress"]] == ["rtc_lhr."]
            assert list(said["deleted_at"]) == ["lhr"]
        assert (await erased_but_in_progress(at, capsys))["missing"] == ["fra"]
        assert at.files_with(NUMBER) == at.files_with(SPOKEN) == databases_and_lines("fra")
        assert not at.shown(at.lhr) & numbered

        # The directory begins anew, and still names it.
        at.kill(at.directory)
        at.directory.serve()
        at.wait_for("lhr")
        status, said = await erased(at, capsys, "--delete-caller", NUMBER)
        assert (status, said["missing"]) == (1, ["fra"])

        # It is back.
        at.fra.serve()
        at.wait_for("fra", "lhr")
        status, said = await erased(at, capsys, "--delete-caller", NUMBER)
        assert (status, said["missing"], said["complete"], list(said["deleted_at"])) == (0, [], True, ["fra"])
        assert at.files_with(NUMBER) == at.files_with(SPOKEN) == set()
        assert (await erased(at, capsys, "--delete-caller", NUMBER))[1]["deleted"] == 0, "again, to the same effect"

        # What programs and browsers typed has no number: by time.
        status, said = await erased(at, capsys, "--delete-all", "--since", "1h")
        assert (status, said["deleted"], said["complete"]) == (0, web, True)
        assert at.files_with(TYPED) == set() and await asyncio.to_thread(at.records) == []
        for pop in (at.fra, at.lhr):
            assert at.shown(pop) == set()
            with closing(sqlite3.connect(folder / "kept" / f"{pop.name}.db")) as db:
                left = [db.execute(f"SELECT count(*) FROM {table}").fetchone()
                        for table in ("calls", "said", "deliveries")]  # fmt: skip
            assert left == [(0,)] * 3
