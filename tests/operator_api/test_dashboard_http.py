"""Who may read the dashboard, and what is said to those who ask wrongly."""

import re
from typing import Any

import pytest

from tests.ingress.fake_pop import OPERATOR_KEY, FakePop
from tests.pop.test_pop_http import bearer, keyed, requests
from voicepipe.conversation.events import Item, ItemAdded, ReplyDone, ReplyStarted
from voicepipe.conversation.timing import TurnSummary
from voicepipe.ingress import loop_share, server
from voicepipe.ingress.realtime.line import WebSocketLine
from voicepipe.ingress.realtime.session import PcmFormat
from voicepipe.ingress.visits import Visits

LINE = WebSocketLine(PcmFormat(), PcmFormat())


def answered(pop: FakePop, tenant: str) -> None:
    """One turn of one call of the tenant's."""
    with pop.dashboard.watched(tenant, "front-desk") as call:
        call.answered(f"call_{tenant}", LINE, 0.0)
        call.note(
            ItemAdded(Item("item_1", text=f"hello from {tenant}"), None, spoken=True), pop.dashboard.view(None, 5).now
        )
        call.note(ReplyStarted("resp_1", f"turn_{tenant}"), pop.dashboard.view(None, 5).now)
        call.note(ReplyDone("resp_1", "completed", record=TurnSummary(turn_latency=180.0)), 0.0)


async def test_without_tenants_this_machine_sees_everything() -> None:
    pop = FakePop()
    answered(pop, "local")
    async with requests(pop) as client:
        answer = await client.get("/v1/dashboard")
        assert answer.status_code == 200 and answer.headers["Cache-Control"] == "no-store"
        assert answer.json()["minutes"] == 15 and answer.json()["totals"]["p50"] == 180.0
        full = (await client.get("/v1/dashboard/turns/turn_local")).json()
        assert (full["heard"], full["record"]) == ("hello from local", {"turn_latency": 180.0, "confident": False})
        elsewhere = await client.get("/v1/dashboard", headers={"Host": "evil.example"})
        assert elsewhere.status_code == 403


async def test_with_tenants_a_key_shows_its_owners_calls_and_the_operators_all() -> None:
    pop = keyed()
    for tenant in ("acme", "clinic"):
        answered(pop, tenant)
    async with requests(pop) as client:
        for headers in ({}, bearer("sk-wrong")):
            refused = await client.get("/v1/dashboard", headers=headers)
            assert refused.status_code == 401 and refused.headers["WWW-Authenticate"] == "Bearer"
            assert (await client.get("/v1/dashboard/turns/turn_acme", headers=headers)).status_code == 401
        for key, seen in (("sk-acme", {"acme"}), (OPERATOR_KEY, {"acme", "clinic"})):
            view = (await client.get("/v1/dashboard", headers=bearer(key))).json()
            assert {turn["tenant"] for turn in view["turns"]} == seen
            for tenant in ("acme", "clinic"):
                full = await client.get(f"/v1/dashboard/turns/turn_{tenant}", headers=bearer(key))
                assert full.status_code == (200 if tenant in seen else 404)


@pytest.mark.parametrize("minutes", ["4", "181", "-15", "fifteen", "", "1e2", "9" * 5000])
async def test_minutes_out_of_range_are_a_sentence(minutes: str) -> None:
    async with requests(FakePop()) as client:
        answer = await client.get("/v1/dashboard", params={"minutes": minutes})
        error = answer.json()["error"]
        assert answer.status_code == 400 and error["param"] == "minutes"
        assert error["message"] == "minutes must be a whole number from 5 to 180."
        assert (await client.get("/v1/dashboard", params={"minutes": "180"})).json()["bucket_s"] == 360


async def test_a_turn_that_is_not_kept() -> None:
    async with requests(FakePop()) as client:
        answer = await client.get("/v1/dashboard/turns/turn_x")
        assert answer.status_code == 404 and "not kept" in answer.json()["error"]["message"]


async def test_the_page_and_the_script_that_draws_its_charts() -> None:
    async with requests(FakePop()) as client:
        assert "<title>voicepipe: dashboard</title>" in (await client.get("/dashboard")).text
        script = await client.get("/vendor/plotly.min.js")
        assert re.match(r"text/javascript|application/javascript", script.headers["Content-Type"])
        assert int(script.headers["Cache-Control"].partition("max-age=")[2]) >= 86_400
        assert b"plotly.js" in script.content[:200]


async def test_who_asks_without_end_is_told_to_wait_and_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures of three hours take the loop's time for each request."""
    monkeypatch.setattr(loop_share, "MANY_SAVED_MS", 1.0)
    pop = keyed(client_percent=1)
    for _ in range(500):
        answered(pop, "acme")
    async with requests(pop) as client:
        for minutes in range(5, 181):
            answer = await client.get(f"/v1/dashboard?minutes={minutes}", headers=bearer("sk-acme"))
            if answer.status_code == 429:
                break
        assert answer.status_code == 429 and answer.headers["Retry-After"]
        for key in ("sk-clinic", OPERATOR_KEY):
            assert (await client.get("/v1/dashboard", headers=bearer(key))).status_code == 200


async def test_who_looks_at_the_dashboard_is_no_stranger(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[Visits]()

    def recorded(*room: Any) -> Visits:
        made.append(Visits(*room))
        return made[-1]

    monkeypatch.setattr(server, "Visits", recorded)
    async with requests(keyed()) as client:
        assert (await client.get("/v1/dashboard", headers=bearer("sk-wrong"))).status_code == 401
        assert not made[0]._paying
        assert (await client.get("/v1/dashboard", headers=bearer("sk-acme"))).status_code == 200
        assert made[0]._paying
