"""`ek_` keys at a directory: a PoP settles their session."""

import json
from typing import Any

import pytest

from tests.directory.fleets import CLINIC, OWNERS, Served
from tests.directory.stub_pops import Answer, Stub, directory_of, says
from voicepipe.base.errors import Unauthorized
from voicepipe.directory.server.secrets import FleetKeys
from voicepipe.ingress.api_keys import Tenants

EFFECTIVE = {"model": "front-desk", "voice": "x"}


def settles(session: Any = EFFECTIVE) -> Answer:
    return says(200, json.dumps({"value": "ek_its_own", "session": session}), {"Content-Type": "application/json"})


async def made(at: Served, key: str = "k-acme", **body: Any) -> tuple[int, dict[str, Any]]:
    async with at.client(key) as client:
        answer = await client.post("/v1/realtime/client_secrets", json=body)
        return answer.status_code, answer.json()


async def test_a_key_is_the_directorys_and_its_session_the_pops() -> None:
    async with directory_of(settles()) as (at, pops):
        status, said = await made(at, expires_after={"anchor": "created_at", "seconds": 60})
        assert status == 200 and said["session"] == EFFECTIVE
        assert len(pops) == 1 and pops[0].heads[0].startswith("POST /v1/realtime/client_secrets ")
        reference = at.signed_keys.read(said["value"])
        assert (reference.tenant, reference.agent, reference.until) == ("acme", "front-desk", said["expires_at"])


@pytest.mark.parametrize(
    ("session", "kept"),
    [
        ({"type": "realtime", "model": "front-desk"}, b""),
        ({"type": "realtime", "instructions": "Be kind."}, b'{"type":"realtime","instructions":"Be kind."}'),
    ],
)
async def test_a_session_that_only_names_its_agent_is_kept_nowhere(session: dict[str, str], kept: bytes) -> None:
    async with directory_of(settles()) as (at, _):
        _, said = await made(at, session=session)
        assert await at.signed_keys.session(at.signed_keys.read(said["value"])) == kept


async def test_a_session_that_is_too_long_is_asked_of_no_pop() -> None:
    pops: list[Stub]
    async with directory_of(settles()) as (at, pops):
        status, said = await made(at, session={"instructions": "x" * 65_536})
        assert status == 400 and said["error"]["param"] == "session" and "65536 bytes" in said["error"]["message"]
        assert pops[0].heads == []


async def test_what_a_pop_refuses_is_refused() -> None:
    wrong = {"error": {"message": "speed is too high", "param": "session.speed"}}
    async with directory_of(says(400, json.dumps(wrong))) as (at, _):
        assert await made(at, session={"speed": 9}) == (400, wrong)


async def test_an_ek_key_makes_no_other() -> None:
    async with directory_of(settles()) as (at, _):
        _, said = await made(at)
        status, refused = await made(at, said["value"])
        assert status == 401 and "cannot make ek_ keys" in refused["error"]["message"]
        assert (await made(at, "k-nobody"))[0] == 401


async def test_who_holds_a_key_is_its_tenant_with_what_it_was_made_for() -> None:
    async with directory_of(settles()) as (at, _):
        _, said = await made(at, locked=["instructions"])
        keys = FleetKeys(at.signed_keys, Tenants(OWNERS, "directory"))
        caller = keys.find(said["value"])
        assert (caller.tenant.name, caller.agent, caller.locked, caller.secret) == (
            "acme", "front-desk", ("instructions",), said["value"],
        )  # fmt: skip
        for other in (said["value"] + "x", "k-acme"):
            with pytest.raises(Unauthorized):
                keys.find(other)
        with pytest.raises(Unauthorized, match="owner of this key is not known to this directory any more"):
            FleetKeys(at.signed_keys, Tenants({"k-clinic": CLINIC}, "directory")).find(said["value"])
