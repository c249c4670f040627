"""Calls by WebRTC are placed over HTTP, or refused."""

import msgspec
import pytest

from tests.ingress.fake_pop import FakePop, serving, settled
from tests.ingress.webrtc.peer import Peer, post, web, webrtc
from tests.support.waiting import until
from voicepipe.base.errors import PopFull
from voicepipe.call_api import Tenant
from voicepipe.config import Config, PopConfig, TenantConfig

KEYS = {"sk-acme": Tenant("acme"), "sk-other": Tenant("other")}
AUDIO = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n"
HEAD = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"


@pytest.mark.parametrize(
    ("offer", "said"),
    [
        ("", "no audio"),
        ("hello", "no audio"),
        (HEAD + "m=audio x", "no SDP"),
        (HEAD + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 VP8/90000\r\n", "no audio"),
        (HEAD + AUDIO.replace("opus/48000/2", "G729/8000"), "No codec in common: G729"),
        (HEAD + AUDIO, "ice-ufrag"),
        (HEAD + AUDIO + "a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n", "fingerprint"),
    ],
)
async def test_an_offer_that_is_none(offer: str, said: str) -> None:
    pop = FakePop()
    async with serving(pop) as address:
        response = await post(address, offer)
        assert response.status_code == 400
        error = response.json()["error"]
        assert error["code"] == "invalid_offer" and said in error["message"]
        assert pop.live == 0


async def test_other_bodies_and_a_full_house() -> None:
    pop = FakePop()
    async with serving(pop) as address, web(address) as client:
        json_body = await client.post("/v1/realtime/calls", json={"sdp": "v=0"})
        assert json_body.status_code == 400 and "application/sdp" in json_body.json()["error"]["message"]
        without = await client.post("/v1/realtime/calls", files={"session": (None, "{}")})
        assert without.status_code == 400 and "'sdp'" in without.json()["error"]["message"]
        broken = await client.post("/v1/realtime/calls", files={"sdp": (None, "v=0"), "session": (None, "{")})
        assert broken.status_code == 400 and "session" in broken.json()["error"]["message"]
        pop.refuse = PopFull("All slots are taken.")
        full = await post(address, HEAD)
        assert full.status_code == 503 and full.headers["Retry-After"]


async def test_offers_that_never_connect_leave_half_of_the_places_to_other_tenants() -> None:
    two = tuple(TenantConfig(name=name, key_env=f"{name.upper()}_KEY") for name in ("acme", "other"))
    config = msgspec.structs.replace(Config(), tenants=two, pop=PopConfig(slots=12))
    pop, acme = FakePop(config, KEYS), {"Authorization": "Bearer sk-acme"}
    async with serving(pop) as address, web(address) as client:
        peer = Peer()
        offer = await peer.offer()
        placed = [await post(address, offer, **acme) for _ in range(20)]
        taken, refused = placed[:6], placed[6:]
        assert {one.status_code for one in taken} == {201} and {one.status_code for one in refused} == {503}
        said = refused[0].json()["error"]
        assert said["code"] == "pop_full" and "wait for their callers to connect" in said["message"]
        answered = await post(address, offer, Authorization="Bearer sk-other")
        await peer.answered(answered.text)
        await peer.saw("session.created")
        for one in taken[:2]:
            await client.delete(one.headers["Location"], headers=acme)
        await until(lambda: pop.live == 5)
        again = [await post(address, offer, **acme) for _ in range(3)]
        assert [one.status_code for one in again] == [201, 201, 503]
        await peer.close()
        for one in [*taken[2:], *again[:2]]:
            await client.delete(one.headers["Location"], headers=acme)


async def test_one_browser_leaves_places_to_the_others_of_its_tenant() -> None:
    acme = TenantConfig(name="acme", key_env="ACME_KEY")
    pop = FakePop(msgspec.structs.replace(Config(), tenants=(acme,), pop=PopConfig(slots=12)), KEYS)
    async with serving(pop) as address, web(address) as client:
        own = {"Authorization": "Bearer sk-acme"}
        made = [await client.post("/v1/realtime/client_secrets", json={}, headers=own) for _ in range(2)]
        first, second = ({"Authorization": f"Bearer {one.json()['value']}"} for one in made)
        peer = Peer()
        offer = await peer.offer()
        placed = [await post(address, offer, **first) for _ in range(5)]
        assert [one.status_code for one in placed] == [201] * 3 + [503] * 2
        assert "calls of this ek_ key wait for their callers" in placed[-1].json()["error"]["message"]
        placed += [await post(address, offer, **second), await post(address, offer, **own)]
        assert [one.status_code for one in placed[5:]] == [201, 201]
        await client.delete(placed[0].headers["Location"], headers=own)
        await until(lambda: pop.live == 4)
        placed.append(await post(address, offer, **first))
        assert placed[-1].status_code == 201
        for one in placed[1:]:
            if one.status_code == 201:
                await client.delete(one.headers["Location"], headers=own)
        await settled(pop)
        await peer.close()


async def test_ice_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        serving(FakePop()) as address,
        web(address) as client,
    ):
        assert (await client.get("/v1/realtime/ice-servers")).json() == {"ice_servers": []}
    monkeypatch.setenv("TURN_SECRET", "hush")
    config = webrtc(turn_urls=("turn:turn.example.com",), turn_secret_env="TURN_SECRET")
    async with (
        serving(FakePop(config)) as address,
        web(address) as client,
    ):
        (entry,) = (await client.get("/v1/realtime/ice-servers")).json()["ice_servers"]
        assert entry["urls"] == ["turn:turn.example.com"]
        assert entry["username"].endswith(":voicepipe") and len(entry["credential"]) == 28
