"""What a caller may choose from."""

from typing import Any

import httpx
import pytest
from starlette.applications import Starlette

from tests.ingress.fake_pop import VOICES, FakePop
from voicepipe.call_api import Tenant
from voicepipe.ingress.access import AccessControl
from voicepipe.ingress.api_keys import Caller, ClientSecrets
from voicepipe.ingress.model_list import ModelList

SHOP = Tenant("shop", ("clinic",))


async def asked(path: str, key: str = "sk-acme", secrets: ClientSecrets | None = None) -> httpx.Response:
    pop = FakePop(keys={"sk-acme": Tenant("acme"), "sk-shop": SHOP})
    pop.lacking["clinic"] = "it has no model"
    access = AccessControl(pop, secrets or ClientSecrets())
    app = Starlette(routes=ModelList(pop, access).routes(), exception_handlers=access.answers())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://pop") as client:
        return await client.get(path, headers={"Authorization": f"Bearer {key}"})


async def listed(path: str, key: str = "sk-acme", secrets: ClientSecrets | None = None) -> list[dict[str, Any]]:
    answer = (await asked(path, key, secrets)).json()
    assert answer["object"] == "list"
    return list(answer["data"])


async def test_agents_are_listed_as_models_with_what_one_lacks() -> None:
    first, second = await listed("/v1/models")
    created = first.pop("created")
    assert isinstance(created, int)
    assert first == {
        "id": "front-desk", "object": "model", "owned_by": "voicepipe", "voice": "en-us", "language": "en",
    }  # fmt: skip
    assert (second["id"], second["lacks"], second["created"]) == ("clinic", "it has no model", created)


async def test_a_tenant_sees_its_own_agents() -> None:
    assert [row["id"] for row in await listed("/v1/models", "sk-shop")] == ["clinic"]
    assert (await asked("/v1/models/front-desk", "sk-shop")).status_code == 404


async def test_who_holds_an_ek_key_sees_the_agent_that_it_was_made_for() -> None:
    secrets = ClientSecrets()
    key, _ = secrets.make(Caller(Tenant("acme"), "front-desk"), 60)
    assert [row["id"] for row in await listed("/v1/models", key, secrets)] == ["front-desk"]


async def test_one_agent_by_its_name() -> None:
    assert (await asked("/v1/models/clinic")).json()["id"] == "clinic"
    answer = await asked("/v1/models/gpt-realtime")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_found")
    assert "There is no agent 'gpt-realtime' for this key" in answer.json()["error"]["message"]


async def test_voices_are_the_same_for_all() -> None:
    for key in ("sk-acme", "sk-shop"):
        assert await listed("/v1/voices", key) == [{"id": id, "language": spoken} for id, spoken in VOICES.items()]


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/clinic", "/v1/voices"])
async def test_without_a_key_nothing_is_told(path: str) -> None:
    assert (await asked(path, "sk-wrong")).status_code == 401
